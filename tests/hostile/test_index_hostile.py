"""Files made to hang, crash or mislead an indexer: each is named or indexed, and the rest is searchable."""

import os
from pathlib import Path

import pytest
from support.index_builder import index_of

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
