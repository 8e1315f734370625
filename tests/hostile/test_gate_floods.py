"""Patches made to exhaust, to mislead, or to break what is written about them."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from localagent.app.review.patch_gate import GateRequest, review_patch
from localagent.app.settings import Settings
from localagent.cli.main import main
from localagent.domain.review import PatchReview, PatchVerdict

SETTINGS = Settings.from_environ({})


def added(path: bytes, text: bytes, name: bytes | None = None) -> bytes:
    lines = text.removesuffix(b"\n").split(b"\n")
    quoted = name or path
    head = b"diff --git " + b" ".join(_side(s, quoted) for s in (b"a/", b"b/")) + b"\nnew file mode 100644\n"
    marks = b"--- /dev/null\n+++ " + _side(b"b/", quoted) + b"\n"
    return head + marks + b"@@ -0,0 +1,%d @@\n" % len(lines) + b"".join(b"+" + x + b"\n" for x in lines)


def _side(prefix: bytes, name: bytes) -> bytes:
    return b'"' + prefix + name[1:] if name.startswith(b'"') else prefix + name


def judge(repo: Path, patch: bytes) -> PatchReview:
    return review_patch(GateRequest(patch=patch, repo=repo, everything=True), SETTINGS)


def rules(review: PatchReview) -> set[str]:
    return {str(f.rule) for d in review.decisions for f in d.findings}


@pytest.mark.long
@pytest.mark.parametrize(
    ("path", "text"),
    [
        (b"a.py", b"#" * 55_000),
        (b"a.py", b"# " + b"type: " * 9_000),
        (b"a.py", b"x = " + b"(" * 20_000),
        (b"a.py", b"x = " + b"-" * 50_000 + b"1"),
        (b"a.md", b" " * 55_000),
        (b"a.md", b"-eyJ" * 13_000),
        (b"a.md", b"secret: " * 7_000),
        (b"a.md", b"a://b:" * 9_000),
        (b"a.md", "\u202e".encode() * 18_000),
        (b"tests/test_a.py", b"def test_a():\n" + b"    assert True\n" * 590),
    ],
    ids=lambda value: str(value[:12]),
)
def test_repetition_costs_no_more_than_its_length(tmp_path: Path, path: bytes, text: bytes) -> None:
    assert "gate-error" not in rules(judge(tmp_path, added(path, text)))  # a square of the length would never end


@pytest.mark.long
def test_so_much_is_refused_and_not_read_further(tmp_path: Path) -> None:
    review = judge(tmp_path, added(b"a.py", b"x=1\n" * 200_000))
    assert {"size-bytes", "size-lines"} <= rules(review)
    assert review.decisions[-1].gate == "size"


def test_many_lines_without_a_diff_are_a_limit(tmp_path: Path) -> None:
    assert rules(judge(tmp_path, b"\n" * 100_000)) == {"patch-limit"}


NAMES = [
    b'"pkg/\\033[2Ja.py"',
    b'"pkg/a\\nb.py"',
    b'"pkg/<script>alert(1)<\\057script>.py"',
    b'"pkg/]]>\\"&\'.md"',
    b'"pkg/\\377\\376.py"',
    b'"pkg/\\342\\200\\256yp.a.py"',
    b'"pkg/%s%n{0}${HOME}.py"',
]


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES, ids=lambda n: n.decode("ascii"))
def test_hostile_names_and_contents_stay_text_in_every_output(
    tmp_path: Path, name: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    repo = tmp_path / "r"
    repo.mkdir()
    text = b"x = eval('<img src=x onerror=alert(1)>')  # \x1b[31m ]]> \xff\n"
    (tmp_path / "p").write_bytes(added(b"", text, name))
    out = [tmp_path / n for n in ("o.sarif", "o.xml", "o.html")]
    args = ["gate", str(tmp_path / "p"), "--repo", str(repo), "--all"]
    assert main([*args, "--sarif", str(out[0]), "--junit", str(out[1]), "--html", str(out[2])]) == 1
    said = capsys.readouterr().out
    assert not [c for c in said if ord(c) < 32 and c not in "\n\t"]
    json.loads(out[0].read_text("ascii"))
    ET.fromstring(out[1].read_bytes())
    page = out[2].read_text("utf-8")
    assert "<script" not in page
    assert "<img" not in page
    assert main([*args, "--json"]) == 1
    json.loads(capsys.readouterr().out)


def test_a_finding_stays_when_the_file_is_taken_away_and_put_elsewhere(tmp_path: Path) -> None:
    code = b"import os\n\n\ndef f(x):\n    os.system(x)\n"
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "tool.py").write_bytes(code)
    moved = b"diff --git a/tests/tool.py b/pkg.py\nsimilarity index 100%\nrename from tests/tool.py\nrename to pkg.py\n"
    review = judge(tmp_path, moved)
    assert "run-process" in rules(review)
    assert review.verdict is PatchVerdict.REFUSED
