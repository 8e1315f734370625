"""Laws of the signs: another spelling is no other condition, a denied edit stays denied, no layer lets more in."""

import ast
import itertools
import textwrap
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from localagent.app.review.patch_gate import verdict_of
from localagent.code.condition_implication import Condition, condition_of, denied, implies, narrower, opened
from localagent.code.function_pairing import settled
from localagent.domain.diff import ChangeKind, FileMode, TreeChange
from localagent.domain.edit import FileChange
from localagent.domain.gate import Severity
from localagent.domain.paths import RepoPath
from localagent.domain.policy import DangerRule, Permission, Policy
from localagent.domain.review import PatchVerdict
from localagent.gate.content.prompt_injection import INJECTION, spoken_in
from localagent.gate.core.rule import Rule, RuleExample
from localagent.gate.patch_gates import PatchGates
from localagent.gate.review import changed_arguments as given_module
from localagent.gate.review import changed_thresholds, dropped_arguments, review_gate, secret_leaks, weakened_conditions
from localagent.gate.review.removed_checks import GUARD, WIDENED
from localagent.gate.rule_catalogue import rule_texts
from localagent.policy.load import load_policy
from localagent.policy.policy_layers import meet

POLICIES = Path(__file__).parents[2] / "policies"
ATOMS = ("a.x", "b", "c()", "d == 1", "e < f")

conditions = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: st.one_of(
        st.builds("({} and {})".format, inner, inner),
        st.builds("({} or {})".format, inner, inner),
        st.builds("(not {})".format, inner),
        st.builds("({} if {} else {})".format, inner, inner, inner),
    ),
    max_leaves=6,
)


def parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


@st.composite
def respelt(draw: st.DrawFn, text: str) -> str:
    """The same condition in other words."""
    node = parsed(text)
    return ast.unparse(ast.fix_missing_locations(_respelt(draw, node)))


def _respelt(draw: st.DrawFn, node: ast.expr) -> ast.expr:
    if isinstance(node, ast.BoolOp):
        parts = [_respelt(draw, v) for v in draw(st.permutations(node.values))]
        name = "all" if isinstance(node.op, ast.And) else "any"
        way = draw(st.integers(0, 2))
        if way == 0:
            return ast.BoolOp(op=node.op, values=parts)
        if way == 1:
            return ast.Call(
                func=ast.Name(id=name, ctx=ast.Load()), args=[ast.Tuple(elts=parts, ctx=ast.Load())], keywords=[]
            )
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        inside = ast.BoolOp(op=other, values=[ast.UnaryOp(op=ast.Not(), operand=p) for p in parts])
        return ast.UnaryOp(op=ast.Not(), operand=inside)
    if isinstance(node, ast.UnaryOp):
        return ast.UnaryOp(op=ast.Not(), operand=_respelt(draw, node.operand))
    if isinstance(node, ast.Compare) and draw(st.booleans()):
        flipped = {ast.Eq: ast.Eq, ast.Lt: ast.Gt}[type(node.ops[0])]
        return ast.Compare(left=node.comparators[0], ops=[flipped()], comparators=[node.left])
    if draw(st.integers(0, 3)) == 0:
        return ast.UnaryOp(op=ast.Not(), operand=ast.UnaryOp(op=ast.Not(), operand=node))
    return node


def holds(text: str, world: tuple[bool, ...]) -> bool:
    """Whether a condition holds where each atom is as the world says."""
    for at, name in enumerate(ATOMS):
        text = text.replace(name, f"({world[at]})")
    return bool(eval(text))


WORLDS = list(itertools.product((False, True), repeat=len(ATOMS)))


@given(conditions, conditions)
def test_what_is_said_to_follow_follows(one: str, other: str) -> None:
    if implies(condition_of(parsed(one), {}), condition_of(parsed(other), {})):
        assert all(holds(other, world) for world in WORLDS if holds(one, world))


KEYS = [condition_of(parsed(atom), {}) for atom in ATOMS]


def truth(condition: Condition, world: tuple[bool, ...]) -> bool:
    """Whether a condition in one spelling holds in a world."""
    if condition.how == "is":
        at = next(n for n, key in enumerate(KEYS) if key.what == condition.what)
        return world[at] is not condition.denied
    return (all if condition.how == "and" else any)(truth(part, world) for part in condition.parts)


@pytest.mark.long
@given(conditions)
def test_a_condition_in_one_spelling_holds_where_it_did(text: str) -> None:
    condition = condition_of(parsed(text), {})
    for world in WORLDS:
        assert truth(condition, world) is holds(text, world)
        assert truth(denied(condition), world) is not holds(text, world)
        assert truth(opened(condition), world) or not holds(text, world)


@pytest.mark.long
@given(st.data(), conditions.filter(lambda text: " if " not in text))
def test_another_spelling_is_no_other_condition(data: st.DataObject, text: str) -> None:
    one, other = (condition_of(parsed(t), {}) for t in (text, data.draw(respelt(text))))
    assert one == other
    assert not narrower(one, other)


@given(conditions, st.sampled_from(ATOMS))
def test_a_further_way_to_a_yes_is_wider_and_a_further_demand_narrower(text: str, atom: str) -> None:
    plain = condition_of(parsed(text), {})
    wider, tighter = (condition_of(parsed(f"({text}) {word} {atom}"), {}) for word in ("or", "and"))
    assert implies(plain, wider)
    assert implies(tighter, plain)


def test_a_name_that_is_set_once_is_what_it_is_set_to() -> None:
    function = ast.parse("def f(x):\n    y = x.a and x.b\n    z = 1\n    z = 2\n    return y or z\n").body[0]
    names = settled(function)
    assert set(names) == {"y"}
    assert condition_of(parsed("y"), names) == condition_of(parsed("x.b and x.a"), {})


# What whoever wants an edit in would do to it: each leaves what it means as it is.
def renamed(before: str, after: str) -> tuple[str, str]:
    for name in ("owns", "f", "save", "find", "get"):
        if f"def {name}(" in before and f"def {name}(" in after:
            return before, after.replace(f"def {name}(", f"def {name}_it(").replace(f"self.{name}(", f"self.{name}_it(")
    return before, after


def indented(before: str, after: str) -> tuple[str, str]:
    if any(isinstance(node, ast.Assign) for text in (before, after) for node in ast.parse(text).body):
        return before, after  # a class's own names are not its methods': that would mean something else
    one, other = (f"class Holder:\n{textwrap.indent(text, '        ')}" for text in (before, after))
    return one, other


def moved(before: str, after: str) -> tuple[str, str]:
    more = "\n\ndef other(z):\n    return [z]\n"
    return before + more, more.lstrip() + "\n\n" + after


def noted(before: str, after: str) -> tuple[str, str]:
    return before, "# a note\n\n" + after.replace("\n    ", "\n    # as before\n    ", 1)


def beside(before: str, after: str) -> tuple[str, str]:
    return before, after + "\n\ndef fresh(z):\n    return [z, z]\n"


Habit = Callable[[str, str], tuple[str, str]]
HABITS: tuple[Habit, ...] = (renamed, indented, moved, noted, beside)
DENIED = [
    (rule, example)
    for rule in (
        weakened_conditions.LESS,
        dropped_arguments.DROPPED,
        WIDENED,
        GUARD,
        secret_leaks.TOLD,
        given_module.GIVEN,
        changed_thresholds.BOUND,
    )
    for example in rule.match
    if "def " in example.before and "class" not in example.before + example.after
]


def fired(before: str, after: str) -> set[str]:
    change = FileChange(path=RepoPath("pkg/mod.py"), before=before.encode(), after=after.encode())
    return {str(finding.rule) for finding in review_gate.reviewed(change, frozenset({"pkg", "mod"}))}


@pytest.mark.long
@given(st.sampled_from(DENIED), st.lists(st.sampled_from(HABITS), max_size=3, unique=True))
def test_a_denied_edit_stays_denied_however_it_is_dressed(case: tuple[Rule, RuleExample], habits: list[Habit]) -> None:
    rule, example = case
    before, after = example.before, example.after
    assert rule.id in fired(before, after)
    for habit in habits:
        before, after = habit(before, after)
    asks = {weakened_conditions.LESS.id, WIDENED.id, GUARD.id}
    assert (asks if rule.id in asks else {rule.id}) & fired(before, after)


ORDERS = [example.after.split("# ", 1)[1].split("\n")[0] for example in INJECTION.match if "# " in example.after]


@given(
    st.sampled_from([order for order in ORDERS if spoken_in(order.encode())]),
    st.sampled_from(["{}", "  {}", "x = 1  # {}", "> {}", "* {}", '"""{}"""', "<!-- {} -->", "| {} |", "a\n\n{}\n\nb"]),
    st.integers(0, 3),
)
def test_an_order_stays_one_in_whatever_text(order: str, dress: str, above: int) -> None:
    assert spoken_in(("a line\n" * above + dress.format(order) + "\n").encode())


PATCHES = [
    (example, rule.id)
    for rule in (weakened_conditions.LESS, WIDENED, secret_leaks.TOLD, changed_thresholds.BOUND)
    for example in (*rule.match[:1], *rule.not_match[:1])
]
ORDER_OF_VERDICTS = (PatchVerdict.ALLOWED, PatchVerdict.NEEDS_PERSON, PatchVerdict.REFUSED)


@lru_cache(maxsize=4)
def policy(name: str) -> Policy:
    return load_policy(POLICIES / f"{name}.toml")


def verdict(rules: Policy, example: RuleExample, path: str) -> int:
    entry = TreeChange(
        path=RepoPath(path), source=RepoPath(path), kind=ChangeKind.MODIFIED, before=example.before.encode(),
        after=example.after.encode(), before_mode=FileMode.REGULAR, after_mode=FileMode.REGULAR,
    )  # fmt: skip
    decisions = PatchGates(rules).review((entry,), everything=True)
    return ORDER_OF_VERDICTS.index(verdict_of(decisions, rule_texts(rules)))


@pytest.mark.long
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.sampled_from(PATCHES),
    st.sampled_from(["pkg/mod.py", "tests/test_mod.py", "setup.py"]),
    st.fixed_dictionaries(
        {
            "weaker_tests": st.sampled_from(list(Permission)),
            "routine": st.sampled_from(list(Permission)),
            "tests": st.sampled_from(list(Permission)),
            "critical_names": st.sampled_from([(), ("f",), ("owns",)]),
            "denied": st.sampled_from([(), ("pkg/",)]),
            "allowed_in_tests": st.sampled_from([(), ("write-files",)]),
        }
    ),
    st.booleans(),
)
def test_a_later_layer_only_tightens_what_the_gates_say(
    case: tuple[RuleExample, str], path: str, keys: dict[str, object], danger: bool
) -> None:
    base = policy("default")
    layer = replace(base, patches=replace(base.patches, **keys))  # type: ignore[arg-type]
    if danger:
        mine = DangerRule(id="mine", why="w", severity=Severity.HIGH, names=("builtins.str", "builtins.abs"))
        layer = replace(layer, dangers=(*base.dangers, mine))
    assert verdict(meet(base, layer), case[0], path) >= verdict(base, case[0], path)
