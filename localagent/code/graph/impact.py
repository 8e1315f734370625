"""What a change of some functions may reach: who calls them, who calls those, and the tests among them."""

from collections.abc import Iterable
from dataclasses import dataclass

from localagent.code.graph.calls import MODULE_LEVEL, CallGraph, FunctionId
from localagent.code.graph.facts import DefinitionKind
from localagent.code.graph.references import Certainty, find_references
from localagent.code.graph.values import Symbol
from localagent.code.related_tests import is_test

MOST_REACHED = 2_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Reached:
    """A function, how many calls lie between it and the change, and whether every one of them is certain."""

    function: FunctionId
    distance: int
    certainty: Certainty


def reached_from(calls: CallGraph, changed: Iterable[FunctionId]) -> tuple[Reached, ...]:
    """Everything that may run changed functions, nearest first; at most 2,000. The changed ones have distance 0.

    Fixtures reach the tests that ask for them. A way of certain calls is taken before one of possible calls.
    """
    found: dict[FunctionId, Reached] = {}
    for certain in (True, False):
        level = [Reached(function=f, distance=0, certainty=Certainty.CERTAIN) for f in sorted(set(changed))]
        level += [] if certain else list(found.values())
        while level:
            following: list[Reached] = []
            for one in level:
                if one.function not in found:
                    found[one.function] = one
                for caller, sure in callers_of(calls, one.function):
                    if caller not in found and (sure or not certain) and len(found) < MOST_REACHED:
                        sureness = one.certainty if sure else Certainty.POSSIBLE
                        found[caller] = Reached(function=caller, distance=one.distance + 1, certainty=sureness)
                        following.append(found[caller])
            level = following
    return tuple(sorted(found.values(), key=lambda one: (one.distance, one.certainty, one.function)))


def callers_of(calls: CallGraph, function: FunctionId) -> list[tuple[FunctionId, bool]]:
    """Who calls a function, or asks for it as a fixture, and whether that is certain."""
    found = {edge.caller: False for edge in calls.callers(function)}
    found |= {edge.caller: True for edge in calls.callers(function) if edge.certainty == Certainty.CERTAIN}
    if function.index != MODULE_LEVEL:
        made = calls.graph.view(function.path).facts.definitions[function.index]
        if made.fixture:
            found |= dict.fromkeys(_asking(calls, function, Symbol(function.path, made.scope, made.name)), True)
    return sorted(found.items())


def _asking(calls: CallGraph, fixture: FunctionId, symbol: Symbol) -> set[FunctionId]:
    """The functions that have a parameter named after a fixture, and mean it."""
    graph = calls.graph
    name = graph.view(fixture.path).facts.definitions[fixture.index].fixture
    found = set()
    for path in sorted(graph.facts):
        view = graph.view(path)
        for at, made in enumerate(view.facts.definitions):
            if any(p.name == name for p in made.parameters) and graph.fixture(view, at, name) == symbol:
                found.add(FunctionId(path=path, index=at))
    return found


def users_of(calls: CallGraph, symbols: Iterable[Symbol]) -> list[FunctionId]:
    """The functions in which symbols stand that are no functions: variables, attributes, classes."""
    found = set()
    for reference in find_references(calls.graph, tuple(symbols)):
        if reference.certainty == Certainty.CERTAIN and reference.inside:
            facts = calls.graph.view(reference.path).facts
            found |= {
                FunctionId(path=reference.path, index=at)
                for at, made in enumerate(facts.definitions)
                if made.first_line <= reference.line <= made.end_line and facts.qualified_name(at) == reference.inside
            }
    return sorted(found)


def methods_of(calls: CallGraph, function: FunctionId) -> list[FunctionId]:
    """A function itself, or the functions in a class's body."""
    facts = calls.graph.view(function.path).facts
    made = facts.definitions[function.index]
    if made.kind != DefinitionKind.CLASS:
        return [function]
    inside = (at for at, d in enumerate(facts.definitions) if d.scope == made.own_scope)
    return [function, *(FunctionId(path=function.path, index=at) for at in inside)]


def is_test_function(calls: CallGraph, function: FunctionId) -> bool:
    """Whether pytest would collect a function by its name and that of its file."""
    if function.index == MODULE_LEVEL or not is_test(function.path):
        return False
    return calls.graph.view(function.path).facts.definitions[function.index].name.startswith("test")
