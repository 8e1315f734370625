"""A default model that is absent, altered, killed or stopped costs a run a warning: it goes as it goes without one."""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from support.fix_builder import ADDER, CHECKOUT, Home, Ran, bundled_model, home, model_place
from support.tiny_model import QWEN, tiny_model

from localagent.app import Settings
from localagent.jail.api import open_jail
from localagent.llm.model.gguf import read_header
from localagent.llm.model.registry import Registry
from localagent.llm.scoring.scorer import _SILENT_SECONDS, ModelScorer

# what a candidate costs makes the search wait for the model's order
SLOW = {
    **ADDER,
    "test_slow.py": (
        "import time\nfrom adder import add\n\n\ndef test_slow():\n    time.sleep(0.4)\n    assert add(1, 2) == 3\n"
    ),
}
CANDIDATES = 8


def absent(h: Home) -> Ran:
    return h.fix(model=(), candidates=CANDIDATES)


def cut(h: Home) -> Ran:
    """Half of it is there."""
    with bundled_model().open("rb") as stream:
        model_place(h).write_bytes(stream.read(bundled_model().stat().st_size // 2))
    return h.fix(model=(), candidates=CANDIDATES)


def altered(at: int) -> Callable[[Home], Ran]:
    """Eight bytes from there on are flipped: 8 lies in the header, -8 among the weights."""

    def ran(h: Home) -> Ran:
        data = bytearray(bundled_model().read_bytes())
        at_byte = at % len(data)
        data[at_byte : at_byte + 8] = bytes(byte ^ 0xFF for byte in data[at_byte : at_byte + 8])
        model_place(h).write_bytes(data)
        return h.fix(model=(), candidates=CANDIDATES)

    return ran


def damaged(h: Home) -> Ran:
    """A file that is the registered one, and whose weights are no numbers: it is in no header, and in every digest."""
    model = tiny_model(h.root / "home", QWEN)
    assert model.path is not None
    with model.path.open("r+b") as stream:
        header = read_header(stream)
        stream.seek(header.data_start)
        stream.write(b"\xff" * sum(tensor.size_bytes for tensor in header.tensors))
    added = h.run("model", "add", str(model.path), "--name", "damaged")
    assert added.code == 0, added.err
    return h.fix(model=("--model", "damaged"), candidates=CANDIDATES)


def struck(how: signal.Signals) -> Callable[[Home], Ran]:
    """The child gets a signal as soon as it is seen, and so does the one that is tried without what lies beside it."""

    def ran(h: Home) -> Ran:
        shutil.copy(bundled_model(), model_place(h))
        report = h.root / "report.json"
        with h.start(*h.arguments("--json", candidates=CANDIDATES), bufsize=0) as process:
            first = _child(process.pid)
            os.kill(first, how)
            if how is signal.SIGKILL:
                os.kill(_child(process.pid, but=first), how)
            else:
                _stand_still(process)
            out, err = process.communicate(timeout=300)
        told = json.loads(report.read_bytes())
        return Ran(code=process.returncode, out=out.decode(), err=err.decode(), report=told)

    return ran


def _stand_still(process: "subprocess.Popen[bytes]") -> None:
    """The run itself stands still once the model was asked, so that it has been silent for long on any machine."""
    assert process.stdout is not None
    while b'"event": "controls"' not in process.stdout.readline():
        assert process.poll() is None, "it ended before the model was asked"
    os.kill(process.pid, signal.SIGSTOP)
    time.sleep(2.0 * _SILENT_SECONDS)
    os.kill(process.pid, signal.SIGCONT)


def _child(parent: int, but: int = 0) -> int:
    """The process of the model itself, below a run; another one than `but`."""
    until = time.monotonic() + 60.0
    while time.monotonic() < until:
        for process in psutil.Process(parent).children(recursive=True):
            try:
                line = process.cmdline()
            except psutil.Error:
                continue
            if process.pid != but and "localagent.llm.process.child" in line and "python" in Path(line[0]).name:
                return process.pid
        time.sleep(0.005)
    raise AssertionError("no model was started")


@pytest.fixture(scope="module")
def without() -> Ran:
    """The run that was asked to go without one."""
    with home(SLOW) as h:
        return h.fix(candidates=CANDIDATES)


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.parametrize(
    ("lose", "warning", "remedy"),
    [
        (absent, "no model: the file of model", "; run `make setup`, or add it with `localagent model add FILE`"),
        (cut, "it was altered or cut off", "; remove it and add it with `localagent model add FILE`"),
        (altered(8), "SHA-256 is not the registered one", "; `localagent model verify smollm2-135m-instruct` says"),
        (altered(-8), "SHA-256 is not the registered one", "; `localagent model verify smollm2-135m-instruct` says"),
        (damaged, "its weights compute no numbers", "; `localagent model verify damaged` says"),
        (struck(signal.SIGKILL), "its process ended", "; `localagent model verify smollm2-135m-instruct` says"),
        (struck(signal.SIGSTOP), "did not answer in time", "leave it out with --no-model"),
    ],
    ids=["absent", "cut", "header", "weights", "damaged", "killed", "stopped"],
)
def test_a_lost_model_changes_nothing_but_the_warning(
    lose: Callable[[Home], Ran], warning: str, remedy: str, without: Ran
) -> None:
    with home(SLOW) as h:
        lost = lose(h)
    facts = ("outcome", "verdict", "patch", "rank_of_first_plausible", "verified", "exit")
    assert {name: lost.report.get(name) for name in facts} == {name: without.report.get(name) for name in facts}
    assert (without.report["exit"], without.report["outcome"]) == (0, "accepted")
    (told,) = [said for said in lost.report["warnings"] if said not in without.report["warnings"]]
    assert warning in told
    assert remedy in told


@pytest.mark.model
def test_a_child_killed_between_two_answers_ends_the_request_and_no_task() -> None:
    """What had come stays with whoever asked; nothing is asked again, and the reason says what to do."""
    registered = Registry(CHECKOUT / "models", Settings.from_environ().data_dir).verify("")
    served = ModelScorer(registered, open_jail(), threads=1)
    try:
        assert served.ready(120)
        request = {
            "kind": "sample", "prompt": {"form": "text", "text": "def main():\n"}, "seeds": list(range(64)),
            "most_tokens": 40, "temperature": 1.0, "top_k": 40, "top_p": 1.0, "min_p": 0.0, "stops": ["\n"],
            "grammar": "", "seconds": 100.0,
        }  # fmt: skip
        heard: list[str] = []
        with served.guarded():
            for message in served.exchange(request, frozenset({"done"}), timeout_seconds=100):
                if not heard:
                    os.kill(_child(os.getpid()), signal.SIGKILL)
                heard.append(message["kind"])
        assert heard
        assert set(heard) == {"drawn"}
        # how it ended is said where the jail has told it by then
        assert served.warning.replace(" (SIGKILL)", "") == (
            "model smollm2-135m-instruct dropped: its process ended; the task went on without it; "
            "if this happens again, leave it out with --no-model"
        )
        assert list(served.exchange(request, frozenset({"done"}), timeout_seconds=5)) == []
    finally:
        served.close()
