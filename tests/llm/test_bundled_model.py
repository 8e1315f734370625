"""The real model in the real jail: what it scores, and what happens when it or its file goes wrong."""

import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, TypedDict, Unpack

import psutil
import pytest

from localagent.domain.edit import Edit, Scope, Splice
from localagent.domain.jailspec import JailResult, JailSpec
from localagent.domain.paths import RepoPath
from localagent.jail.api import NamespaceJail
from localagent.llm.model.registry import ModelFile
from localagent.llm.model.thread_count import usable_cores
from localagent.llm.scoring.scorer import ModelScorer
from localagent.llm.scoring.test_context import build_context
from localagent.ports import Jail, JailProcess

pytestmark = pytest.mark.model

SOURCE = b"""import math


def mean(values):
    total = 0
    for value in values:
        total -= value
    return total / len(values)


def largest(values):
    best = values[0]
    for value in values:
        if value < best:
            best = value
    return best
"""
CONTEXT = build_context(
    [(RepoPath("t.py"), b"assert mean([1, 3]) == 2\nassert largest([1, 3]) == 3\n")], [], RepoPath("a.py")
)


def edit(old: bytes, new: bytes, *, source: bytes = SOURCE, scope: Scope | None = None) -> Edit:
    at = source.index(old)
    return Edit(
        path=RepoPath("a.py"),
        splices=(Splice(start=at, end=at + len(old), text=new),),
        operator="x",
        line=1,
        end_line=1,
        prior=0.0,
        scope=scope,
    )


EDITS = [
    edit(b"-= value", b"+= value"),
    edit(b"-= value", b"-= math"),
    edit(b"/ len", b"/ math"),
    edit(b"< best", b"> best"),
    edit(b"< best", b"@ best"),
    edit(b"return best", b"return None"),
]


def score(
    scorer: ModelScorer, edits: list[Edit] = EDITS, source: bytes = SOURCE, seconds: float = 120.0
) -> list[float | None]:
    return list(scorer.score(source, CONTEXT, edits, timeout_seconds=seconds))


@pytest.fixture(scope="module")
def scorer(bundled_model: ModelFile, jail: NamespaceJail) -> Iterator[ModelScorer]:
    made = ModelScorer(bundled_model, jail, threads=1)
    yield made
    made.close()


def processes_of_the_model() -> list[psutil.Process]:
    """Every descendant of this process that is the scoring child itself."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            line = process.cmdline()
            if "localagent.llm.process.child" in line and "python" in Path(line[0]).name:
                found.append(process)
        except psutil.Error:
            continue
    return found


@pytest.mark.long
def test_likely_repairs_score_above_nonsense(scorer: ModelScorer) -> None:
    scores = score(scorer)
    assert scorer.warning == ""
    given = [value for value in scores if value is not None]
    assert len(given) == len(scores)
    assert all(value <= 0.0 for value in given)
    plus, other_name, wrong_name, greater, odd, nothing = given
    assert plus > other_name
    assert plus > -1.0
    assert wrong_name < -1.5
    assert odd < -4.0
    assert greater > odd
    assert nothing < greater


@pytest.mark.long
def test_the_same_question_gets_the_same_answer(
    scorer: ModelScorer, bundled_model: ModelFile, jail: NamespaceJail
) -> None:
    first = score(scorer)
    assert score(scorer) == first
    other = ModelScorer(bundled_model, jail, threads=1)
    assert score(other) == first
    score(other, EDITS[:1], b"# more\n" + SOURCE)
    assert score(other) == first
    other.close()


@pytest.mark.long
def test_each_score_is_about_what_a_question_alone_gives(scorer: ModelScorer) -> None:
    """Quantized kernels differ a little with the number of tokens decoded at once."""
    together = score(scorer)
    for index in (0, 3):
        [alone] = score(scorer, [EDITS[index]])
        assert alone == pytest.approx(together[index], abs=0.5)


def test_tokens_and_memory_are_counted_and_bounded(scorer: ModelScorer) -> None:
    before = scorer.tokens_used
    score(scorer, [edit(b"total = 0", b"total = 1")])
    assert 0 < scorer.tokens_used - before < 300
    assert 50 << 20 < scorer.resident_bytes < 450 << 20
    assert scorer.load_seconds > 0


@pytest.mark.long
def test_the_tests_in_front_are_decoded_once_for_several_files(scorer: ModelScorer) -> None:
    tests = b"".join(b"assert mean([%d, %d, 3]) == largest([%d])\n" % (k, k + 1, k) for k in range(24))
    spent = []
    for name in ("a.py", "pkg/a_file_of_another_name.py"):
        context = build_context([(RepoPath("t.py"), tests)], [], RepoPath(name))
        before = scorer.tokens_used
        assert all(value is not None for value in scorer.score(SOURCE, context, EDITS[:2], timeout_seconds=120.0))
        spent.append(scorer.tokens_used - before)
    assert spent[0] > spent[1] + 300


@pytest.mark.slow
def test_a_long_function_is_scored_around_its_places(scorer: ModelScorer) -> None:
    source = (
        b"def f(x):\n" + b"    running_total = compute_running_total(running_total, other)\n" * 400 + b"    return y\n"
    )
    scope = Scope(
        name="f", qualname="f", class_name=None, first_line=1, last_line=402, start=0, body_start=10, end=len(source)
    )
    before = scorer.tokens_used
    far = edit(b"return y", b"return running_total", source=source, scope=scope)
    near = edit(b"total, other", b"total, x", source=source, scope=scope)
    [far_score, near_score] = score(scorer, [far, near], source)
    assert far_score is not None
    assert near_score is not None
    assert scorer.tokens_used - before < 3000


@pytest.mark.long
@pytest.mark.parametrize(
    "source",
    [
        b"x = 1  # caf\xe9 \xff\xfe\nreturn x\n",
        b"\xef\xbb\xbfx = 1\r\nreturn x\r\n",
        "x = '😀<|im_end|><|endoftext|>é'\nreturn x\n".encode(),
        b"\0\0\0 return x\0",
        b"return x",
        b"\x0c\treturn x" + b"\\" * 4000,
    ],
    ids=["latin", "bom and crlf", "special tokens", "nul", "tiny", "backslashes"],
)
def test_odd_text_is_only_text(scorer: ModelScorer, source: bytes) -> None:
    [value] = score(scorer, [edit(b"x", b"y\xff", source=source)], source)
    assert value is None or value <= 0.0
    assert scorer.warning == ""


def test_text_the_tokenizer_knows_as_special_is_cut_like_any_other(scorer: ModelScorer) -> None:
    source = b"marks = ['<|im_start|>', 1]\n"
    [value] = score(scorer, [edit(b"im_start", b"im_stop", source=source)], source)
    assert value is not None


@pytest.mark.long
def test_running_out_of_time_leaves_a_partial_answer_and_a_working_model(scorer: ModelScorer) -> None:
    source = b"".join(b"def f%d(x):\n    return x + %d\n\n\n" % (n, n) for n in range(2000))
    ends = [
        edit(b"return x + %d\n" % n, b"return y + %d\n" % n, source=source) for n in (0, 400, 800, 1200, 1600, 1999)
    ]
    got = score(scorer, ends, source, 0.6)
    assert None in got
    assert scorer.warning == ""
    began = time.monotonic()
    assert None not in score(scorer)
    assert time.monotonic() - began < 60


def altered(model: ModelFile, tmp_path: Path, change: Callable[[BinaryIO], None]) -> ModelFile:
    assert model.path is not None
    copy = tmp_path / "copy.gguf"
    shutil.copy(model.path, copy)
    with copy.open("r+b") as stream:
        change(stream)
    return replace(model, path=copy)


def flip_last_byte(stream: BinaryIO) -> None:
    stream.seek(-1, os.SEEK_END)
    byte = stream.read(1)
    stream.seek(-1, os.SEEK_END)
    stream.write(bytes([byte[0] ^ 1]))


def cut_in_half(stream: BinaryIO) -> None:
    stream.truncate(49_000_000)


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "reason"),
    [(flip_last_byte, "SHA-256 is not the registered one"), (cut_in_half, "is not 98362432 bytes long")],
)
def test_an_altered_file_is_refused_before_it_is_loaded(
    bundled_model: ModelFile, jail: NamespaceJail, tmp_path: Path, change: Callable[[BinaryIO], None], reason: str
) -> None:
    scorer = ModelScorer(altered(bundled_model, tmp_path, change), jail, threads=1)
    assert score(scorer) == [None] * len(EDITS)
    assert reason in scorer.warning
    scorer.close()


@pytest.mark.long
def test_a_header_llama_cpp_should_not_see_is_refused(
    bundled_model: ModelFile, jail: NamespaceJail, tmp_path: Path
) -> None:
    import hashlib

    def break_version(stream: BinaryIO) -> None:
        stream.seek(4)
        stream.write(b"\x09")

    model = altered(bundled_model, tmp_path, break_version)
    assert model.path is not None
    model = replace(model, sha256=hashlib.sha256(model.path.read_bytes()).hexdigest())
    scorer = ModelScorer(model, jail, threads=1)
    assert score(scorer) == [None] * len(EDITS)
    assert "version 9" in scorer.warning
    scorer.close()


def test_a_sound_file_that_llama_cpp_cannot_load_is_a_warning(jail: NamespaceJail, tmp_path: Path) -> None:
    import hashlib

    from support.gguf_builder import TinyGguf

    path = tmp_path / "tiny.gguf"
    path.write_bytes(TinyGguf().bytes)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    model = ModelFile(name="tiny", path=path, bytes=path.stat().st_size, sha256=digest, licence="MIT")
    scorer = ModelScorer(model, jail, threads=1)
    assert score(scorer) == [None] * len(EDITS)
    assert "llama.cpp cannot load the model" in scorer.warning
    scorer.close()


@pytest.mark.long
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_child_killed_or_stopped_in_a_request_costs_a_warning(
    bundled_model: ModelFile, jail: NamespaceJail, how: signal.Signals
) -> None:
    mine = {process.pid for process in processes_of_the_model()}
    scorer = ModelScorer(bundled_model, jail, threads=1)
    assert None not in score(scorer)
    [child] = [process for process in processes_of_the_model() if process.pid not in mine]
    source = b"".join(b"def f%d(x):\n    return x + %d\n\n\n" % (n, n) for n in range(300))
    ends = [edit(b"return x + %d\n" % n, b"return y + %d\n" % n, source=source) for n in range(0, 300, 20)]
    threading.Timer(0.15, lambda: os.kill(child.pid, how)).start()
    assert None in score(scorer, ends, source, 1.0)
    for _ in range(2):
        score(scorer, seconds=0.3)
    assert ("ended" if how == signal.SIGKILL else "does not answer") in scorer.warning
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE
    scorer.close()


class Limits(TypedDict, total=False):
    """Some limits of a jail."""

    wall_seconds: float
    cpu_seconds: float
    address_space_bytes: int
    resident_bytes: int


class Starved:
    """The real jail with a limit of its own."""

    def __init__(self, jail: Jail, **limits: Unpack[Limits]) -> None:
        self._jail, self._limits = jail, limits

    @property
    def backend(self) -> str:
        return self._jail.backend

    @property
    def level(self) -> str:
        return self._jail.level

    def run(self, spec: JailSpec, *, stdin: bytes = b"") -> JailResult:
        raise AssertionError("the model's child is started, never run to its end")

    def start(self, spec: JailSpec) -> JailProcess:
        return self._jail.start(replace(spec, limits=replace(spec.limits, **self._limits)))


@pytest.mark.long
@pytest.mark.parametrize(
    "limits",
    [{"address_space_bytes": 160 << 20}, {"resident_bytes": 60 << 20}, {"cpu_seconds": 1}, {"wall_seconds": 1.0}],
)
def test_a_starved_child_costs_a_warning(bundled_model: ModelFile, jail: NamespaceJail, limits: Limits) -> None:
    scorer = ModelScorer(bundled_model, Starved(jail, **limits), threads=1)
    source = b"".join(b"def f%d(x):\n    return x + %d\n\n\n" % (n, n) for n in range(2000))
    ends = [edit(b"return x + %d\n" % n, b"return y + %d\n" % n, source=source) for n in range(0, 2000, 10)]
    assert None in score(scorer, ends, source, 60.0)
    assert scorer.warning != ""
    scorer.close()


@pytest.mark.long
def test_closing_ends_the_process(bundled_model: ModelFile, jail: NamespaceJail) -> None:
    mine = {process.pid for process in processes_of_the_model()}
    scorer = ModelScorer(bundled_model, jail, threads=1)
    score(scorer)
    [child] = [process for process in processes_of_the_model() if process.pid not in mine]
    scorer.close()
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


@pytest.mark.long
def test_the_child_is_confined(bundled_model: ModelFile, jail: NamespaceJail) -> None:
    mine = {process.pid for process in processes_of_the_model()}
    scorer = ModelScorer(bundled_model, jail, threads=1)
    score(scorer)
    [child] = [process for process in processes_of_the_model() if process.pid not in mine]
    for space in ("net", "pid", "mnt", "ipc", "uts", "user"):
        assert Path(f"/proc/{child.pid}/ns/{space}").readlink() != Path(f"/proc/self/ns/{space}").readlink()
    assert child.nice() >= min(psutil.Process().nice() + 5, 19)
    assert child.num_threads() <= 4
    scorer.close()


@pytest.mark.long
def test_a_child_that_may_choose_says_how_many_threads_it_uses(bundled_model: ModelFile, jail: NamespaceJail) -> None:
    made = ModelScorer(bundled_model, jail)
    made._loaded.wait(120)
    told = made.threads, made.warning
    made.close()
    fixed = ModelScorer(bundled_model, jail, threads=2)
    assert fixed.ready(120)
    assert fixed.threads == 2  # as a replay asks for, whatever helps
    fixed.close()
    assert 1 <= told[0] <= usable_cores()
    assert told[1] == ""


@pytest.mark.long
def test_what_was_prepared_is_not_read_again_and_changes_no_answer(
    scorer: ModelScorer, bundled_model: ModelFile, jail: NamespaceJail
) -> None:
    """A front of no whole number of chunks: it is read as it is when nothing was prepared."""
    tests = b"".join(b"assert mean([%d, %d, 3]) == largest([%d])\n" % (k, k + 1, k) for k in range(10))
    context = build_context([(RepoPath("t.py"), tests)], [], RepoPath("a.py"))

    def asked(made: ModelScorer) -> tuple[list[object], int]:
        before = made.tokens_used
        read = list(made.read(SOURCE, context, EDITS, timeout_seconds=120.0))
        mended = list(made.mend(SOURCE, context, EDITS, timeout_seconds=120.0))
        return [read, mended], made.tokens_used - before

    other = ModelScorer(bundled_model, jail, threads=1)
    plain, whole = asked(other)
    other.prepare(context, timeout_seconds=120.0)
    assert asked(other)[0] == plain
    other.close()
    before = scorer.tokens_used
    scorer.prepare(context, timeout_seconds=120.0)
    prepared = scorer.tokens_used - before
    assert prepared > 200
    told, rest = asked(scorer)
    assert scorer.warning == ""
    assert told == plain
    assert prepared + rest == whole
