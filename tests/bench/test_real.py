"""The runner of real fixes, on a small throw-away history made here. No package index is reached."""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bench.real import facts, judge, layout, reach, run, stage  # noqa: E402

needs_jail = pytest.mark.skipif(shutil.which("bwrap") is None, reason="the judge needs a bwrap on PATH")

BUGGY = (
    "def clamp(x, low, high):\n    '''Keep x inside.'''\n    if x > high:\n        return low\n    return max(x, low)\n"
)
FIXED = BUGGY.replace("'''Keep x inside.'''", "'''Keep it inside.'''").replace(
    "return low\n    ret", "return high\n    ret"
)
TESTS = "from pack.clamp import clamp\n\n\ndef test_inside():\n    assert clamp(2, 1, 3) == 2\n"
MORE = TESTS + "\n\ndef test_above():\n    assert clamp(9, 1, 3) == 3\n"


def _git(where: Path, *args: str) -> str:
    who = ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "init.defaultBranch=main"]
    return subprocess.run(["git", *who, *args], cwd=where, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def clones(tmp_path: Path) -> Path:
    """A folder with one clone, `pack`, of two commits: the bug, and its fix with a test."""
    clone = tmp_path / "clones" / "pack"
    (clone / "src" / "pack").mkdir(parents=True)
    (clone / "tests").mkdir()
    _git(clone, "init", "--quiet")
    (clone / "src/pack/__init__.py").write_text("from pack._version import version\n")
    (clone / "src/pack/clamp.py").write_text(BUGGY)
    (clone / "tests/test_clamp.py").write_text(TESTS)
    (clone / ".gitignore").write_text("_version.py\n")
    (clone / ".gitattributes").write_text("tests export-ignore\n")
    _git(clone, "add", "-A")
    _git(clone, "commit", "--quiet", "-m", "bug")
    (clone / "src/pack/clamp.py").write_text(FIXED)
    (clone / "tests/test_clamp.py").write_text(MORE)
    _git(clone, "commit", "--quiet", "-am", "fix")
    return tmp_path / "clones"


def _fact(clones: Path, **changes: Any) -> facts.Fact:
    values: dict[str, Any] = {
        "name": "pack-clamp",
        "repository": "someone/pack",
        "licence": "MIT",
        "fix": _git(clones / "pack", "rev-parse", "HEAD"),
        "parent": _git(clones / "pack", "rev-parse", "HEAD~1"),
        "test_files": ("tests/test_clamp.py",),
        "tests": ("tests/test_clamp.py",),
        "fail_to_pass": ("tests.test_clamp::test_above",),
        "requires": ("pytest==8.4.2",),
        "distribution": "pack",
        "version": "1.0",
        "import_root": "src",
        "generated": {"src/pack/_version.py": "version = '1.0'\n"},
    }
    return facts.Fact(**{**values, **changes})


@pytest.fixture
def own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment has this interpreter's packages instead of fetched ones; the rest is as always."""
    real = layout._run

    def offline(argv: list[str]) -> None:
        if "venv" in argv:
            real(argv)
            site = layout._site(Path(argv[-1]))
            packages = Path(pytest.__file__).parents[1]
            shutil.copy(packages / "py.py", site)
            for name in ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments"):
                shutil.copytree(packages / name, site / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif "install" not in argv:
            real(argv)

    monkeypatch.setattr(layout, "_run", offline)


def test_the_facts_that_ship_are_sound() -> None:
    known = facts.load()
    kept_out = {"ansible", "black", "cookiecutter", "fastapi", "httpie", "keras", "luigi", "matplotlib", "pandas",
                "pysnooper", "sanic", "scrapy", "spacy", "thefuck", "tornado", "tqdm", "youtube-dl"}  # fmt: skip
    assert len(known) >= 14
    assert len({f.repository for f in known}) >= 5
    assert not {f.project.lower() for f in known} & kept_out
    assert all(f.fix != f.parent for f in known)


def test_every_fault_of_a_facts_file_is_named(tmp_path: Path) -> None:
    bad = tmp_path / "facts.toml"
    bad.write_text(
        '[[fact]]\nname = "Bad Name"\nrepository = "x"\nlicence = "MIT"\nfix = "abc"\nparent = "def"\n'
        'test_files = ["../up.py"]\ntests = ["t"]\nfail_to_pass = ["t"]\nrequires = ["pytest>=8"]\n'
        'distribution = "x"\nversion = "1"\n[[fact]]\nname = "other"\nsurprise = 1\n'
    )
    with pytest.raises(facts.FactsError) as caught:
        facts.load(bad)
    text = str(caught.value)
    for part in ("fix must be a full", "parent must be a full", "not pinned: pytest>=8", "leaves the repository",
                 "lower-case", "owner/name", "unknown key surprise", "requires must be"):  # fmt: skip
        assert part in text


def test_layout_is_the_parent_with_the_tests_of_the_fix(clones: Path, tmp_path: Path) -> None:
    fact = _fact(clones)
    tree = tmp_path / "tree"
    layout.lay_out(fact, layout.clone_of(fact, clones), tree)
    assert (tree / "src/pack/clamp.py").read_text() == BUGGY
    assert (tree / "tests/test_clamp.py").read_text() == MORE  # export-ignore does not count
    assert (tree / "src/pack/_version.py").is_file()
    assert _git(tree, "status", "--porcelain") == ""
    assert _git(tree, "rev-list", "--count", "HEAD") == "1"
    layout.apply_true_fix(layout.true_fix(fact, layout.clone_of(fact, clones)), tree)
    assert (tree / "src/pack/clamp.py").read_text() == FIXED


def test_true_fix_leaves_tests_out_and_counts_lines_in_the_parent(clones: Path) -> None:
    fix = layout.true_fix(_fact(clones), clones / "pack")
    assert fix.lines == {"src/pack/clamp.py": frozenset({2, 4})}


def test_a_missing_clone_and_a_missing_commit_are_told(clones: Path, tmp_path: Path) -> None:
    with pytest.raises(layout.LayoutError, match="git clone"):
        layout.clone_of(_fact(clones), tmp_path / "nowhere")
    with pytest.raises(layout.LayoutError, match="tree object"):
        layout.lay_out(_fact(clones, parent="0" * 40), clones / "pack", tmp_path / "tree")


def test_hooks_of_a_clone_do_not_run(clones: Path, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    for name in ("post-checkout", "pre-commit", "post-index-change"):
        hook = clones / "pack/.git/hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {mark}\n")
        hook.chmod(0o755)
    layout.lay_out(_fact(clones), clones / "pack", tmp_path / "tree")
    assert not mark.exists()


@pytest.mark.long
@needs_jail
def test_self_check_holds_and_can_fail(clones: Path, tmp_path: Path, own_environment: None) -> None:
    args = argparse.Namespace(repos=clones, work=tmp_path / "work", venvs=None)
    good = run.self_check(_fact(clones), args)
    assert good == {"name": "pack-clamp", "ok": True, "faults": [], "tests": 2}
    wrong = run.self_check(_fact(clones, fail_to_pass=("tests.test_clamp::test_inside",)), args)
    assert wrong["faults"] == [
        "does not fail before: tests.test_clamp::test_inside",
        "not named in fail_to_pass: tests.test_clamp::test_above",
    ]


@needs_jail
def test_the_judge_runs_tests_without_network_or_home(clones: Path, tmp_path: Path, own_environment: None) -> None:
    fact = _fact(clones)
    tree = tmp_path / "tree"
    layout.lay_out(fact, clones / "pack", tree)
    (tree / "tests/test_clamp.py").write_text(
        "import os, socket, pathlib\ndef test_net():\n    s = socket.socket()\n    s.connect(('127.0.0.1', 9))\n"
        f"def test_home():\n    assert not pathlib.Path({str(clones)!r}).exists()\n"
        "    assert os.environ['HOME'] == '/tmp'\n"
    )
    python = layout.environment(fact, tmp_path / "venvs", tree)
    verdicts = judge.run_tests(tree, python, fact.tests)
    assert verdicts.tests == {"tests.test_clamp::test_net": "failed", "tests.test_clamp::test_home": "passed"}, (
        verdicts.log
    )


@pytest.mark.long
@needs_jail
@pytest.mark.parametrize(
    ("patch", "expected", "exact"),
    [("return high", "solved", True), ("return min(x, high)", "solved", False), ("return 4", "wrong", False)],
)
def test_a_patch_is_judged(
    clones: Path,
    tmp_path: Path,
    own_environment: None,
    monkeypatch: pytest.MonkeyPatch,
    patch: str,
    expected: str,
    exact: bool,
) -> None:
    agent, program = tmp_path / "agent", tmp_path / "agent.py"
    agent.write_text(f"#!/bin/sh\nexec '{sys.executable}' '{program}' \"$@\"\n")
    program.write_text(
        "import difflib, json, pathlib, sys\n"
        "a = dict(zip(sys.argv[2::1], sys.argv[3::1]))\n"
        "f = 'src/pack/clamp.py'\n"
        "old = (pathlib.Path(a['--repo']) / f).read_text()\n"
        f"new = old.replace('return low', {patch!r}, 1)\n"
        "d = difflib.unified_diff(old.splitlines(True), new.splitlines(True), 'a/' + f, 'b/' + f)\n"
        "pathlib.Path(a['--out']).write_text(''.join(d))\n"
        "pathlib.Path(a['--report']).write_text(json.dumps({'reason': 'r', 'pytest': '8', 'failing': [],"
        " 'candidates_verified': 3, 'rank_of_first_plausible': 1, 'localization': [],"
        " 'seconds': {}, 'budget': {'max_candidates': 9, 'max_seconds': 9}}))\n"
    )
    agent.chmod(0o755)
    monkeypatch.setattr(reach, "rank_in_space", lambda *_: None)
    args = run.arguments(["--repos", str(clones), "--work", str(tmp_path / "work"), "--agent", str(agent)])
    row = run.repair(_fact(clones), args)
    assert row["stage"] == expected, row
    assert row["judge"]["exact"] is exact


def _run(**changes: Any) -> stage.Run:
    report = {
        "pytest": "8.4.2",
        "outcome": "gave-up",
        "failing": [{"id": "tests/test_a.py::C::test_b[x::y/z.py]"}],
        "localization": [{"path": "a.py", "line": 1, "end_line": 2}, {"path": "b.py", "line": 5, "end_line": 9}],
        "candidates_verified": 500,
        "budget": {"max_candidates": 500, "max_seconds": 60.0},
        **changes.pop("report", {}),
    }
    values: dict[str, Any] = {"status": 1, "report": report, "patched": False, "judged_good": False, "in_space": True}
    values["wall_seconds"] = 3.0
    return stage.Run(**{**values, **changes})


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"status": 0, "patched": True, "judged_good": True}, "solved"),
        ({"status": 0, "patched": True}, "wrong"),
        ({"report": {"pytest": ""}}, "environment"),
        ({"status": 4}, "environment"),
        ({"report": {"failing": []}}, "baseline"),
        ({"report": {"outcome": "untrusted-tests"}}, "baseline"),
        ({"report": {"localization": [{"path": "b.py", "line": 1, "end_line": 6}]}}, "localization"),
        ({"in_space": False}, "space"),
        ({"report": {"candidates_verified": 20}, "wall_seconds": 61.0}, "budget"),
        ({}, "order"),
    ],
)
def test_stages(changes: dict[str, Any], expected: str) -> None:
    fix = layout.TrueFix(lines={"b.py": frozenset({7})}, after={})
    assert stage.stage_of(_run(**changes), fix, ("tests.test_a.C::test_b[x::y/z.py]",)) == expected


def test_ranks_start_at_one() -> None:
    fix = layout.TrueFix(lines={"b.py": frozenset({7})}, after={})
    report = _run().report
    assert report is not None
    assert stage.localized_rank(report, fix) == 2
