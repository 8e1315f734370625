"""Signs ask a person and no more: moved code is none, tests are let be, and a repair is kept as a proposal."""

from dataclasses import replace
from pathlib import Path

import pytest

from localagent.domain.diff import ChangeKind, FileMode, TreeChange
from localagent.domain.edit import FileChange, Patch
from localagent.domain.paths import RepoPath
from localagent.domain.policy import DangerRule, Permission, Policy
from localagent.edit.space import open_edit_space
from localagent.gate.approval_required import files_needing_approval
from localagent.gate.patch_gates import PatchGates
from localagent.gate.review.review_gate import RULES
from localagent.gate.rule_catalogue import OF_MEANING, for_a_person, rule_texts
from localagent.gate.tests.tamper_rules import TRIVIAL, WEAKER
from localagent.policy.load import load_policy

POLICIES = Path(__file__).parents[2] / "policies"


@pytest.fixture(scope="module")
def policy() -> Policy:
    return load_policy(POLICIES / "default.toml")


@pytest.fixture(scope="module")
def gates(policy: Policy) -> PatchGates:
    return PatchGates(policy)


def fired(gates: PatchGates, before: str, after: str, path: str = "pkg/mod.py") -> set[str]:
    entry = TreeChange(
        path=RepoPath(path),
        source=RepoPath(path),
        kind=ChangeKind.MODIFIED,
        before=before.encode(),
        after=after.encode(),
        before_mode=FileMode.REGULAR,
        after_mode=FileMode.REGULAR,
    )
    return {f.rule for d in gates.review((entry,), everything=True) for f in d.findings}


def test_every_sign_is_a_question_to_a_person(policy: Policy) -> None:
    assert {rule.id for rule in RULES} <= for_a_person(policy)


def test_what_may_run_before_a_person_looked_is_a_question_of_meaning(policy: Policy) -> None:
    texts = rule_texts(policy)
    assert {name for name, text in texts.items() if text.may_run} == OF_MEANING
    assert all(texts[name].asks_person for name in OF_MEANING)
    firm = {"import-new", "runs-unasked", "acts-outside", "secret-told", "opaque-text", "trigger-added", "test-changed"}
    firm |= {"dependency-edit", "test-configuration", "magic-value", "exposed-whole", "grows-unbounded"}
    assert firm <= texts.keys() - OF_MEANING


def test_code_that_moves_within_its_file_is_no_sign(gates: PatchGates) -> None:
    one = "def f(x):\n    if x == 'QX7-STAFF-0000':\n        raise ValueError(x)\n    return x\n"
    two = "def g(x):\n    return [x]\n"
    assert fired(gates, f"{one}\n\n{two}", f"{two}\n\n{one}") == set()


def test_tests_may_hold_signs(gates: PatchGates) -> None:
    before = "def test_a():\n    assert f(1) == 2\n"
    after = before + "\n\ndef test_b():\n    assert f('https://a.example/QX7-STAFF-0000') == 13\n"
    assert fired(gates, before, after, "tests/test_mod.py") == set()


def test_weaker_tests_are_a_persons_to_let_be_only_where_the_policy_says_so(policy: Policy) -> None:
    firm = replace(policy, patches=replace(policy.patches, weaker_tests=Permission.DENY))
    ids = {rule.id for rule in WEAKER}
    assert ids <= for_a_person(policy)
    assert not ids & for_a_person(firm)
    assert TRIVIAL.id not in for_a_person(policy)


def test_a_later_rule_of_the_same_id_cannot_make_a_refusal_a_question(policy: Policy) -> None:
    mild = DangerRule(id="run-process", why="x", severity=policy.dangers[0].severity, names=("a",), asks_person=True)
    assert "run-process" not in for_a_person(replace(policy, dangers=(*policy.dangers, mild)))


@pytest.mark.parametrize(
    ("before", "after", "asked"),
    [
        ("def f(x):\n    return x\n", "def f(x):\n    return -x\n", False),
        ("def verify_token(x):\n    return x\n", "def verify_token(x):\n    return -x\n", True),
        (
            "import hmac\ndef f(x):\n    return hmac.new(x)\n",
            "import hmac\ndef f(x):\n    return hmac.new(b'')\n",
            True,
        ),
        ("import hmac\ndef f(x):\n    return x\n", "import hmac\ndef f(x):\n    return -x\n", False),
        ("def f(x):\n    return g(x)\n", "def f(x):\n    return g(x, verify=False)\n", True),
    ],
)
def test_a_repair_of_critical_code_is_a_persons(policy: Policy, before: str, after: str, asked: bool) -> None:
    change = FileChange(path=RepoPath("pkg/mod.py"), before=before.encode(), after=after.encode())
    assert bool(files_needing_approval(Patch(changes=(change,)), policy)) is asked


@pytest.mark.parametrize(
    ("decorator", "asked"),
    [
        ("login_required", True),
        ("user_passes_test(is_staff)", True),
        ("admin_only", True),
        ("app.route('/a')", True),
        ("property", False),
        ("lru_cache(maxsize=None)", False),
    ],
)
def test_an_edit_of_the_space_that_drops_a_decorator_asks_unless_it_held_nothing_back(
    gates: PatchGates, decorator: str, asked: bool
) -> None:
    path = RepoPath("pkg/mod.py")
    before = f"class A:\n    @{decorator}\n    def f(self):\n        return self.x\n"
    edits = open_edit_space({}).edits(path, {path: before.encode()}, lines=None, failures=())
    drop = next(e for e in edits if e.operator == "decorator-drop")
    after = drop.apply(before.encode()).decode()
    assert decorator not in after
    assert ("check-gone" in fired(gates, before, after)) is asked


def test_a_plain_decorator_is_no_substitute_for_one_that_asked(gates: PatchGates) -> None:
    before = "class A:\n    @admin_only\n    def f(x):\n        return x\n"
    assert "check-gone" in fired(gates, before, before.replace("admin_only", "staticmethod"))
    assert "check-gone" not in fired(gates, before, before.replace("admin_only", "admins_only"))
