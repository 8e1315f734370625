"""The rules of patches fire on their own examples, and a patch that is a counter-example is allowed."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from test_rules import DEFAULT

from localagent.app.rule_examples import while_reading
from localagent.domain.diff import ChangeKind, FileMode, TreeChange
from localagent.domain.gate import Allow, Decision
from localagent.domain.paths import RepoPath
from localagent.domain.policy import Permission
from localagent.gate.core.rule import Rule, RuleExample
from localagent.gate.patch_gates import PatchGates
from localagent.gate.rule_catalogue import IN_PATCHES, WHILE_READING, rule_texts
from localagent.gate.rule_catalogue import RULES as ALL

RULES = IN_PATCHES


@pytest.fixture(scope="module")
def gates() -> PatchGates:
    return PatchGates(DEFAULT)


def entry(example: RuleExample) -> TreeChange:
    path, source = RepoPath(example.path), RepoPath(example.source or example.path)
    before, after = (s.encode("utf-8", "surrogateescape") for s in (example.before, example.after))
    modes = [FileMode(m) if m else None for m in example.modes.split(":")]
    kind = (
        ChangeKind.RENAMED if source != path
        else ChangeKind.ADDED if modes[0] is None
        else ChangeKind.DELETED if modes[1] is None
        else ChangeKind.MODIFIED
    )  # fmt: skip
    return TreeChange(
        path=path, source=source, kind=kind, before=before, after=after, before_mode=modes[0], after_mode=modes[1],
        binary=bool(example.binary), alias=example.alias,
    )  # fmt: skip


def review(gates: PatchGates, *examples: RuleExample, everything: bool = True) -> list[Decision]:
    gone = [
        replace(e, path="pkg/gone.py", source="", before=e.gone, after="", modes="100644:") for e in examples if e.gone
    ]
    tests = [RuleExample(before="", after=e.test, path="tests/test_it.py", modes=":100644") for e in examples if e.test]
    return gates.review(tuple(entry(e) for e in (*examples, *tests, *gone)), everything=everything)


def fired(decisions: list[Decision]) -> set[str]:
    assert all(d.answer is not Allow.ERROR for d in decisions), decisions
    return {f.rule for d in decisions for f in d.findings}


def examples(kind: str) -> list[object]:
    return [pytest.param(r, e, id=f"{r.id}-{n}") for r in RULES for n, e in enumerate(getattr(r, kind))]


@pytest.mark.long
@pytest.mark.parametrize(("rule", "example"), examples("match"))
def test_a_rule_fires_on_its_examples(gates: PatchGates, rule: Rule, example: RuleExample) -> None:
    assert rule.id in fired(review(gates, example))


@pytest.mark.parametrize(("rule", "number"), [(r, n) for r in WHILE_READING for n in range(len(r.match))])
def test_a_rule_of_reading_fires_on_its_examples(rule: Rule, number: int, tmp_path: Path) -> None:
    assert while_reading(rule.match[number], tmp_path) == {rule.id}
    assert while_reading(rule.not_match[0], tmp_path) == set()


@pytest.mark.long
@pytest.mark.parametrize(("rule", "example"), examples("not_match"))
def test_a_counter_example_is_not_taken_for_the_rule(gates: PatchGates, rule: Rule, example: RuleExample) -> None:
    assert rule.id not in fired(review(gates, example))


def test_every_rule_says_why_and_what_to_do() -> None:
    texts = rule_texts(DEFAULT)
    assert all(t.why and t.remedy for t in texts.values())
    assert len({r.id for r in ALL}) == len(ALL)
    assert {r.id for r in RULES} <= set(texts)


def test_the_first_refusal_ends_the_review_and_a_question_does_not(gates: PatchGates) -> None:
    bad = RuleExample(
        path="app/auth/login.py", before="def f(x):\n    return x\n", after="def f(x):\n    return eval(x)\n"
    )
    short = review(gates, bad, everything=False)
    assert fired(short) == {"critical-file", "run-text"}
    assert short[-1].gate == "dangerous"
    assert [d.gate for d in review(gates, bad)] == [name for name in gates.names if name != "special-case"]
    tested = replace(bad, test="def test_f():\n    assert f(7) == 13\n")
    assert [d.gate for d in review(gates, tested)] == list(gates.names)


def test_what_does_not_parse_is_told_once_and_the_rest_still_judged(gates: PatchGates) -> None:
    broken = RuleExample(path="pkg/a.py", before="x = 1\n", after="x = (\n")
    bad = RuleExample(path="pkg/b.py", before="def f(x):\n    return x\n", after="def f(x):\n    return eval(x)\n")
    assert fired(review(gates, broken, bad)) >= {"does-not-parse", "run-text"}


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="this Python parses it")
def test_a_file_for_a_newer_python_is_asked_about_and_the_rest_still_judged(gates: PatchGates) -> None:
    newer = RuleExample(path="pkg/a.py", before="def f(x):\n    return x\n", after="def f(x):\n    return t'{x}'\n")
    bad = RuleExample(path="pkg/b.py", before="def f(x):\n    return x\n", after="def f(x):\n    return eval(x)\n")
    (told,) = [f for d in review(gates, newer) for f in d.findings]
    assert (told.rule, told.message[:19]) == ("newer-python", "needs Python ≥ 3.14")
    assert fired(review(gates, newer, bad)) >= {"newer-python", "run-text"}


def test_what_moves_into_the_sources_is_new_there(gates: PatchGates) -> None:
    code = "import os\n\n\ndef f(x):\n    os.system(x)\n"
    moved = RuleExample(path="pkg/mod.py", source="docs/notes.txt", before=code, after=code)
    assert "run-process" in fired(review(gates, moved))
    stays = RuleExample(path="pkg/mod.py", source="pkg/old.py", before=code, after=code)
    assert fired(review(gates, stays)) == set()


def test_a_copy_is_new(gates: PatchGates) -> None:
    code = "import os\n\n\ndef f(x):\n    os.system(x)\n"
    copy = replace(
        entry(RuleExample(path="pkg/b.py", source="pkg/a.py", before=code, after=code)), kind=ChangeKind.COPIED
    )
    assert "run-process" in fired(gates.review((copy,), everything=True))


def test_tests_are_denied_where_the_policy_says_so() -> None:
    policy = replace(DEFAULT, patches=replace(DEFAULT.patches, tests=Permission.DENY))
    change = RuleExample(
        path="tests/test_a.py", before="", after="def test_a():\n    assert f(1) == 2\n", modes=":100644"
    )
    assert fired(review(PatchGates(policy), change)) == {"path-test"}
    assert fired(review(PatchGates(DEFAULT), change)) == set()


def test_what_is_allowed_in_tests_is_not_allowed_in_sources(gates: PatchGates) -> None:
    code = "import pytest\n\n\ndef test_a(tmp_path):\n    (tmp_path / 'a').write_text('x')\n    assert f(1) == 2\n"
    assert fired(review(gates, RuleExample(path="tests/test_a.py", before="", after=code, modes=":100644"))) == set()
    assert fired(review(gates, RuleExample(path="pkg/a.py", before="", after=code, modes=":100644"))) >= {
        "test-framework", "write-files",
    }  # fmt: skip


def test_two_new_files_alike_but_for_case_are_refused(gates: PatchGates) -> None:
    one, two = (RuleExample(path=p, before="", after="x = 1\n", modes=":100644") for p in ("pkg/new.py", "pkg/New.py"))
    assert "path-alias" in fired(review(gates, one, two))


def test_the_page_names_every_rule_and_gate(gates: PatchGates) -> None:
    page = (Path(__file__).parents[2] / "docs" / "gate.md").read_text()
    assert [r.id for r in ALL if f"`{r.id}`" not in page] == []
    assert [g for g in gates.names if f"| {g} |" not in page] == []


def test_as_much_syntax_may_change_as_the_policy_says_of_patches() -> None:
    """And not as little as it says of repairs."""
    policy = DEFAULT
    assert policy.size.max_changed_nodes < 2_500 < policy.patches.size.max_changed_nodes
    rows = RuleExample(before="x = [1]\n", after="x = [" + "1, " * 2_500 + "]\n")
    assert "size-nodes" not in fired(review(PatchGates(policy), rows))
    less = replace(policy, patches=replace(policy.patches, size=replace(policy.patches.size, max_changed_nodes=2_000)))
    assert "size-nodes" in fired(review(PatchGates(less), rows))
