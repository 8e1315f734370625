"""Whoever can write the state directory, and has no key: what they put there is refused by name, and never hangs."""

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import pytest
from support.evidence_builder import OTHER, PATCH, keep_proposals, keep_task, settings_below

from localagent.app.settings import Settings
from localagent.cli.main import main
from localagent.domain.edit import FileChange, Patch, digest_of
from localagent.domain.paths import RepoPath
from localagent.record.audit.entry import AuditKind
from localagent.record.audit.log import AuditLog
from localagent.record.patchfile import patch_json
from localagent.record.store import TaskRecord
from localagent.repo.diff.write_diff import unified_diff
from localagent.text.strict_json import canonical, dump

EVIL = Patch(changes=(FileChange(path=RepoPath("a.py"), before=b"a = 1\n", after=b"import os  # theirs\n"),))


class HungError(BaseException):
    """A verb waits for somebody who never comes."""


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    return settings_below(tmp_path, monkeypatch)


@pytest.fixture
def bounded() -> Iterator[None]:
    """A verb that hangs fails, instead of the whole run."""

    def hung(_number: int, _frame: FrameType | None) -> None:
        raise HungError

    before = signal.signal(signal.SIGALRM, hung)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@dataclass(frozen=True)
class Refused:
    code: int
    said: str


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Refused]:
    def verb(*words: str) -> Refused:
        capsys.readouterr()
        code = main(list(words))
        told = capsys.readouterr()
        return Refused(code, told.out + told.err)

    return verb


def source(tmp_path: Path) -> bytes:
    return (tmp_path / "repo" / "a.py").read_bytes()


# ---- another patch under a task's name -------------------------------------------------------------------------------


def test_a_patch_that_was_put_in_its_place_is_not_applied(
    settings: Settings, tmp_path: Path, run: Callable[..., Refused]
) -> None:
    """Whole and with right digests in itself: only the record knows another."""
    record = keep_task(settings, tmp_path / "repo")
    (record.dir / "patch.json").write_bytes(dump(patch_json(EVIL)))
    found = run("apply", record.id)
    assert found.code == 1
    assert "is not what task" in found.said
    assert "what to do" in found.said
    assert source(tmp_path) == b"a = 1\n"
    (record.dir / "patch.json").write_bytes(dump(patch_json(PATCH)))
    assert run("apply", record.id).code == 0


def test_a_proposal_that_was_put_in_its_place_is_not_applied(
    settings: Settings, tmp_path: Path, run: Callable[..., Refused]
) -> None:
    record = keep_proposals(settings, tmp_path / "repo")
    (record.dir / "proposal-2.json").write_bytes(dump(patch_json(EVIL)))
    found = run("apply", record.id, "--choose", "2")
    assert (found.code, "it was altered" in found.said) == (1, True)
    assert source(tmp_path) == b"a = 1\n"
    assert run("apply", record.id, "--choose", "1").code == 0


@pytest.mark.parametrize("verb", ["apply", "undo"])
def test_another_repository_is_not_written_to(
    verb: str, settings: Settings, tmp_path: Path, run: Callable[..., Refused]
) -> None:
    record = landed(settings, tmp_path) if verb == "undo" else keep_task(settings, tmp_path / "repo")
    other = tmp_path / "other"
    shutil.copytree(tmp_path / "repo", other)
    before = (other / "a.py").read_bytes()
    kept = record.dir / "task.json"
    kept.write_bytes(kept.read_bytes().replace(str(tmp_path / "repo").encode(), str(other).encode()))
    found = run(verb, record.id)
    assert (found.code, "names another repository" in found.said, str(tmp_path / "repo") in found.said) == (
        1,
        True,
        True,
    )
    assert (other / "a.py").read_bytes() == before


def test_facts_that_were_made_to_fit_are_told_by_the_journal(
    settings: Settings, tmp_path: Path, run: Callable[..., Refused]
) -> None:
    record = keep_task(settings, tmp_path / "repo")
    (record.dir / "patch.json").write_bytes(dump(patch_json(EVIL)))
    facts = record.dir / "evidence.json"
    told = json.loads(facts.read_bytes())
    told.update(patch=EVIL.digest, files=[{"path": "a.py", "before": digest_of(b"a = 1\n"), "after": "x"}])
    facts.write_bytes(json.dumps(told).encode())
    found = run("apply", record.id)
    assert (found.code, "evidence.json was altered: entry" in found.said) == (1, True)
    assert source(tmp_path) == b"a = 1\n"


@pytest.mark.parametrize("verb", ["attest", "apply", "replay"])
def test_a_whole_journal_of_their_own_is_not_believed_where_a_key_had_signed_another(
    verb: str, settings: Settings, tmp_path: Path, run: Callable[..., Refused]
) -> None:
    """Chain and head hold, facts and patch fit: only what the key signed before tells."""
    assert main(["key", "new"]) == 0
    record = keep_task(settings, tmp_path / "repo")
    assert run("attest", record.id).code == 0
    told = json.loads((record.dir / "evidence.json").read_bytes())
    files = [{"path": "a.py", "before": digest_of(b"a = 1\n"), "after": digest_of(EVIL.changes[0].after)}]
    told.update(patch=EVIL.digest, diff=digest_of(unified_diff(EVIL)), files=files)
    forged = canonical(told)
    (record.dir / "evidence.json").write_bytes(forged)
    (record.dir / "patch.json").write_bytes(dump(patch_json(EVIL)))
    shutil.rmtree(settings.state_dir / "audit")
    log = AuditLog(settings.state_dir)
    asked = {"task": record.id, "asked": digest_of((record.dir / "task.json").read_bytes())}
    log.append(AuditKind.TASK_STARTED, asked)
    log.append(AuditKind.TASK_ENDED, {"task": record.id, "evidence": digest_of(forged)})
    found = run(verb, record.id)
    assert (found.code, "is not what was signed" in found.said, "what to do" in found.said) == (1, True, True)
    assert source(tmp_path) == b"a = 1\n"


def landed(settings: Settings, tmp_path: Path) -> TaskRecord:
    record = keep_task(settings, tmp_path / "repo")
    assert main(["apply", record.id]) == 0
    return record


def test_other_bytes_are_not_put_back(settings: Settings, tmp_path: Path, run: Callable[..., Refused]) -> None:
    """The bytes that stood before, replaced together with their digest in the landing's record."""
    record = landed(settings, tmp_path)
    undo, evil = record.dir / "undo", b"import os  # theirs\n"
    (undo / f"{digest_of(evil).removeprefix('sha256:')}.bytes").write_bytes(evil)
    kept = undo / "landing.json"
    whole = kept.read_bytes()
    told = json.loads(whole)
    told["files"][0]["before"] = digest_of(evil)
    kept.write_bytes(json.dumps(told).encode())
    found = run("undo", record.id)
    assert (found.code, "it was altered" in found.said, "by hand" in found.said) == (1, True, True)
    assert source(tmp_path) == b"a = 2\n"
    kept.write_bytes(whole)
    assert run("undo", record.id).code == 0
    assert source(tmp_path) == b"a = 1\n"


def test_another_file_is_not_put_back(settings: Settings, tmp_path: Path, run: Callable[..., Refused]) -> None:
    record = landed(settings, tmp_path)
    (tmp_path / "repo" / "b.py").write_bytes(b"a = 2\n")
    kept = record.dir / "undo" / "landing.json"
    told = json.loads(kept.read_bytes())
    told["files"][0]["path"] = "b.py"
    kept.write_bytes(json.dumps(told).encode())
    found = run("undo", record.id)
    assert (found.code, "it was altered" in found.said) == (1, True)
    assert (tmp_path / "repo" / "b.py").read_bytes() == b"a = 2\n"


@pytest.mark.parametrize(
    "landing",
    [
        b"",
        b"[]",
        b"null",
        b"[" * 200_000,
        b'{"a":' * 100_000,
        b"9" * 5000,
        b'{"schema":"localagent/landing/1"}',
        ("mode", 1e999),
        ("mode", 10**30),
        ("mode", True),
        ("uid", -1),
        ("mtime_ns", 10**40),
        ("mtime_ns", "0"),
        ("path", "../../etc/passwd"),
        ("path", "\x00"),
        ("before", "../../../etc/passwd"),
        ("temporary", ".."),
    ],
    ids=lambda x: str(x)[:30],
)
def test_a_record_of_landing_that_is_none_is_refused(
    landing: bytes | tuple[str, object], settings: Settings, tmp_path: Path, run: Callable[..., Refused]
) -> None:
    record = landed(settings, tmp_path)
    kept = record.dir / "undo" / "landing.json"
    if isinstance(landing, tuple):
        told = json.loads(kept.read_bytes())
        told["files"][0][landing[0]] = landing[1]
        landing = json.dumps(told).encode()
    kept.write_bytes(landing)
    found = run("undo", record.id)
    assert (found.code, "what to do" in found.said) == (1, True), found.said
    assert source(tmp_path) == b"a = 2\n"


# ---- things that are no files, where files were --------------------------------------------------------------------


def fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def huge(path: Path) -> None:
    with path.open("ab") as stream:
        stream.truncate(3 << 30)


INSTEAD = (fifo, endless, loop, folder, huge)


@pytest.mark.long
@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("instead", INSTEAD, ids=lambda f: f.__name__)
def test_what_is_no_file_of_ours_is_refused_and_waited_for_by_nobody(
    instead: Callable[[Path], None], settings: Settings, tmp_path: Path, run: Callable[..., Refused]
) -> None:
    assert main(["key", "new"]) == 0
    record = landed(settings, tmp_path)
    bundle = tmp_path / "fix.jsonl"
    assert main(["attest", record.id, "--out", str(bundle)]) == 0
    state, audit = settings.state_dir, settings.state_dir / "audit"
    blob = next((record.dir / "undo").glob("*.bytes"))
    todo: list[tuple[Path, tuple[str, ...]]] = [
        (record.dir / "undo" / "landing.json", ("undo", record.id)),
        (blob, ("undo", record.id)),
        (record.dir / "patch.json", ("attest", record.id)),
        (record.dir / "evidence.json", ("attest", record.id)),
        (record.dir / "task.json", ("show", record.id)),
        (record.dir / "policy.json", ("replay", record.id)),
        (audit / "head.json", ("audit", "verify")),
        (audit / "heads.jsonl", ("audit", "verify")),
        (audit / "audit-000000000000.jsonl", ("audit", "verify")),
        (settings.data_dir / "keys" / "ring.json", ("key", "list")),
        (bundle, ("attest", "verify", str(bundle))),
    ]
    if instead in (fifo, loop, endless):
        todo += [
            (audit / "lock", ("audit", "sign")),
            (audit / "lock", ("audit", "verify")),
            (settings.data_dir / "keys" / "lock", ("key", "rotate")),
        ]
    for path, words in todo:
        away = tmp_path / "away"
        shutil.copytree(state, away / "state", symlinks=True)
        shutil.copytree(settings.data_dir, away / "data", symlinks=True)
        kept = bundle.read_bytes()
        instead(path)
        found = run(*words)
        assert found.code in (1, 2), (path, words, found)
        assert "localagent: " in found.said or found.said.startswith("altered"), (path, words, found)
        for place, copy in ((state, away / "state"), (settings.data_dir, away / "data")):
            shutil.rmtree(place)
            copy.rename(place)
        shutil.rmtree(away)
        if path == bundle:
            if bundle.is_dir() and not bundle.is_symlink():
                bundle.rmdir()
            else:
                bundle.unlink()
            bundle.write_bytes(kept)
    assert run("undo", record.id).code == 0


def test_without_its_journal_a_task_is_not_replayed(
    settings: Settings, tmp_path: Path, run: Callable[..., Refused]
) -> None:
    record = keep_task(settings, tmp_path / "repo", patch=OTHER)
    found = run("replay", record.id)
    assert (found.code, "journal.jsonl is missing" in found.said, "what to do" in found.said) == (1, True, True)
