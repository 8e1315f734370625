import sys
import warnings
from dataclasses import replace

import pytest
from test_rules import DEFAULT, candidate, review, rules_fired

from localagent.domain.gate import Allow, Decision
from localagent.domain.outcome import Baseline, Outcome, TestResult
from localagent.domain.paths import RepoPath
from localagent.domain.policy import Permission
from localagent.errors import CannotEnforce
from localagent.gate.core.gate_input import GateInput
from localagent.gate.core.rule import RuleExample, decide
from localagent.gate.repair_gates import COULD_NOT_ANSWER, Chain, open_gate_chain

ORDINARY = RuleExample(before="def f(x):\n    return x\n", after="def f(x):\n    return -x\n")


class Recorder:
    def __init__(self, name: str, answer: Decision | BaseException) -> None:
        self.name = name
        self.asked = 0
        self._answer = answer

    def review(self, change: GateInput) -> Decision:
        self.asked += 1
        if isinstance(self._answer, BaseException):
            raise self._answer
        return self._answer


def test_an_ordinary_candidate_passes_every_gate_in_order() -> None:
    decisions = review(open_gate_chain(DEFAULT, ()), ORDINARY)
    assert [d.gate for d in decisions] == [
        "paths", "size", "protected", "parses", "dangerous", "swallow", "special-case", "weakness", "cheating",
        "secrets", "trojan", "excuses",
    ]  # fmt: skip
    assert all(d.answer is Allow.ALLOW for d in decisions)


@pytest.mark.parametrize("error", [ValueError("x"), RecursionError(), MemoryError(), KeyError("k"), AssertionError()])
def test_a_gate_that_fails_denies_with_the_reason_and_ends_the_review(error: BaseException) -> None:
    first, second = Recorder("one", error), Recorder("two", decide("two", []))
    decisions = review(Chain([first, second]), ORDINARY)
    assert [d.answer for d in decisions] == [Allow.ERROR]
    assert decisions[0].findings[0].rule == COULD_NOT_ANSWER
    assert type(error).__name__ in decisions[0].findings[0].message
    assert second.asked == 0


def test_an_interrupt_is_not_an_answer() -> None:
    with pytest.raises(KeyboardInterrupt):
        review(Chain([Recorder("one", KeyboardInterrupt())]), ORDINARY)


def test_without_bandit_no_chain_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bandit.core.node_visitor", None)
    with pytest.raises(CannotEnforce, match="needs bandit") as caught:
        open_gate_chain(DEFAULT, ())
    assert caught.value.exit_code == 4
    assert caught.value.remedy


def test_a_bandit_that_finds_nothing_is_as_good_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    with warnings.catch_warnings(action="ignore"):  # of its own, where nothing has imported it yet
        from bandit.core import test_set

    monkeypatch.setattr(test_set.BanditTestSet, "get_tests", lambda _self, _kind: [])
    with pytest.raises(CannotEnforce, match="does not find what it must"):
        open_gate_chain(DEFAULT, ())


def test_a_test_of_bandit_that_fails_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = open_gate_chain(DEFAULT, ())
    from bandit.core import context

    def broken(_self: object) -> str:
        raise RuntimeError("broken")

    monkeypatch.setattr(context.Context, "call_function_name_qual", property(broken))
    fired = rules_fired(
        review(chain, RuleExample(before="def f(x):\n    return x\n", after="def f(x):\n    return g(x)\n"))
    )
    assert fired == {"bandit"}


def test_what_the_policy_permits_is_permitted() -> None:
    swallowing = RuleExample(
        before="def f(x):\n    return g(x)\n",
        after="def f(x):\n    try:\n        return g(x)\n    except ValueError or Exception:\n        return 0\n",
    )
    bare = replace(
        swallowing, after="def f(x):\n    try:\n        return g(x)\n    except Exception:\n        return 0\n"
    )
    assert rules_fired(review(open_gate_chain(DEFAULT, ()), bare)) == {"broad-except"}
    lax = replace(DEFAULT, swallowed_exceptions=Permission.ALLOW, special_cased_tests=Permission.ALLOW)
    assert rules_fired(review(open_gate_chain(lax, ()), bare)) == set()


def test_files_are_not_mixed_up_when_a_base_changes() -> None:
    """The same path with other bytes (a later round, another task) is cut anew."""
    chain = open_gate_chain(DEFAULT, ())
    path = RepoPath("pkg/mod.py")
    for before in (b"import os as o\ndef f(x):\n    return x\n", b"import math as o\ndef f(x):\n    return x\n"):
        after = before.replace(b"return x", b"return o.system(x)")
        decisions = chain.review(candidate(path, before, after), Baseline(tests=()), {path: before})
        denied = list(decisions)[-1].answer is not Allow.ALLOW
        assert denied is (b"import os" in before)


def test_a_doctest_is_a_test_and_the_rest_of_its_file_is_not() -> None:
    chain = open_gate_chain(DEFAULT, ())
    path = RepoPath("pkg/mod.py")
    before = b'def f(x):\n    """\n    >>> f(1)\n    2\n    """\n    return x\n'
    collected = Baseline(tests=(TestResult(id="pkg/mod.py::pkg.mod.f", outcome=Outcome.FAILED, path=path),))
    for after, asked, allowed in (
        (before.replace(b"return x", b"return x + 1"), collected, True),
        (before.replace(b"    2\n", b"    1\n"), collected, False),
        (before.replace(b"    2\n", b"    1\n"), Baseline(tests=()), True),
    ):
        decisions = list(chain.review(candidate(path, before, after), asked, {path: before}))
        assert (decisions[-1].answer is Allow.ALLOW) is allowed, decisions[-1]


def test_what_was_there_may_move_but_not_multiply() -> None:
    base = "import os\ndef f(x):\n    if x:\n        os.system(x)\n    return x\n"
    moved = "import os\ndef f(x):\n    os.system(x)\n    if x:\n        pass\n    return x\n"
    chain = open_gate_chain(DEFAULT, ())
    assert rules_fired(review(chain, RuleExample(before=base, after=moved))) == set()
    twice = base.replace("    return x", "    os.system(x)\n    return x")
    assert rules_fired(review(chain, RuleExample(before=base, after=twice))) == {"run-process"}


def test_a_file_from_which_tests_were_collected_is_a_test_whatever_its_name() -> None:
    chain = open_gate_chain(DEFAULT, ())
    assert rules_fired(review(chain, replace(ORDINARY, path="pkg/judge.py"))) == {"path-test"}
