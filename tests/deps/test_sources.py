"""Requirements, requirements files and pyproject.toml: strict, and no bytes break the reader."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.deps.requirement import parse_requirement
from localagent.deps.sources import Item, parse_project, parse_requirements
from localagent.deps.squat import KnownNames
from localagent.domain.dependency import UnreadableRequirement, Wanted
from localagent.errors import UsageFault
from localagent.fs.bounded_read import matches_below, read_below, read_named

KNOWN = KnownNames(["requests", "numpy"])
DIGEST = "ab" * 32


def lines(text: str) -> list[Item]:
    return parse_requirements(text.encode(), "r.txt", KNOWN)


def why(text: str) -> str:
    [item] = lines(text)
    assert isinstance(item, UnreadableRequirement), item
    return item.why


def test_a_requirement_is_read_whole() -> None:
    item = parse_requirement("Foo.Bar[x,A_b]>=1,<2; python_version > '3'", "here", KNOWN)
    assert isinstance(item, Wanted)
    assert (item.name, item.specifier, item.extras) == ("foo-bar", "<2,>=1", ("a-b", "x"))
    assert item.marker == 'python_version > "3"'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("foo @ https://example/x.whl", "direct address"),
        ("https://example/x.whl", "direct address"),
        ("file:///x.whl", "direct address"),
        ("git+ssh://h/x", "version control"),
        ("./foo", "local path"),
        ("../foo", "local path"),
        ("foo/bar", "local path"),
        ("foo-1.0-py3-none-any.whl", "local path"),
        ("foo-1.0.tar.gz", "local path"),
        ("~/foo", "local path"),
        ("-e .", "option"),
        ("foo ==", "not a requirement"),
        ("foo bar", "not a requirement"),
        ("r\u0435quests", "outside ASCII"),
        ("x" * 101, "longer than 100"),
        ("x" * 1001, "longer than 1000"),
        ("foo; " + "(" * 500, "not a requirement"),
        ("foo\x00", "not a requirement"),
    ],
)
def test_what_is_not_a_name_is_refused_with_the_reason(text: str, reason: str) -> None:
    item = parse_requirement(text, "here", KNOWN)
    assert isinstance(item, UnreadableRequirement)
    assert reason in item.why


def test_a_disguised_name_tells_whom_it_imitates() -> None:
    item = parse_requirement("r\u0435quests>=2", "here", KNOWN)
    assert isinstance(item, UnreadableRequirement)
    assert item.likeness is not None
    assert item.likeness.known == "requests"


def test_a_requirements_file_is_read_with_hashes_and_lines() -> None:
    text = f"# a\n\nfoo==1 \\\n    --hash=sha256:{DIGEST} \\\n    --hash sha256:{'cd' * 32}  # two\nbar>=2 # why\n"
    foo, bar = lines(text + "--require-hashes\n--only-binary :all:\n--no-index\n")
    assert isinstance(foo, Wanted)
    assert isinstance(bar, Wanted)
    assert (foo.name, foo.specifier, foo.source) == ("foo", "==1", "r.txt:3")
    assert foo.hashes == {DIGEST, "cd" * 32}
    assert (bar.name, bar.source, bar.hashes) == ("bar", "r.txt:6", frozenset())


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("-e ./x", "editable"),
        ("-e./x", "editable"),
        ("--editable=./x", "editable"),
        ("-i https://x", "another index"),
        ("--index-url https://x", "another index"),
        ("--extra-index-url=https://x", "another index"),
        ("--find-links x", "another place"),
        ("-f x", "another place"),
        ("--trusted-host x", "network"),
        ("-r other.txt", "-r of its own"),
        ("-rother.txt", "-r of its own"),
        ("-c other.txt", "not followed"),
        ("--no-binary :all:", "wheels only"),
        ("--pre", "not taken here"),
        ("foo --install-option=x", "not taken here"),
        ("foo --config-settings x=y", "not taken here"),
        ("foo --hash=md5:abc", "not a SHA-256"),
        ("foo --hash=sha256:abc", "not a SHA-256"),
        ("foo==${VERSION}", "a variable"),
        ("foo @ git+https://x", "direct address"),
        ("\\\n-e x", "editable"),
    ],
)
def test_what_a_requirements_file_may_not_say(line: str, reason: str) -> None:
    assert reason in why(line)


@given(st.binary(max_size=200))
def test_no_bytes_break_the_readers(data: bytes) -> None:
    for read in (parse_requirements, parse_project):
        with contextlib.suppress(UsageFault):
            assert all(isinstance(item, Wanted | UnreadableRequirement) for item in read(data, "f", KNOWN))


@given(st.text(alphabet="ab-=\\\n #[]><!;@.\r\"'{}$-e", max_size=80))
def test_no_text_breaks_the_readers(text: str) -> None:
    assert all(isinstance(item, Wanted | UnreadableRequirement) for item in lines(text))


def test_files_that_are_not_utf8_are_refused() -> None:
    with pytest.raises(UsageFault, match="not UTF-8"):
        parse_requirements(b"\xff", "r.txt", KNOWN)


@pytest.mark.parametrize("character", ["\x0c", "\x0b", "\x1c", "\x85", "\u2028", "\u2029", "\x00"])
def test_what_pip_would_take_for_a_new_line_is_refused(character: str) -> None:
    with pytest.raises(UsageFault, match=r"r\.txt:2: a control character"):
        lines(f"foo\n# a comment{character}evil\n")


def test_a_declared_encoding_is_refused_unless_it_is_ours() -> None:
    with pytest.raises(UsageFault, match="declares another encoding"):
        lines("# -*- coding: utf-7 -*-\nfoo\n")
    assert len(lines("# -*- coding: utf-8 -*-\nfoo\n")) == 1


@pytest.mark.long
def test_too_many_requirements_are_refused() -> None:
    with pytest.raises(UsageFault, match="more than 20,000"):
        lines("a\n" * 20_002)


def test_a_project_is_read_everywhere_it_asks() -> None:
    text = """
    [build-system]
    requires = ["b1"]
    [project]
    dependencies = ["d1", "d2>=1"]
    [project.optional-dependencies]
    x = ["o1"]
    [dependency-groups]
    dev = ["g1", {include-group = "x"}]
    """
    items = parse_project(text.encode(), "p.toml", KNOWN)
    assert [item.name for item in items if isinstance(item, Wanted)] == ["d1", "d2", "b1", "o1", "g1"]
    assert len(items) == 5


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[project]\ndependencies = 'x'", "must be an array"),
        ("[project]\ndependencies = [3]", "not a requirement"),
        ("[project]\ndependencies = [{include-group = 'x'}]", "not a requirement"),
        ("[project]\ndynamic = ['dependencies']", "computed while building"),
        ("[tool.poetry.dependencies]\nx = '*'", "another tool"),
        ("[tool.uv.sources]\nx = {path = '.'}", "another tool"),
    ],
)
def test_what_of_a_project_cannot_be_read_is_refused(text: str, reason: str) -> None:
    [item] = parse_project(text.encode(), "p.toml", KNOWN)
    assert isinstance(item, UnreadableRequirement)
    assert reason in item.why


def test_repository_files_are_never_reached_through_links(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "lock.txt").write_text("secret")
    repo = tmp_path / "repo"
    repo.mkdir()
    (repo / "requirements").symlink_to(outside)
    (repo / "link.txt").symlink_to(outside / "lock.txt")
    (repo / "real.txt").write_text("x")
    assert read_below(repo, "real.txt", 10) == b"x"
    for name in ("requirements/lock.txt", "link.txt"):
        with pytest.raises(OSError, match=r"not a regular file|Not a directory"):
            read_below(repo, name, 10)
    with pytest.raises(OSError, match="larger than"):
        read_below(repo, "real.txt", 0)
    with pytest.raises(OSError, match="the root itself"):
        read_below(repo, "", 10)


def test_a_fifo_does_not_block(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "f")
    with pytest.raises(UsageFault, match="not a regular file"):
        read_named(tmp_path / "f", 10)
    assert matches_below(tmp_path, "none/*.txt") == []
    assert matches_below(tmp_path, "*") == ["f"]
