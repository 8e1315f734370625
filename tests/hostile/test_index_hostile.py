"""Files made to hang, crash or mislead an indexer: each is named or indexed, and the rest is searchable."""

import os
from functools import partial
from pathlib import Path

import pytest
from support.git_builder import Repo, armed
from support.index_builder import index_of

from localagent.app.code import repository_index
from localagent.code.index.extract import stored_chunks
from localagent.code.index.languages import LANGUAGES, is_installed
from localagent.jail.compute.compute_pool import ComputePool
from localagent.repo.git import Git
from localagent.repo.git_history import changed_paths

SOURCES: dict[str, bytes] = {
    "brackets.py": b"(" * 3_000 + b")" * 3_000,
    "squares.py": b"[" * 100_000,
    "minus.py": b"-" * 50_000 + b"1",
    "plus.py": b"x=" + b"1+" * 50_000 + b"1",
    "dots.py": b"a" + b".b" * 50_000,
    "calls.py": b"f" + b"()" * 50_000,
    "lambdas.py": b"lambda:" * 20_000 + b"0",
    "nots.py": b"not " * 50_000 + b"x",
    "ifs.py": b"1 if x else " * 20_000 + b"2",
    "deep.py": b"".join(b" " * n + b"if x:\n" for n in range(200)) + b" " * 200 + b"pass\n",
    "classes.py": b"".join(b" " * n + b"class A:\n" for n in range(95)) + b" " * 95 + b"pass\n",
    "rot13.py": b"# coding: rot13\nvzcbeg bf\n",
    "utf7.py": b"# coding: utf-7\n+AAo-\n",
    "hex.py": b"# coding: hex\n00\n",
    "punycode.py": b"# coding: punycode\n" + b"a-" * 20_000,
    "unknown.py": b"# coding: ../../etc/passwd\nx=1\n",
    "idna.py": b"# coding: idna\n" + b"x" * 60_000,
    "escape.py": b"# coding: unicode_escape\nx='\\\n",
    "bom.py": b"\xef\xbb\xbfx=1\n",
    "nul.py": b"x = 1\0\n",
    "latin.py": b"x = '\xe9'\n",
    "cr.py": b"x=1\ry=2\r",
    "quotes.py": b"'''" * 50_001,
    "backslashes.py": b'"' + b"\\" * 300_001,
    "fstrings.py": b'f"' + b'{f"' * 2_000,
    "tabs.py": b"if x:\n\ty\n        z\n",
    "digits.py": b"x = " + b"9" * 100_000,
    "line.py": b"x = '" + b"a" * 1_000_000 + b"'",
    "empty.py": b"",
    "walrus.py": b"(" * 90 + b"x:=1" + b")" * 90,
    "defaults.py": b"def f(" + b"a=[" * 80 + b"]" * 80 + b"): pass\n",
    "surrogate.py": b"x = '\\ud800'\ndef f():\n    '''\\udfff'''\n",
    "json.json": b"[" * 200_000,
    "wide.md": b"word " * 200_000,
    "escape.md": b"\x1b]0;owned\x07 \x1b[2J clear\n",
    "sum.js": b"x = 1" + b"+1\n" * 50_000,
    "bytes.js": bytes(range(1, 256)) * 2_000,
    "templates.js": b"`${`\n" * 1_000,
    "classes.js": b"class A { a() { return class \n" * 1_000,
    "minified.js": b"function f(){};" * 20_000,
    "angles.ts": b"a<\n" * 20_000,
    "quotes.ts": b"'\"\\\n" * 20_000,
    "types.ts": b"type A = {\n" * 500,
    "bytes.ts": bytes(range(1, 256)) * 2_000,
    "tags.tsx": b"<a>\n" * 1_000,
    "braces.go": b"{\n" * 1_000,
    "quotes.go": b"`\n" * 20_001,
    "bytes.go": bytes(range(1, 256)) * 2_000,
    "functions.go": b"func f() {\n" * 500,
    "comment.rs": b"/*\n" * 20_000,
    "angles.rs": b"a<\n" * 20_000,
    "hashes.rs": b"r" + b"#" * 300 + b'"\n',
    "bytes.rs": bytes(range(1, 256)) * 2_000,
    "conditions.c": b"#if X\n" * 10_000,
    "structs.c": b"struct a {\n" * 1_000,
    "continued.c": b"#define A \\\n" * 10_000,
    "bytes.c": bytes(range(1, 256)) * 2_000,
    "pointers.h": b"int " + b"*" * 300 + b"\nf(void);\n",
    "bidi.py": "x = '\u202e'  # \u2066 reversed\n".encode(),
}


@pytest.mark.long
def test_every_hostile_file_is_named_or_indexed(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    for name, data in SOURCES.items():
        (root / name).write_bytes(data)
    with (root / "huge.py").open("wb") as huge:
        huge.truncate(100 << 20)
    os.mkfifo(root / "fifo.py")
    (root / "passwd.py").symlink_to("/etc/passwd")
    (root / "loop").symlink_to(".")
    (root / "line\nfeed.py").write_text("def odd_name(): pass\n")
    Path(os.fsdecode(os.fsencode(root) + b"/\xff\xfe.py")).write_text("def odd_bytes(): pass\n")
    (root / "good.py").write_text("def needle_function():\n    return 1\n")
    index = index_of(root, tmp_path)
    seen = {*index.files(), *index.status().unreadable}
    assert {*SOURCES, "huge.py", "fifo.py", "line\nfeed.py", "\udcff\udcfe.py", "good.py"} <= seen
    assert "passwd.py" not in index.files()
    assert index.status().unreadable["huge.py"] == "larger than 2 MiB"
    assert index.status().unreadable["fifo.py"] == "not a regular file"
    assert index.search("needle_function").hits[0].path == "good.py"
    assert index.search("odd_bytes").hits[0].path == "\udcff\udcfe.py"
    assert [p for p, _, _ in index.facts(["good.py"])] == ["good.py"]


@pytest.mark.long
@pytest.mark.skipif(not is_installed(LANGUAGES[".js"]), reason="the extra [languages] is not installed")
def test_what_a_parser_does_not_finish_is_searched_as_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    (root / "deep.js").write_bytes(b"needle_word\n" + (b"(" * 300 + b"\n") * 500)  # quadratic in a query's cursor
    monkeypatch.setattr(repository_index, "ComputePool", partial(ComputePool, seconds=1.0))
    index = index_of(root, tmp_path)
    assert index.status().unreadable == {"deep.js": "takes longer than 1 s to parse: searched as text"}
    assert [hit.path for hit in index.search("needle_word").hits] == ["deep.js"]


def test_a_parser_that_points_to_heads_which_are_not_there_is_not_believed() -> None:
    rows = [["function", 1, 1, "f", "", "", ["", "", "", "", ""], True]]
    with pytest.raises(ValueError, match="a head that the facts do not have"):
        stored_chunks({"chunks": rows}, b"")


def test_no_filter_runs_to_tell_what_differs(tmp_path: Path) -> None:
    repo, mark = Repo(tmp_path / "r"), tmp_path / "ran"
    repo.stage("m.py", "a = 1\n")
    repo.stage(".gitattributes", "* filter=evil diff=evil\n")
    repo.commit()
    armed(repo, mark)
    repo.git("config", "filter.evil.required", "true")
    repo.write("m.py", "a = 2\n")
    assert changed_paths(Git(repo.folder, {})) == ["m.py"]
    assert not mark.exists()
    repo.git("config", "filter.e=vil.clean", f"touch {mark}")  # no option can name it
    assert changed_paths(Git(repo.folder, {})) == []
    assert not mark.exists()
