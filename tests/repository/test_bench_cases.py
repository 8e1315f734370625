"""The project's own repair cases: enough, varied, readable, and the built file is theirs."""

import ast
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bench import casefile, run  # noqa: E402
from bench.judge import Judgement, git, judge, make_repository, oracle_diff, write  # noqa: E402

CASES = casefile.read_all()


def test_the_built_file_is_theirs() -> None:
    built = casefile.read_built(casefile.BUILT)
    for case in built:
        assert 0 < case.expect["visible"] < case.expect["hidden"], case.id
        case.expect.clear()
    assert built == CASES, "run: .venv/bin/python bench/run.py --build"


def test_enough_and_varied() -> None:
    assert len(CASES) >= 45
    assert len({case.kind for case in CASES}) >= 30


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.id)
def test_sources(case: casefile.Case) -> None:
    """Only cases that say so fail to parse; the oracle always parses and stays small."""
    broken = False
    for path, text in case.files.items():
        try:
            ast.parse(text)
        except SyntaxError:
            broken = True
        ast.parse(case.oracle.get(path, text))
    assert broken == case.kind.startswith("syntax")
    assert len("".join(case.files.values()).splitlines()) >= 15


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("case: a\nkind: b\n\n--- file m.py\nx\n", "needs"),
        ("case: a\nkind: b\n\n--- file ../m.py\nx\n", "outside"),
        (
            "case: a\nkind: b\n\n--- file m.py\nx\nx\n--- visible t.py\n1\n--- hidden u.py\n1\n"
            "--- fix m.py\n<<<<\nx\n====\ny\n>>>>\n",
            "stands 2 times",
        ),
    ],
)
def test_bad_cases_are_refused(text: str, reason: str) -> None:
    with pytest.raises(casefile.CaseError, match=reason):
        casefile.parse(text, "bad.case")


@pytest.mark.parametrize(
    ("status", "diff", "outcome"),
    [
        (1, b"", Judgement.NONE),
        (124, b"", Judgement.NONE),
        (0, b"", Judgement.CONTRACT),
        (1, b"diff", Judgement.CONTRACT),
        (3, b"", Judgement.CRASH),
        (4, b"diff", Judgement.CRASH),
    ],
)
def test_exit_status_and_patch_must_agree(status: int, diff: bytes, outcome: Judgement) -> None:
    assert run.outcome_of(CASES[0], status, diff) is outcome


@pytest.mark.long
def test_the_judge_tells_good_from_bad() -> None:
    """One case through the real judge: its oracle, an overfitted patch, a patch that edits a test, and nonsense."""
    case = next(case for case in CASES if case.id == "lease-end")
    assert judge(case, oracle_diff(case)) is Judgement.CORRECT
    assert judge(case, b"not a diff\n") is Judgement.BROKE

    def diff_of(files: dict[str, str]) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder, "tree")
            make_repository(root, case)
            write(root, files)
            return git(root, "diff").stdout

    source = case.files["leases.py"]
    cheat = source.replace("    index = day", "    if months in (1, 3, 12):\n        months -= 1\n    index = day")
    assert judge(case, diff_of({"leases.py": cheat})) is Judgement.OVERFIT
    assert judge(case, diff_of({"tests/test_leases.py": "def test_x():\n    pass\n"})) is Judgement.UNSAFE
