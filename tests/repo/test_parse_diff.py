"""What we render is read back; what git writes is applied as git applies it; nothing but DiffFault comes out."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from localagent.domain.diff import ChangeKind, DiffFault, DiffRule, FileMode
from localagent.domain.edit import FileChange, Patch
from localagent.domain.paths import RepoPath
from localagent.repo.diff.apply_in_memory import apply_diff
from localagent.repo.diff.parse_diff import MAX_PATCH_BYTES, parse_diff
from localagent.repo.diff.write_diff import unified_diff

GIT = shutil.which("git")
NEUTRAL = {
    "PATH": os.environ.get("PATH", ""),
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "LC_ALL": "C",
}
LINES = st.lists(st.sampled_from([b"a", b"b", b"", b"- x", b"+y", b"\\ z", b"@@ -1 +1 @@", b"c\r", b" d"]), max_size=14)
TEXTS = st.builds(lambda lines, end: b"\n".join(lines) + (b"\n" if end and lines else b""), LINES, st.booleans())
NAMES = st.sampled_from(
    ["a.py", "pkg/b.py", "two words.py", 'q"uote.py', "tab\there.py", "\u00fc.py", "b/a.py", "x b/x.py"]
)


def lay_out(root: Path, path: str, data: bytes) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(data)


@pytest.mark.long
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=NAMES, before=TEXTS, after=TEXTS)
def test_what_we_render_is_read_back(tmp_path: Path, name: str, before: bytes, after: bytes) -> None:
    if before == after or not before or not after:
        return  # a rendering has no new and no empty files
    shutil.rmtree(tmp_path / "r", ignore_errors=True)
    lay_out(tmp_path / "r", name, before)
    change = FileChange(path=RepoPath(name), before=before, after=after)
    (found,) = apply_diff(parse_diff(unified_diff(Patch(changes=(change,)))), tmp_path / "r")
    assert (found.path, found.before, found.after) == (name, before, after)
    assert found.kind is ChangeKind.MODIFIED
    at, out = 0, b""
    for splice in found.splices:
        out += before[at : splice.start] + splice.text
        at = splice.end
    assert out + before[at:] == after


@pytest.mark.long
@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300))
def test_bytes_are_a_diff_or_a_fault(data: bytes) -> None:
    fault = fault_of(data, None)
    assert fault is None or (fault.what and fault.remedy and fault.exit_code == 1)


def fault_of(data: bytes, root: Path | None) -> DiffFault | None:
    """What a text is refused with; anything else that is raised fails the test."""
    try:
        diff = parse_diff(data)
        if root is not None:
            apply_diff(diff, root)
    except DiffFault as fault:
        return fault
    return None


PIECES = st.sampled_from(
    [
        b"diff --git a/x b/x\n", b"--- a/x\n", b"+++ b/x\n", b"--- /dev/null\n", b"+++ /dev/null\n", b"@@ -1 +1 @@\n",
        b"@@ -0,0 +1 @@\n", b"@@ -1,2 +1 @@\n", b"-a\n", b"+b\n", b" c\n", b"\n", b"\\ No newline at end of file\n",
        b"new file mode 100644\n", b"deleted file mode 100644\n", b"old mode 100644\n", b"new mode 100755\n",
        b"index 1234567..89abcde 100644\n", b"rename from x\n", b"rename to y\n", b"GIT binary patch\n", b"literal 3\n",
        b"Kc${\n", b"Binary files a/x and b/x differ\n", b"similarity index 90%\n", b"-- \n",
        b'diff --git "a/\\303x" b/x\n',
        b"+", b"@@@ -1 -1 +1 @@@\n", b"diff --cc x\n", b'--- "a/x\n',
    ]
)  # fmt: skip


@pytest.mark.long
@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(PIECES, max_size=12))
def test_pieces_of_diffs_are_a_diff_or_a_fault(tmp_path: Path, pieces: list[bytes]) -> None:
    fault = fault_of(b"".join(pieces), tmp_path)
    assert fault is None or fault.remedy


@pytest.mark.long
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=TEXTS, after=TEXTS, moved=st.booleans(), bit=st.booleans())
@pytest.mark.skipif(GIT is None, reason="git is not installed")
def test_what_git_writes_is_applied_as_git_does(
    tmp_path: Path, before: bytes, after: bytes, moved: bool, bit: bool
) -> None:
    assert GIT is not None
    root = tmp_path / "g"
    shutil.rmtree(root, ignore_errors=True)
    lay_out(root, "pkg/old.py", b"head 1\nhead 2\nhead 3\nhead 4\n" + before)
    git = [GIT, "-c", "user.name=x", "-c", "user.email=x@x"]

    def run(*args: str) -> bytes:
        return subprocess.run([*git, *args], cwd=root, env=NEUTRAL, check=True, capture_output=True).stdout

    run("init", "-q")
    run("add", "-A")
    target = "pkg/new.py" if moved else "pkg/old.py"
    run("commit", "-qm", "x")
    (root / "pkg/old.py").rename(root / target)
    lay_out(root, target, b"head 1\nhead 2\nhead 3\nhead 4\n" + after)
    if bit:
        (root / target).chmod(0o755)
    run("add", "-A")
    diff = run("diff", "--cached", "-M10%", "--text")
    run("reset", "-q", "--hard")
    if not diff:
        return
    changes = {c.path: c for c in apply_diff(parse_diff(diff), root)}
    assert changes[RepoPath(target)].after == b"head 1\nhead 2\nhead 3\nhead 4\n" + after
    assert changes[RepoPath(target)].after_mode is (FileMode.EXECUTABLE if bit else FileMode.REGULAR)
    if moved and len(changes) == 1:
        assert changes[RepoPath(target)].source == "pkg/old.py"


HEAD = b"diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n"


def refused(root: Path, diff: bytes) -> DiffFault:
    with pytest.raises(DiffFault) as caught:
        apply_diff(parse_diff(diff), root)
    return caught.value


def test_a_hunk_moves_only_to_the_one_place_where_it_fits(tmp_path: Path) -> None:
    hunk = b"@@ -2,3 +2,3 @@\n one\n-two\n+TWO\n three\n"
    lay_out(tmp_path, "a.py", b"x\ny\nz\none\ntwo\nthree\n")
    (found,) = apply_diff(parse_diff(HEAD + hunk), tmp_path)
    assert (found.after, found.offsets) == (b"x\ny\nz\none\nTWO\nthree\n", (2,))
    lay_out(tmp_path, "a.py", b"x\none\ntwo\nthree\none\ntwo\nthree\n")
    assert apply_diff(parse_diff(HEAD + hunk), tmp_path)[0].offsets == (0,)  # it fits where it says
    lay_out(tmp_path, "a.py", b"one\ntwo\nthree\none\ntwo\nthree\n")
    assert "2 times" in str(refused(tmp_path, HEAD + hunk))


def test_a_moved_hunk_that_fits_twice_by_its_offset_is_refused(tmp_path: Path) -> None:
    lay_out(tmp_path, "a.py", b"new\na\nb\nc\nd\nx\ny\nx\ny\n")
    hunks = b"@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n@@ -6,2 +6,2 @@\n-x\n+X\n y\n"
    assert apply_diff(parse_diff(HEAD + hunks), tmp_path)[0].offsets == (1, 0)
    lay_out(tmp_path, "a.py", b"n1\nn2\na\nb\nc\nx\ny\nx\ny\n")
    assert refused(tmp_path, HEAD + hunks).rule is DiffRule.MISMATCH


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    lay_out(tmp_path / "out", "a.py", b"a\n")
    root = tmp_path / "r"
    root.mkdir()
    (root / "pkg").symlink_to(tmp_path / "out")
    (root / "a.py").symlink_to(tmp_path / "out" / "a.py")
    below = HEAD.replace(b"/a.py", b"/pkg/a.py") + b"@@ -1 +1 @@\n-a\n+b\n"
    assert "cannot be read" in str(refused(root, below))
    assert refused(root, HEAD + b"@@ -1 +1 @@\n-a\n+b\n").rule is DiffRule.MISMATCH
    new = b"diff --git a/pkg/n.py b/pkg/n.py\nnew file mode 100644\n--- /dev/null\n+++ b/pkg/n.py\n@@ -0,0 +1 @@\n+x\n"
    assert "cannot be read" in str(refused(root, new))


def test_a_fifo_or_a_folder_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.py")
    assert refused(tmp_path, HEAD + b"@@ -1 +1 @@\n-a\n+b\n").rule is DiffRule.MISMATCH
    (tmp_path / "a.py").unlink()
    (tmp_path / "a.py").mkdir()
    assert "folder" in str(refused(tmp_path, HEAD + b"@@ -1 +1 @@\n-a\n+b\n"))


def test_what_is_too_much_is_refused_before_it_is_read() -> None:
    with pytest.raises(DiffFault) as caught:
        parse_diff(b"x" * (MAX_PATCH_BYTES + 1))
    assert caught.value.rule is DiffRule.LIMIT


def test_repeated_lines_do_not_cost_much(tmp_path: Path) -> None:
    lay_out(tmp_path, "a.py", b"a\n" * 60_000)
    hunk = b"@@ -1,1001 +1,1001 @@\n" + b" a\n" * 1000 + b"-b\n+c\n"
    assert refused(tmp_path, HEAD + hunk).rule is DiffRule.MISMATCH
    hunk = b"@@ -70000,1000 +70000,1000 @@\n" + b" a\n" * 999 + b"-a\n+c\n"
    assert "times" in str(refused(tmp_path, HEAD + hunk))


def test_a_binary_part_is_told_and_not_decoded(tmp_path: Path) -> None:
    head = b"diff --git a/x.bin b/x.bin\nnew file mode 100644\nindex 0000000..1234567\n"
    (found,) = apply_diff(
        parse_diff(head + b"GIT binary patch\nliteral 3\nKc${kqVQ~Nc00;mA\n\nliteral 0\nHcmV?d00001\n\n"), tmp_path
    )
    assert found.binary
    assert found.after == b""
    with pytest.raises(DiffFault):
        parse_diff(head + b"GIT binary patch\nliteral 3\nnot base 85\n\n")


def test_lines_are_not_joined(tmp_path: Path) -> None:
    lay_out(tmp_path, "a.py", b"a\nb")
    assert refused(tmp_path, HEAD + b"@@ -1 +1 @@\n-a\n+x\n\\ No newline at end of file\n").rule is DiffRule.MISMATCH
    ok = b"@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n"
    assert apply_diff(parse_diff(HEAD + ok), tmp_path)[0].after == b"a\nc"
