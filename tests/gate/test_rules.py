"""Every rule fires on its own examples and on none of its counter-examples: those in code and those in the policies."""

from pathlib import Path

import pytest

from localagent.app.rule_examples import in_repair, introduced
from localagent.domain.edit import Candidate, Edit, FileChange, Patch, Splice
from localagent.domain.gate import Allow, Decision
from localagent.domain.outcome import Baseline, Failure, Outcome, TestResult
from localagent.domain.paths import RepoPath
from localagent.domain.policy import DangerRule, Policy
from localagent.gate.core.rule import Rule, RuleExample
from localagent.gate.files import editable_paths
from localagent.gate.repair_gates import open_gate_chain
from localagent.gate.rule_catalogue import IN_PATCHES, IN_REPAIRS, WHILE_READING
from localagent.gate.rule_catalogue import RULES as ALL
from localagent.gate.security.forbidden_apis import Dangerous
from localagent.policy.load import load_policy
from localagent.ports import GateChain
from localagent.text.byte_diff import changed_span

POLICIES = Path(__file__).parents[2] / "policies"
DEFAULT = load_policy(POLICIES / "default.toml")
JUDGE = RepoPath("pkg/judge.py")
TEST_FILE = RepoPath("tests/test_it.py")
RULES = (*IN_REPAIRS, editable_paths.NOT_EDITABLE)


def candidate(path: str, before: bytes, after: bytes) -> Candidate:
    start, end, new_end = changed_span(before, after)
    splice = Splice(start=start, end=end, text=after[start:new_end])
    edit = Edit(path=RepoPath(path), splices=(splice,), operator="test", line=1, end_line=1, prior=0.0)
    patch = Patch(changes=(FileChange(path=RepoPath(path), before=before, after=after),))
    return Candidate(number=1, patch=patch, edits=(edit,), cost=0.0)


def review(chain: GateChain, example: RuleExample) -> list[Decision]:
    path = RepoPath(example.path)
    before, after = (s.encode("utf-8", "surrogateescape") for s in (example.before, example.after))
    name = "tests/test_it.py::test_f[1-2]"
    failure = Failure(exception=example.exception, message="") if example.exception else None
    baseline = Baseline(
        tests=(TestResult(id=name, outcome=Outcome.FAILED, failure=failure, path=TEST_FILE),),
        failing=(name,),
        test_files=frozenset({TEST_FILE, JUDGE}),
    )
    sources = {path: before, TEST_FILE: example.test.encode()} if example.test != "absent" else {}
    return list(chain.review(candidate(example.path, before, after), baseline, sources))


def rules_fired(decisions: list[Decision]) -> set[str]:
    assert all(d.answer is not Allow.ERROR for d in decisions), decisions
    assert all(d.answer is Allow.ALLOW for d in decisions[:-1])
    return {f.rule for d in decisions for f in d.findings}


@pytest.fixture(scope="module")
def chain() -> GateChain:
    return open_gate_chain(DEFAULT, {JUDGE})


def examples(kind: str) -> list[object]:
    return [pytest.param(r, e, id=f"{r.id}-{n}") for r in IN_REPAIRS for n, e in enumerate(getattr(r, kind))]


@pytest.mark.long
@pytest.mark.parametrize(("rule", "example"), examples("match"))
def test_a_rule_fires_on_its_examples(chain: GateChain, rule: Rule, example: RuleExample) -> None:
    assert rule.id in in_repair(chain, example)


@pytest.mark.parametrize(("rule", "example"), examples("not_match"))
def test_no_rule_fires_on_a_counter_example(chain: GateChain, rule: Rule, example: RuleExample) -> None:
    assert in_repair(chain, example) == set()


def dangers(kind: str) -> list[object]:
    return [
        pytest.param(policy, rule, code, id=f"{policy.name}-{rule.id}-{n}")
        for policy in (load_policy(POLICIES / f"{name}.toml") for name in ("default", "strict"))
        for rule in policy.dangers
        for n, code in enumerate(getattr(rule, kind))
    ]


@pytest.mark.long
@pytest.mark.parametrize(("policy", "rule", "code"), dangers("match"))
def test_a_danger_is_seen_in_its_examples(policy: Policy, rule: DangerRule, code: str) -> None:
    assert rule.id in introduced(Dangerous(policy), code)


@pytest.mark.parametrize(("policy", "rule", "code"), dangers("not_match"))
def test_a_danger_is_not_seen_in_its_counter_examples(policy: Policy, rule: DangerRule, code: str) -> None:
    assert rule.id not in introduced(Dangerous(policy), code)


def test_ids_are_unique_and_every_rule_has_examples() -> None:
    ids = [r.id for r in RULES] + [r.id for r in DEFAULT.dangers]
    assert len(ids) == len(set(ids))
    assert all(r.match and r.not_match and r.why and r.remedy for r in ALL)
    assert {r.id for r in ALL} == {r.id for r in (*WHILE_READING, *IN_REPAIRS, *IN_PATCHES)}
