"""`attest --note`: a command to type, or a note written when asked; and a note verified against its commit."""

import shlex
import subprocess
from pathlib import Path

import pytest
from support.evidence_builder import PATCH, keep_task, settings_below
from support.git_builder import ENVIRON, Repo

from localagent.app.settings import Settings
from localagent.cli.main import main
from localagent.record.audit.entry import AuditKind
from localagent.record.audit.verify_chain import check_audit
from localagent.repo.diff.write_diff import unified_diff
from localagent.repo.git_notes import REF

Said = pytest.CaptureFixture[str]


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    return settings_below(tmp_path, monkeypatch)


@pytest.fixture
def repo(settings: Settings, tmp_path: Path) -> Repo:
    """A commit that does not hold the patch, and one that does."""
    made = Repo(tmp_path / "repo")
    made.git("add", "a.py")
    made.commit("before")
    made.stage("a.py", PATCH.changes[0].after)
    made.commit("after")
    assert main(["key", "new"]) == 0
    return made


def kinds(settings: Settings) -> list[AuditKind]:
    return [entry.kind for entry in check_audit(settings.state_dir / "audit").entries]


def refs(repo: Repo) -> bytes:
    return repo.git("for-each-ref")


def test_the_command_is_printed_and_nothing_written(
    settings: Settings, repo: Repo, tmp_path: Path, capsys: Said
) -> None:
    record, out, before = keep_task(settings, repo.folder), tmp_path / "b", refs(repo)
    capsys.readouterr()
    assert main(["attest", record.id, "--note", "HEAD", "--out", str(out)]) == 0
    words = capsys.readouterr().out.strip()
    assert shlex.split(words)[:5] == ["git", "-C", str(repo.folder), "notes", f"--ref={REF}"]
    assert refs(repo) == before
    assert AuditKind.NOTED not in kinds(settings)
    subprocess.run(["sh", "-c", words], env=ENVIRON, check=True)
    assert repo.git("notes", f"--ref={REF}", "show", "HEAD") == out.read_bytes()
    diff = tmp_path / "d"
    diff.write_bytes(unified_diff(PATCH))
    assert main(["attest", "verify", "--note", "HEAD", "--repo", str(repo.folder), "--patch", str(diff)]) == 0


def test_written_only_when_asked_and_on_the_record(settings: Settings, repo: Repo, capsys: Said) -> None:
    record = keep_task(settings, repo.folder)
    assert main(["attest", record.id, "--note", "HEAD", "--write"]) == 0
    assert main(["attest", "verify", "--note", "HEAD", "--repo", str(repo.folder)]) == 0
    assert kinds(settings)[-3:] == [AuditKind.ATTESTED, AuditKind.NOTING, AuditKind.NOTED]
    assert main(["apply", record.id]) in (0, 1)  # an approval more, so another bundle
    assert main(["key", "rotate"]) == 0
    assert main(["attest", record.id, "--note", "HEAD", "--write"]) == 1
    assert "another note" in capsys.readouterr().err
    assert kinds(settings)[-2:] == [AuditKind.NOTING, AuditKind.REFUSED]


def test_a_note_counts_only_for_a_commit_that_holds_the_patch(settings: Settings, repo: Repo, capsys: Said) -> None:
    record = keep_task(settings, repo.folder)
    assert main(["attest", record.id, "--note", "HEAD~1", "--write"]) == 1
    assert "does not hold the patch" in capsys.readouterr().err
    assert main(["attest", record.id, "--note", "HEAD", "--write"]) == 0
    repo.git("notes", f"--ref={REF}", "copy", "HEAD", "HEAD~1")  # anybody may hang it elsewhere
    capsys.readouterr()
    assert main(["attest", "verify", "--note", "HEAD~1", "--repo", str(repo.folder)]) == 1
    assert "about another commit" in capsys.readouterr().err
    repo.git("notes", f"--ref={REF}", "append", "-m", "more", "HEAD")
    assert main(["attest", "verify", "--note", "HEAD", "--repo", str(repo.folder)]) == 1
    repo.git("notes", f"--ref={REF}", "remove", "HEAD")
    assert main(["attest", "verify", "--note", "HEAD", "--repo", str(repo.folder)]) == 1
    assert "has no note" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "fault"),
    [
        (["x", "--note", "HEAD"], "--out FILE; or --write"),
        (["x", "--write"], "--write: only with --note"),
        (["x", "--repo", "."], "--repo: only with --note"),
        (["x", "--note", "HEAD", "--write", "--redact"], "--redact cannot be"),
        (["verify", "file", "--note", "HEAD"], "not both"),
        (["verify", "file", "--write"], "--write is not used with `verify`"),
        (["verify", "file", "--redact"], "--redact is not used with `verify`"),
        (["verify"], "name the file, or --note"),
    ],
)
def test_faults_of_usage(settings: Settings, capsys: Said, args: list[str], fault: str) -> None:
    assert main(["attest", *args]) == 2
    assert fault in capsys.readouterr().err


def test_exports_that_were_cut_or_redacted(settings: Settings, tmp_path: Path, capsys: Said) -> None:
    keep_task(settings, tmp_path / "repo")
    out = tmp_path / "out"
    assert main(["audit", "export", "--out", str(out)]) == 0
    whole = out.read_bytes()
    assert main(["audit", "verify", "--file", str(out), "--to", "1"]) == 0
    assert "whole: 2 entries" in capsys.readouterr().out
    out.write_bytes(whole[:-9])
    assert main(["audit", "verify", "--file", str(out)]) == 1
    assert "ends within a line" in capsys.readouterr().out
    assert main(["audit", "export", "--out", str(out), "--redact"]) == 0
    assert str(tmp_path).encode() in whole
    assert str(tmp_path).encode() not in out.read_bytes()
    assert main(["audit", "verify", "--file", str(out)]) == 0
    assert "cannot prove" in capsys.readouterr().err
    assert main(["audit", "verify", "--file", str(out), "--from", "1"]) == 2
