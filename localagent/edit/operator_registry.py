"""The catalogue of operators: one concept each, with a name, a docstring and a prior."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from localagent.domain.edit import EditEffect
from localagent.edit.operator_context import Change, OperatorContext

Propose = Callable[[OperatorContext], Iterator[Change]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Operator:
    """A named way to change code. `deep` operators are checked by compiling the unit, `wide` ones see the file.

    `effects` are those of each of its edits.
    """

    name: str
    concept: str
    family: str
    prior: float
    deep: bool
    propose: Propose
    wide: bool = False
    effects: frozenset[EditEffect] = frozenset()


_OPERATORS: dict[str, Operator] = {}


def operator(
    name: str, *, prior: float = 0.0, deep: bool = False, wide: bool = False, effects: Collection[EditEffect] = ()
) -> Callable[[Propose], Propose]:
    """Register a proposer under a name; its docstring is its entry in the catalogue."""

    def register(propose: Propose) -> Propose:
        if name in _OPERATORS or not propose.__doc__:
            raise ValueError(f"operator {name!r} is registered twice or has no docstring")
        _OPERATORS[name] = Operator(
            name=name,
            concept=" ".join(propose.__doc__.split()),
            family=propose.__module__.rsplit(".", 1)[-1],
            prior=prior,
            deep=deep,
            propose=propose,
            wide=wide,
            effects=frozenset(effects),
        )
        return propose

    return register


def operators() -> Mapping[str, Operator]:
    """All operators by name, in order of registration."""
    from localagent.edit import operators as rooms  # noqa: PLC0415 - filled by importing the modules, not by a list here

    rooms.load()
    return _OPERATORS
