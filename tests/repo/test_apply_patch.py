"""Landing and undoing: exact, whole or not at all, and a refusal names the file."""

import os
import resource
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from localagent.domain.edit import FileChange, FileFate, Patch
from localagent.domain.paths import RepoPath
from localagent.errors import AnswerIsNo
from localagent.repo import apply_patch as land_module
from localagent.repo.apply_patch import CannotLand, TreeDiffers, land, landing_state, recover, undo
from localagent.repo.apply_record import FileRecord, LandingDamaged, LandState, load_landing, save_landing

OLD = 1_500_000_000_123_456_789


def make_tree(root: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        os.utime(path, ns=(OLD, OLD))
    return root


def patch_of(root: Path, changes: dict[str, bytes]) -> Patch:
    before = {n: (root / n).read_bytes() if (root / n).exists() else b"" for n in changes}
    return Patch(
        changes=tuple(FileChange(path=RepoPath(n), before=before[n], after=changes[n]) for n in sorted(changes))
    )


def state(root: Path) -> dict[str, tuple[bytes, int, int]]:
    out = {}
    for path in sorted(root.rglob("*")):
        if not path.is_dir():
            seen = path.lstat()
            out[str(path.relative_to(root))] = (path.read_bytes(), seen.st_mode, seen.st_mtime_ns)
    return out


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    root = make_tree(tmp_path / "repo", {"a.py": b"a = 1\r\n", "pkg/b c.py": b"b = 2", "pkg/other.py": b"o = 3\n"})
    (root / "a.py").chmod(0o754)
    return root


@pytest.fixture
def patch(repo: Path) -> Patch:
    return patch_of(repo, {"a.py": b"a = 10\r\n", "pkg/b c.py": b"b = 20\n"})


def test_lands_exactly_and_leaves_the_rest_alone(repo: Path, patch: Patch, tmp_path: Path) -> None:
    before = state(repo)
    land(patch, repo, tmp_path / "undo")
    now = state(repo)
    assert (now["a.py"][0], now["pkg/b c.py"][0]) == (b"a = 10\r\n", b"b = 20\n")
    assert now["a.py"][1] == before["a.py"][1]
    assert now["pkg/other.py"] == before["pkg/other.py"]
    assert set(now) == set(before)
    assert landing_state(tmp_path / "undo") is LandState.LANDED


def test_undo_brings_bytes_mode_and_time_back(repo: Path, patch: Patch, tmp_path: Path) -> None:
    before = state(repo)
    land(patch, repo, tmp_path / "undo")
    (repo / "a.py").chmod(0o600)
    assert undo(repo, tmp_path / "undo") == ("a.py", "pkg/b c.py")
    assert state(repo) == before
    assert landing_state(tmp_path / "undo") is LandState.UNDONE
    land(patch, repo, tmp_path / "undo")
    assert (repo / "a.py").read_bytes() == b"a = 10\r\n"


NEW = RepoPath("pkg/test_b.py")


def test_a_file_that_is_made_goes_again_and_the_folder_says_who_may_read_it(repo: Path, tmp_path: Path) -> None:
    (repo / "pkg").chmod(0o750)
    before = state(repo)
    patch = patch_of(repo, {"a.py": b"a = 10\r\n", NEW: b"new"})
    land(patch, repo, tmp_path / "undo", made=[NEW])
    assert ((repo / NEW).read_bytes(), (repo / NEW).stat().st_mode & 0o777) == (b"new", 0o640)
    assert undo(repo, tmp_path / "undo") == ("a.py", NEW)
    assert state(repo) == before
    land(patch, repo, tmp_path / "undo", made=[NEW])
    (repo / NEW).write_bytes(b"mine")
    with pytest.raises(TreeDiffers, match="test_b"):
        undo(repo, tmp_path / "undo")
    assert (repo / NEW).read_bytes() == b"mine"


@pytest.mark.parametrize("restored", [False, True])
@pytest.mark.parametrize("folder", [False, True])
def test_a_killed_undoing_ends_though_the_folder_of_what_it_removed_is_gone(
    folder: bool, restored: bool, repo: Path, tmp_path: Path
) -> None:
    made, keep = RepoPath("more/test_b.py"), tmp_path / "undo"
    (repo / "more").mkdir()
    before = state(repo)
    land(patch_of(repo, {"a.py": b"a = 10\r\n", made: b"new"}), repo, keep, made=[made])
    landing = load_landing(keep)
    assert landing is not None
    save_landing(keep, replace(landing, state=LandState.UNDOING))  # killed here, or after some of the files
    (repo / made).unlink()
    if restored:
        (repo / "a.py").write_bytes(b"a = 1\r\n")
    if not folder:
        (repo / "more").rmdir()
    assert recover(repo, keep)
    assert landing_state(keep) is LandState.LANDED
    assert undo(repo, keep) == (("a.py", made) if folder else ("a.py",))
    assert state(repo) == before


@pytest.mark.parametrize("kind", ["file", "empty", "link", "folder"])
def test_nothing_is_written_over_by_a_file_that_is_made(kind: str, repo: Path, tmp_path: Path) -> None:
    patch = patch_of(repo, {"a.py": b"a = 10\r\n", NEW: b"new"})
    if kind == "link":
        (repo / NEW).symlink_to("nowhere")
    elif kind == "folder":
        (repo / NEW).mkdir()
    else:
        (repo / NEW).write_bytes(b"" if kind == "empty" else b"x")
    with pytest.raises(TreeDiffers, match="something stands there"):
        land(patch, repo, tmp_path / "undo", made=[NEW])
    assert (repo / "a.py").read_bytes() == b"a = 1\r\n"
    assert landing_state(tmp_path / "undo") is LandState.NONE


def test_no_folder_is_made(repo: Path, tmp_path: Path) -> None:
    with pytest.raises(TreeDiffers, match="more/x"):
        land(patch_of(repo, {"more/x.py": b"new"}), repo, tmp_path / "undo", made=[RepoPath("more/x.py")])


def test_refuses_a_tree_that_is_another(repo: Path, patch: Patch, tmp_path: Path) -> None:
    (repo / "pkg/b c.py").write_bytes(b"b = 3")
    before = state(repo)
    with pytest.raises(TreeDiffers, match=r"b c\.py"):
        land(patch, repo, tmp_path / "undo")
    assert state(repo) == before


def test_refuses_when_a_file_is_gone(repo: Path, patch: Patch, tmp_path: Path) -> None:
    (repo / "a.py").unlink()
    with pytest.raises(TreeDiffers, match=r"a\.py"):
        land(patch, repo, tmp_path / "undo")


def test_undo_refuses_what_was_changed_since(repo: Path, patch: Patch, tmp_path: Path) -> None:
    land(patch, repo, tmp_path / "undo")
    (repo / "a.py").write_bytes(b"mine\n")
    before = state(repo)
    with pytest.raises(TreeDiffers, match=r"a\.py"):
        undo(repo, tmp_path / "undo")
    assert state(repo) == before


@pytest.mark.parametrize("then", ["undo", "land"])
def test_files_put_back_by_other_means_are_no_patch_any_more(then: str, tmp_path: Path) -> None:
    """After `git checkout` or `git stash` the task is neither stuck as applied nor does undoing write anything."""
    root = make_tree(tmp_path / "repo", {"a.py": b"a = 1\n", "b.py": b"b = 2\n"})
    changes = patch_of(root, {"a.py": b"a = 100\n", "b.py": b"b = 3\n"}).changes
    made = FileChange(path=RepoPath("new/c.py"), before=b"", after=b"c = 1\n", fate=FileFate.CREATED)
    patch, keep = Patch(changes=(*changes, made)), tmp_path / "undo"
    land(patch, root, keep)
    for change in changes:
        (root / change.path).write_bytes(change.before)
    with pytest.raises(TreeDiffers, match=r"'a\.py' was changed since the patch was applied$"):
        undo(root, keep)  # one of its files stands there still
    shutil.rmtree(root / "new")
    before = state(root)
    if then == "undo":
        assert undo(root, keep) == ()
        assert landing_state(keep) is LandState.UNDONE
        assert state(root) == before
    land(patch, root, keep)
    assert (root / "new/c.py").read_bytes() == b"c = 1\n"
    assert len(undo(root, keep)) == 3


def test_landing_twice_and_undoing_twice_are_refused(repo: Path, patch: Patch, tmp_path: Path) -> None:
    with pytest.raises(AnswerIsNo, match="nothing"):
        undo(repo, tmp_path / "undo")
    land(patch, repo, tmp_path / "undo")
    with pytest.raises(AnswerIsNo, match="already"):
        land(patch, repo, tmp_path / "undo")
    undo(repo, tmp_path / "undo")
    with pytest.raises(AnswerIsNo, match="nothing"):
        undo(repo, tmp_path / "undo")


def test_undo_of_another_repository_is_refused(repo: Path, patch: Patch, tmp_path: Path) -> None:
    land(patch, repo, tmp_path / "undo")
    (tmp_path / "other").mkdir()
    with pytest.raises(AnswerIsNo, match="not to"):
        undo(tmp_path / "other", tmp_path / "undo")


def test_damaged_record_is_refused(repo: Path, patch: Patch, tmp_path: Path) -> None:
    land(patch, repo, tmp_path / "undo")
    for blob in (tmp_path / "undo").glob("*.bytes"):
        blob.write_bytes(b"forged")
    with pytest.raises(LandingDamaged):
        undo(repo, tmp_path / "undo")
    (tmp_path / "undo" / "landing.json").write_text("{}")
    with pytest.raises(LandingDamaged):
        undo(repo, tmp_path / "undo")


@pytest.mark.parametrize("step", range(1, 7))
def test_a_fault_at_any_step_leaves_everything_as_it_was(
    step: int, repo: Path, patch: Patch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = state(repo)
    count = 0
    real = os.fsync

    def failing(descriptor: int) -> None:
        nonlocal count
        count += 1
        if count == step + 5:  # the record's own writes come first
            raise OSError(28, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", failing)
    try:
        land(patch, repo, tmp_path / "undo")
    except CannotLand:
        assert state(repo) == before
        assert landing_state(tmp_path / "undo") is LandState.NONE
    else:
        assert landing_state(tmp_path / "undo") is LandState.LANDED


def test_interruption_is_rolled_back(repo: Path, patch: Patch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = state(repo)
    real = land_module._rename

    def interrupted(root: int, record: FileRecord) -> None:
        monkeypatch.setattr(land_module, "_rename", real)
        real(root, record)
        raise KeyboardInterrupt

    monkeypatch.setattr(land_module, "_rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        land(patch, repo, tmp_path / "undo")
    assert state(repo) == before


def test_file_size_limit_of_the_process(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "repo", {"a.py": b"a", "big.py": b"b"})
    made = patch_of(root, {"a.py": b"A", "big.py": b"x" * 200_000})
    before = state(root)
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, old[1]))
        with pytest.raises(CannotLand):
            land(made, root, tmp_path / "undo")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, handler)
    assert state(root) == before


OLD_FILES = {"f0.py": b"old 0", "d/f1.py": b"old 1"}
MADE = RepoPath("d/test_f1.py")
NEW_FILES = {"f0.py": b"new 0", "d/f1.py": b"new 1", MADE: b"made"}
CALLS = ("open", "write", "fsync", "rename", "unlink", "fchmod", "utime")


def killed_child(step: int, work: Callable[[], object]) -> bool:
    """Run something in a real process that dies of SIGKILL before its n-th writing system call; whether it did."""
    pid = os.fork()
    if pid == 0:
        count = 0

        def counting(real: Callable[..., object]) -> Callable[..., object]:
            def call(*args: object, **kwargs: object) -> object:
                nonlocal count
                count += 1
                if count == step:
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*args, **kwargs)

            return call

        try:
            for name in CALLS:
                setattr(os, name, counting(getattr(os, name)))
            work()
        finally:
            os._exit(0)
    _, status = os.waitpid(pid, 0)
    return os.WIFSIGNALED(status)


def check_before_or_after(repo: Path, keep: Path) -> bool:
    """Each file is whole now; after recovery all are of one side. Whether recovery had work to do."""
    for name, data in OLD_FILES.items():
        assert (repo / name).read_bytes() in (data, NEW_FILES[name])
    worked = recover(repo, keep)
    found = {str(p.relative_to(repo)): p.read_bytes() for p in repo.rglob("*") if p.is_file()}
    assert found in (OLD_FILES, NEW_FILES)
    assert (landing_state(keep) is LandState.LANDED) == (found == NEW_FILES)
    if found == OLD_FILES:
        assert all((repo / name).stat().st_mtime_ns == OLD for name in OLD_FILES)
    return worked


@pytest.mark.long
@pytest.mark.parametrize("verb", ["land", "undo"])
def test_killed_before_any_system_call_the_next_run_finds_before_or_after(verb: str, tmp_path: Path) -> None:
    worked = 0
    for step in range(1, 500):
        repo, keep = make_tree(tmp_path / f"repo{step}", OLD_FILES), tmp_path / f"undo{step}"
        patch = patch_of(repo, NEW_FILES)
        if verb == "undo":
            land(patch, repo, keep, made=[MADE])
        run = partial(land, patch, repo, keep, made=[MADE]) if verb == "land" else partial(undo, repo, keep)
        died = killed_child(step, run)
        worked += check_before_or_after(repo, keep)
        if not died:
            break
    assert not died
    assert worked > 10


def half_landed(tmp_path: Path) -> int:
    """The step before which a killed landing leaves one file new and the other old."""
    for step in range(20, 500):
        repo = make_tree(tmp_path / f"try{step}", OLD_FILES)
        patch = patch_of(repo, NEW_FILES)
        killed_child(step, partial(land, patch, repo, tmp_path / f"keep{step}", made=[MADE]))
        new = [(repo / n).exists() and (repo / n).read_bytes() == data for n, data in NEW_FILES.items()]
        if any(new) and not all(new):
            return step
    raise AssertionError("no such step")


@pytest.mark.long
def test_killed_during_recovery_too(tmp_path: Path) -> None:
    half = half_landed(tmp_path)
    for step in range(1, 500):
        repo, keep = make_tree(tmp_path / f"repo{step}", OLD_FILES), tmp_path / f"undo{step}"
        patch = patch_of(repo, NEW_FILES)
        killed_child(half, partial(land, patch, repo, keep, made=[MADE]))
        assert landing_state(keep) is LandState.LANDING
        died = killed_child(step, lambda: recover(repo, keep))  # noqa: B023
        check_before_or_after(repo, keep)
        if not died:
            break
    assert not died
