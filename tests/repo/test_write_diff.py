"""What `unified_diff` writes, real `git apply` takes, to the byte."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from localagent.domain.edit import FileChange, Patch
from localagent.domain.paths import RepoPath
from localagent.repo.diff.write_diff import quoted_name, unified_diff

GIT = shutil.which("git")
needs_git = pytest.mark.skipif(GIT is None, reason="git is not installed")
NEUTRAL = {
    "PATH": os.environ.get("PATH", ""),
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "LC_ALL": "C",
}


def git_apply(folder: Path, patch: Patch) -> None:
    """Lay out `before`, apply the diff with git, compare with `after`."""
    assert GIT is not None
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for c in patch.changes:
        (folder / c.path).parent.mkdir(parents=True, exist_ok=True)
        (folder / c.path).write_bytes(c.before)
    subprocess.run([GIT, "init", "-q"], cwd=folder, env=NEUTRAL, check=True)
    done = subprocess.run(
        [GIT, "apply", "--whitespace=nowarn", "-"],
        cwd=folder,
        env=NEUTRAL,
        input=unified_diff(patch),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, (done.stderr, unified_diff(patch))
    for c in patch.changes:
        assert (folder / c.path).read_bytes() == c.after


def patch_of(*changes: tuple[str, bytes, bytes]) -> Patch:
    made = (FileChange(path=RepoPath(p), before=b, after=a) for p, b, a in changes)
    return Patch(changes=tuple(sorted(made, key=lambda c: c.path)))


LONG = b"".join(b"line %d\n" % n for n in range(60))
CASES = {
    "a line": ("a.py", b"a\nb\nc\n", b"a\nX\nc\n"),
    "no newline before": ("a.py", b"a\nb", b"a\nb\n"),
    "no newline after": ("a.py", b"a\nb\n", b"a\nb"),
    "no newline at all": ("a.py", b"a", b"b"),
    "CRLF": ("a.py", b"a\r\nb\r\nc\r\n", b"a\r\nX\r\nc\r\n"),
    "CRLF to LF": ("a.py", b"a\r\nb\r\n", b"a\nb\r\n"),
    "lone CR": ("a.py", b"a\rb\rc", b"a\rX\rc"),
    "latin-1": ("a.py", "é\nü\n".encode("latin-1"), "é\nö\n".encode("latin-1")),
    "form feed": ("a.py", b"a\n\x0c\nb\n", b"a\n\x0c\nc\n"),
    "into an empty file": ("a.py", b"", b"a\n"),
    "to an empty file": ("a.py", b"a\nb\n", b""),
    "first line": ("a.py", LONG, b"new\n" + LONG),
    "last line": ("a.py", LONG, LONG + b"new\n"),
    "two hunks": ("a.py", LONG, LONG.replace(b"line 3\n", b"x\n").replace(b"line 50\n", b"y\nz\n")),
    "hunks that touch": ("a.py", LONG, LONG.replace(b"line 10\n", b"x\n").replace(b"line 17\n", b"y\n")),
    "hunks just apart": ("a.py", LONG, LONG.replace(b"line 10\n", b"x\n").replace(b"line 18\n", b"y\n")),
    "lines that look like a diff": ("a.py", b"--- a\n+++ b\n@@ -1 +1 @@\n", b"--- a\n-- b\n\\ No newline\n"),
    "blank in the name": ("my dir/a b.py", b"a\n", b"b\n"),
    "quote in the name": ('d/"a"\\.py', b"a\n", b"b\n"),
    "newline in the name": ("d/a\nb\t.py", b"a\n", b"b\n"),
    "umlaut in the name": ("d/ü.py", b"a\n", b"b\n"),
    "no UTF-8 in the name": ("d/\udcff.py", b"a\n", b"b\n"),
    "diff words in the name": ("a/b/x.py b", b"a\n", b"b\n"),
}


@needs_git
@pytest.mark.parametrize("name", CASES)
def test_git_applies_it(name: str, tmp_path: Path) -> None:
    git_apply(tmp_path / "r", patch_of(CASES[name]))


@needs_git
def test_several_files_in_one_diff(tmp_path: Path) -> None:
    git_apply(tmp_path / "r", patch_of(("b.py", LONG, LONG + b"x"), ("a/ü c.py", b"1\n", b"2\n"), ("z", b"", b"\n")))


_LINES = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\r\n", b"\n", b" \n", b"-\n", b"\xff\n", b"same\n"]), max_size=25)
_END = st.sampled_from([b"", b"tail", b"a", b"\r"])


@needs_git
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=_LINES, after=_LINES, ends=st.tuples(_END, _END))
def test_law_git_applies_any_two_texts(
    before: list[bytes], after: list[bytes], ends: tuple[bytes, bytes], tmp_path: Path
) -> None:
    one, two = b"".join(before) + ends[0], b"".join(after) + ends[1]
    if one != two:
        git_apply(tmp_path / "r", patch_of(("f.py", one, two)))


def test_a_change_that_changes_nothing_is_left_out() -> None:
    assert unified_diff(patch_of(("a", b"x\n", b"x\n"))) == b""


def test_text_of_a_small_diff() -> None:
    assert unified_diff(patch_of(("pkg/m.py", b"a\nb\nc\n", b"a\nx\nc\n"))) == (
        b"diff --git a/pkg/m.py b/pkg/m.py\n--- a/pkg/m.py\n+++ b/pkg/m.py\n@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n"
    )


def test_two_unlike_large_files_are_one_hunk() -> None:
    one = b"".join(b"a%d\n" % n for n in range(5000))
    assert unified_diff(patch_of(("a", one, one.replace(b"a", b"b")))).count(b"@@ -") == 1


@pytest.mark.parametrize(
    ("name", "quoted"),
    [("a/b.py", b"a/b.py"), ("a b", b"a b"), ("ü", b'"\\303\\274"'), ("\x7f\x01", b'"\\177\\001"'), ('"', b'"\\""')],
)
def test_names_are_quoted_as_git_does(name: str, quoted: bytes) -> None:
    assert quoted_name(name) == quoted
