"""Findings of other tools: which are fixed, and why the others are not."""

import contextlib
import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from support.sarif_builder import log, result, run

from localagent.app import Settings
from localagent.domain.paths import RepoPath
from localagent.lint.engine import choose, find
from localagent.lint.file_view import view_of
from localagent.lint.selected_fixes import repair_targets
from localagent.policy.load import load_policy
from localagent.precommit.fix_files import Gates
from localagent.precommit.sarif_fixes import FindingState, FixProof, Remediation, RemediationWork, reading
from localagent.report.sarif_input import read_log

CODE = (
    "def f(a, b, c=[]):\n    if len(a) == None and not b in c:\n        return not a in b\n"
    "    return 1 if len(a) == None else 2\n"
)
GATES = Gates(lambda: load_policy(Settings.from_environ().policies_dir / "default.toml"), whole=True)


def remediate(
    root: Path, *runs: dict[str, Any], suggestions: bool = False, files: Mapping[str, str] | None = None
) -> Remediation:
    for name, text in (files if files is not None else {"a.py": CODE}).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    with reading(root) as read:
        work = RemediationWork(read, GATES, lambda: contextlib.nullcontext(), suggestions=suggestions)
        return work.remediate(read_log(log(*runs), (root,)).results)


def states(done: Remediation) -> Sequence[FindingState]:
    return [f.state for f in done.findings]


def test_only_what_was_asked_is_repaired(tmp_path: Path) -> None:
    done = remediate(tmp_path, run(result("E711", line=2), result("E713", line=3)))
    assert states(done) == [FindingState.FIXED, FindingState.FIXED]
    (change,) = done.patch.changes
    assert change.after.decode() == CODE.replace("if len(a) == None and", "if len(a) is None and").replace(
        "return not a in b", "return a not in b"
    )
    assert (tmp_path / "a.py").read_text() == CODE
    assert {f.proof for f in done.findings} == {FixProof.STRUCTURE}
    assert done.remain == 0


def test_each_fix_stands_alone(tmp_path: Path) -> None:
    done = remediate(tmp_path, run(*(result("E711", line=n) for n in (2, 4)), result("E713", line=2)))
    lines = CODE.splitlines(keepends=True)
    for finding in done.findings:
        fix = finding.fix
        assert fix is not None
        alone = "".join((*lines[: fix.first - 1], fix.text + "\n", *lines[fix.last :]))
        assert len(find(view_of(alone.encode()), choose())) == len(find(view_of(CODE.encode()), choose())) - 1


def test_two_on_a_line_are_told_apart_by_column(tmp_path: Path) -> None:
    text = "x = 1 if len(a) == None or len(b) == None else 2\n"
    done = remediate(tmp_path, run(result("E711", column=26)), files={"a.py": text})
    assert done.patch.changes[0].after == b"x = 1 if len(a) == None or len(b) is None else 2\n"
    done = remediate(tmp_path, run(result("E711", column=10), result("E711", column=26)), files={"a.py": text})
    assert done.patch.changes[0].after == b"x = 1 if len(a) is None or len(b) is None else 2\n"


def test_suggestions_are_skipped_unless_asked_for(tmp_path: Path) -> None:
    done = remediate(tmp_path, run(result("B006")))
    assert (states(done), done.remain) == ([FindingState.SKIPPED], 1)
    assert "--suggestions" in done.findings[0].why
    done = remediate(tmp_path, run(result("B006")), suggestions=True)
    assert (states(done), done.findings[0].proof) == ([FindingState.FIXED], FixProof.ASKED)
    assert b"c=None" in done.patch.changes[0].after


def test_a_claim_is_never_made_for_a_person(tmp_path: Path) -> None:
    text = "import hashlib\nx = hashlib.md5(b'a')\n"
    done = remediate(tmp_path, run(result("B324", line=2), tool="Bandit"), suggestions=True, files={"a.py": text})
    assert (states(done), done.patch.changes) == ([FindingState.WONT_FIX], ())
    assert "only a person" in done.findings[0].why


def test_settled_findings_do_not_remain(tmp_path: Path) -> None:
    held = result("E711", line=2, suppressions=[{"kind": "external"}])
    done = remediate(tmp_path, run(held, result("E711", line=4, baselineState="absent")))
    assert (states(done), done.remain, done.patch.changes) == ([FindingState.SKIPPED, FindingState.SKIPPED], 0, ())


@pytest.mark.parametrize(
    ("item", "state", "why"),
    [
        (result("E999"), FindingState.WONT_FIX, "no repair for E999"),
        (result("E711", line=3), FindingState.WONT_FIX, "not found by our rule none-comparison at line 3"),
        (result("E711", line=3, uri="longer.py"), FindingState.WONT_FIX, "not found by our rule"),
        (result("E711", line=40), FindingState.FAILED, "the file changed: it has 4 lines, and the log names line 40"),
        (result("E711", uri="./"), FindingState.WONT_FIX, "not readable: runs[0].results[0]: the URI './'"),
        (None, FindingState.WONT_FIX, "not readable"),
        (result("E711", uri="gone.py"), FindingState.FAILED, "is gone"),
        (result("E711", uri="bad.py"), FindingState.FAILED, "does not parse"),
        (result("E711", uri="link.py"), FindingState.FAILED, "cannot be read"),
        (result("E711", uri="folder"), FindingState.FAILED, "cannot be read"),
        ({"ruleId": "E711", "message": {"text": "x"}}, FindingState.WONT_FIX, "names no line"),
        (result("E711", line=2, uri="quiet.py"), FindingState.FAILED, "a comment at line 2 suppresses our rule"),
        (result("E711", line=1, uri="quiet.py"), FindingState.WONT_FIX, "not found by our rule"),
    ],
)
def test_why_not(tmp_path: Path, item: Any, state: FindingState, why: str) -> None:
    (tmp_path / "link.py").symlink_to("a.py")
    (tmp_path / "folder").mkdir()
    quiet = "x = a\ny = x == None  # localagent: ignore[none-comparison] overloads ==\n"
    done = remediate(
        tmp_path, run(item), files={"a.py": CODE, "bad.py": "x = (\n", "quiet.py": quiet, "longer.py": "\n\n"}
    )
    assert (states(done), why in done.findings[0].why) == ([state], True), done.findings[0].why


ORDERS = """\
import hashlib


def total(order, discounts=[]):
    if len(order) == None:
        return 0
    for key in order.keys():
        print(key)
    try:
        return sum(order.values())
    except:
        return hashlib.md5(b"x").hexdigest()
"""
ANSWERS = {
    "ruff": ["skipped: its", "fixed: ", "won't-fix: not found by our rule keys-membership at line 7", "skipped: its"],
    "bandit": ["won't-fix: only a person"],
    "semgrep": ["won't-fix: findings of 'Semgrep OSS' are not known here"],
    "codeql": ["won't-fix: findings of 'CodeQL'", "skipped: the log says informational"],
    "pylint": ["won't-fix: findings of 'Pylint'"] * 2 + ["won't-fix: not readable: runs[0].results[2]: uri is no text"],
    "mypy": ["fixed: ", "won't-fix: the log names no"],
    "sonarqube": [
        "won't-fix: findings of 'SonarQube'", "skipped: suppressed", "won't-fix: not readable", "skipped: the log says",
    ],
    "trivy": ["won't-fix: findings of 'Trivy'", "won't-fix: the log names no line", "won't-fix: not readable"],
}  # fmt: skip


@pytest.mark.parametrize("tool", ANSWERS)
def test_every_result_of_a_tools_log_is_answered(tmp_path: Path, tool: str) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "orders.py").write_text(ORDERS)
    data = (Path(__file__).parents[1] / "fixtures" / "sarif" / f"{tool}.sarif").read_bytes()
    reported = read_log(data, (tmp_path, Path("/home/runner/work/shop/shop"))).results
    with reading(tmp_path) as read:
        work = RemediationWork(read, GATES, lambda: contextlib.nullcontext(), suggestions=False)
        done = work.remediate(reported)
    answers = [f"{one.state}: {one.why}" for one in done.findings]
    assert len(answers) == len(ANSWERS[tool])
    assert [a[: len(t)] for a, t in zip(answers, ANSWERS[tool], strict=True)] == ANSWERS[tool]


def test_an_unknown_tool(tmp_path: Path) -> None:
    done = remediate(tmp_path, run(result("py/x"), tool="CodeQL"))
    assert "'CodeQL'" in done.findings[0].why


def test_a_file_that_changed_since(tmp_path: Path) -> None:
    item = result("E711", line=2)
    item["locations"][0]["physicalLocation"]["artifactLocation"]["index"] = 0

    def state(data: bytes) -> FindingState:
        artifact = {"location": {"uri": "a.py"}, "hashes": {"sha-256": sha256(data).hexdigest()}}
        return remediate(tmp_path, run(item, artifacts=[artifact])).findings[0].state

    assert (state(CODE.encode()), state(b"other")) == (FindingState.FIXED, FindingState.FAILED)


def test_what_a_gate_refuses_fails(tmp_path: Path) -> None:
    settings = Settings.from_environ()
    text = (settings.policies_dir / "default.toml").read_text()
    (tmp_path / "policy.toml").write_text(re.sub(r"max_changed_lines = \d+", "max_changed_lines = 1", text))
    (tmp_path / "a.py").write_text("def f(a):\n    if len(a) == None:\n        return not a in b\n")
    gates = Gates(lambda: load_policy(tmp_path / "policy.toml"), whole=True)
    reported = read_log(log(run(result("E711", line=2), result("E713", line=3))), (tmp_path,)).results
    with reading(tmp_path) as read:
        work = RemediationWork(read, gates, lambda: contextlib.nullcontext(), suggestions=False)
        done = work.remediate(reported)
    assert states(done) == [FindingState.FIXED, FindingState.FAILED]
    assert done.findings[1].why.startswith("gate size-")


class _Tests:
    """Tests that refuse any patch in which some text stands."""

    def __init__(self, refused: bytes) -> None:
        self.refused = refused
        self.asked = 0

    def same(self, path: RepoPath, data: bytes) -> bool:
        return True

    def runs(self, path: RepoPath, first: int, last: int) -> bool:
        return True

    def against(self, patch: Any) -> str:
        self.asked += 1
        return "tests broke" if any(self.refused in c.after for c in patch.changes) else ""


def test_the_one_that_breaks_the_tests_is_found(tmp_path: Path) -> None:
    text = "".join(f"x{n} = a{n} == None\n" for n in range(16))
    (tmp_path / "a.py").write_text(text)
    tests = _Tests(b"a11 is None")
    reported = read_log(log(run(*(result("E711", line=n + 1) for n in range(16)))), (tmp_path,)).results
    with reading(tmp_path) as read:
        work = RemediationWork(read, GATES, lambda: contextlib.nullcontext(tests), suggestions=False)
        done = work.remediate(reported)
    assert [n for n, f in enumerate(done.findings) if f.state is FindingState.FAILED] == [11]
    assert done.findings[11].why == "tests broke"
    assert done.patch.changes[0].after.decode() == text.replace("==", "is").replace("a11 is", "a11 ==")
    assert tests.asked < 16
    assert done.findings[0].proof is FixProof.TESTS


def test_repairs_that_meet_come_in_rounds() -> None:
    view = view_of(b"x = not (not a in b) in c\n")
    targets = find(view, choose())
    assert len(targets) > 1
    done = repair_targets(view, targets)
    assert (dict(done.withheld), find(view_of(done.after), choose())) == ({}, [])


def test_every_rule_repairs_its_own_examples_when_targeted() -> None:
    for rule in choose({"all"}):
        for bad in rule.bad:
            view = view_of(bad.code.encode())
            targets = [f for f in find(view, [rule]) if f.cuts]
            done = repair_targets(view, targets)
            assert not done.withheld or "libcst" in str(done.withheld), (rule.id, bad.code, done.withheld)
            if bad.fixed is not None and not done.withheld:
                assert done.after.decode() == bad.fixed, (rule.id, bad.code)
