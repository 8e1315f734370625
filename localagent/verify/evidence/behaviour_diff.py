"""The answers of two trees, call by call: read from the worker's records, compared, and put into words.

Pure: nothing is asked here. What is compared is what both trees were asked and each answered alike twice.
"""

import ast
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from localagent.domain.claim import DifferenceKind
from localagent.domain.verification import (
    Difference,
    Differential,
    FunctionChange,
    FunctionReach,
    InputOrigin,
    PropertyBreak,
)
from localagent.runner.observed_properties import OF_FURTHER_CALLS, ROUND_TRIP, WHOLE
from localagent.verify.evidence.changed_lines import ChangedFile
from localagent.verify.evidence.collateral_changes import (
    AnswerPair,
    CallAnswer,
    CallOutcome,
    UndemandedChange,
    function_effects,
    judged,
)
from localagent.verify.evidence.parameters import FunctionParameters, signature_of
from localagent.verify.worker.function_regions import FunctionRegion
from localagent.verify.worker.worker_messages import Malformed, clean, exactly, integer, mapping, sequence

DIFFERENCES_SHOWN = 50
HELD_LEAST = 5
_TEXT, _CALLS = 600, 20_000
_LINES, _ARGUMENTS, _STATE = 400, 20, 50
_IN_PLACE = "in-place"
_ORIGINS = {
    "seen": InputOrigin.TESTED,
    _IN_PLACE: InputOrigin.TESTED,
    "near": InputOrigin.NEAR,
    "careless": InputOrigin.NEAR,
}
_KINDS = frozenset(kind.value for kind in CallOutcome)
_ORDER = (InputOrigin.DEMANDED, InputOrigin.TESTED, InputOrigin.NEAR, InputOrigin.GENERATED, InputOrigin.SYMBOLIC)


@dataclass(frozen=True, kw_only=True, slots=True)
class Twin:
    """A touched function in both trees. `changed` are its statements that changed, from its first line, in the new."""

    file: ChangedFile
    old: FunctionRegion
    new: FunctionRegion
    changed: frozenset[int] = frozenset()

    @property
    def name(self) -> str:
        """With its class."""
        return f"{self.new.class_name}.{self.new.name}" if self.new.class_name else self.new.name

    def defaults_differ(self) -> bool:
        """Whether a call that leaves an argument out is given something else after than before."""
        texts = self.file.before[self.old.start : self.old.end], self.file.after[self.new.start : self.new.end]
        old, new = map(signature_of, texts)
        return old is not None and new is not None and _defaults(old) != _defaults(new)

    def runs_change(self, new_lines: frozenset[int]) -> bool:
        """Whether a call that runs these lines runs what changed; of a call whose lines are not known it may."""
        return not new_lines or not self.changed or not self.changed.isdisjoint(new_lines)

    def surely_runs(self, new_lines: frozenset[int]) -> bool:
        """Whether the lines of a call are known, and what changed is among them."""
        return not self.changed.isdisjoint(new_lines)

    def parameter(self, place: str) -> str:
        """The name of a parameter of the function before, which may be known by its place alone."""
        if not place.isdigit():
            return place
        known = signature_of(self.file.before[self.old.start : self.old.end])
        positional = [name for name, _, _ in known.positional] if known is not None else []
        if self.old.class_name and positional[:1] in (["self"], ["cls"]):
            del positional[0]
        return positional[int(place)] if int(place) < len(positional) else place


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeCall:
    """One call of one tree. `literal` is its (args, kwargs) where they are plain data; the rest as of a `Pair`.

    `in_place`: it was not made again, but looked at where a test makes it. `lines` are those it ran, from the
    function's first, not known of such a call. `answer` is None where two runs disagreed, or the program did
    not come so far.
    """

    function: int
    key: str
    origin: InputOrigin
    text: str
    literal: tuple[str, str] | None
    answer: CallAnswer | None
    careless: bool = False
    of_turned: bool = False
    in_place: bool = False
    lines: frozenset[int] = frozenset()
    parts: tuple[tuple[str, str], ...] = ()


class Comparison:
    """What both trees answered, and why one of them did not."""

    def __init__(
        self,
        twins: Sequence[Twin],
        before: Mapping[str, TreeCall],
        after: Mapping[str, TreeCall],
        *,
        lost: str = "",
        missed: Mapping[int, str] | None = None,
        known: Callable[[str], bool] | None = None,
    ) -> None:
        """`known`: whether code that stood before says a name. A new attribute of another name is no other answer."""
        self._twins, self._before, self._after, self._lost = twins, before, after, lost
        self._missed, self._known = missed or {}, known

    def result(self) -> Differential:
        """The differential."""
        pairs = self._pairs()
        found: list[Difference] = []
        unexplained: Counter[DifferenceKind] = Counter()
        changes: list[FunctionChange] = []
        for number, compared in pairs.items():
            twin = self._twins[number]
            for one in judged(compared):
                found.append(self._difference(twin, one))
                unexplained[one.effect] += not one.explained
            changes += [
                FunctionChange(path=twin.file.path, function=twin.name, effect=effect, parameter=twin.parameter(name))
                for effect, name in function_effects(compared)
            ]
        found.sort(key=lambda d: (d.explained, len(d.call), d.call, d.function))
        held, broken = self._properties(pairs)
        return Differential(
            functions=tuple(self._reach(n, pairs[n]) for n in pairs),
            differences=tuple(found[:DIFFERENCES_SHOWN]),
            differences_left_out=max(0, len(found) - DIFFERENCES_SHOWN),
            demanded=sum(
                p.origin is InputOrigin.DEMANDED and p.differs for compared in pairs.values() for p in compared
            ),
            steady=len(
                {
                    (n, p.now.alone)
                    for n, compared in pairs.items()
                    for p in compared
                    if p.origin is InputOrigin.DEMANDED and not p.differs and self._twins[n].surely_runs(p.new_lines)
                }
            ),
            explained=sum(d.explained for d in found),
            unexplained={effect: unexplained[effect] for effect in DifferenceKind if unexplained[effect]},
            function_changes=tuple(changes),
            properties_held=held,
            broken_properties=broken,
        )

    def _pairs(self) -> dict[int, list[AnswerPair]]:
        """What both trees answered, by the function's number."""
        pairs: dict[int, list[AnswerPair]] = {n: [] for n in range(len(self._twins))}
        for key, old in self._before.items():
            new = self._after.get(key)
            if new is None or old.answer is None or new.answer is None:
                continue
            kinds = (old.answer.kind, new.answer.kind)
            if CallOutcome.SKIPPED in kinds or kinds == (CallOutcome.LATE, CallOutcome.LATE):
                continue
            pair = AnswerPair(
                text=old.text,
                origin=min((old.origin, new.origin), key=_ORDER.index),
                careless=old.careless and new.careless,
                of_turned=old.of_turned or new.of_turned,
                in_place=old.in_place,
                way=frozenset({*((False, n) for n in old.lines), *((True, n) for n in new.lines)}),
                parts=old.parts,
                was=old.answer,
                now=new.answer,
            )
            more = pair.more_attributes
            if more and self._known is not None and not any(map(self._known, more)):
                pair = replace(pair, now=replace(pair.now, digest=pair.was.digest))
            pairs[old.function].append(pair)
        return pairs

    @staticmethod
    def _difference(twin: Twin, one: UndemandedChange) -> Difference:
        pair = one.pair
        return Difference(
            path=twin.file.path,
            function=twin.name,
            call=f"{twin.name}({pair.text})",
            old=pair.was.text,
            new=pair.now.text,
            origin=pair.origin,
            crash=pair.crash,
            effect=one.effect,
            explained=one.explained,
        )

    def _reach(self, number: int, compared: Sequence[AnswerPair]) -> FunctionReach:
        twin = self._twins[number]
        asked = _counted(twin, [pair for pair in compared if not pair.in_place])
        reach = asked if asked.reached else _counted(twin, [pair for pair in compared if pair.in_place], in_place=True)
        if reach.reached:
            return reach
        reach = reach if reach.compared else asked
        why = (
            self._lost
            or self._missed.get(number)
            or ("no input runs what changed" if reach.idle else "")
            or ("too few inputs" if compared else "no test calls it, and no input could be made up for it")
        )
        return replace(reach, why=why if not compared or reach.answered else "every input is turned down")

    def _properties(
        self, pairs: Mapping[int, Sequence[AnswerPair]]
    ) -> tuple[dict[str, int], tuple[PropertyBreak, ...]]:
        """Properties that held for every call before, by how often; and those that some call breaks after."""
        total: Counter[str] = Counter()
        broken: list[PropertyBreak] = []
        for number, compared in pairs.items():
            twin = self._twins[number]
            for name, count in _shared_properties([pair.was for pair in compared]).items():
                total[name] += count
                bad = [p for p in compared if p.now.held.get(name) is False and name in p.was.held]
                if bad:
                    broken.append(_break(twin, bad, name, count, unasked=_is_unasked(bad, name)))
            raising = (CallOutcome.RAISED, CallOutcome.REFUSED)
            known = {p.was.exception for p in compared if p.was.kind in raising}
            fresh = [p for p in compared if p.now.kind in raising and p.was.kind is CallOutcome.OK]
            fresh = [p for p in fresh if p.now.exception not in known]
            if fresh and len(compared) >= HELD_LEAST:
                broken.append(_break(twin, fresh, "exception kinds", len(compared)))
        return dict(sorted(total.items())), tuple(broken)


def _defaults(signature: FunctionParameters) -> list[tuple[str, str]]:
    every = (*signature.positional, *signature.named)
    return [(name, ast.unparse(default)) for name, _, default in every if default is not None]


def _counted(twin: Twin, pairs: Sequence[AnswerPair], *, in_place: bool = False) -> FunctionReach:
    compared = [pair for pair in pairs if not pair.misfit]
    return FunctionReach(
        path=twin.file.path,
        function=twin.name,
        compared=len(compared),
        agreed=sum(not pair.differs for pair in compared),
        answered=sum(CallOutcome.OK in (pair.was.kind, pair.now.kind) for pair in compared),
        in_place=in_place,
        idle=bool(compared) and not any(pair.differs or twin.runs_change(pair.new_lines) for pair in compared),
    )


def _is_unasked(bad: Sequence[AnswerPair], name: str) -> bool:
    """Whether inputs that are not careless break a property, and no turned test asks for it.

    What such a test asks is one call's answer, nothing of further calls; and a whole float is equal to an int.
    """
    of_one_call = name not in OF_FURTHER_CALLS and not name.startswith(ROUND_TRIP)
    demanded = [p for p in bad if p.origin is InputOrigin.DEMANDED]
    asked = [p for p in demanded if of_one_call and (name != WHOLE or not p.now.text.endswith(".0"))]
    return not asked and not all(p.careless for p in bad)


def _break(twin: Twin, bad: Sequence[AnswerPair], name: str, held: int, *, unasked: bool = False) -> PropertyBreak:
    """Told by the smallest input."""
    pair = min(bad, key=lambda p: (len(p.text), p.text))
    return PropertyBreak(
        path=twin.file.path, function=twin.name, name=name, held=held,
        call=f"{twin.name}({pair.text})", old=pair.was.text, new=pair.now.text, unasked=unasked,
    )  # fmt: skip


def _shared_properties(answers: Sequence[CallAnswer]) -> dict[str, int]:
    """Properties that each call which has them at all has, often enough and not on one answer alone."""
    seen: dict[str, list[bool]] = {}
    texts: dict[str, set[str]] = {}
    for answer in answers:
        for name, holds in answer.held.items():
            seen.setdefault(name, []).append(holds)
            texts.setdefault(name, set()).add(answer.digest)
    return {n: len(all_) for n, all_ in seen.items() if all(all_) and len(all_) >= HELD_LEAST and len(texts[n]) > 2}


def calls_of(
    answer: Mapping[str, Any], functions: int, tests: Mapping[int, str], turning: frozenset[str]
) -> Iterator[TreeCall]:
    """The worker's records, checked. `tests` are ids by number, `turning` those that the patch turns. Malformed."""
    for record in sequence(answer.get("calls"), _CALLS):
        told = mapping(record)
        number, item, how = integer(told.get("f")), integer(told.get("item")), str(told.get("how"))
        if not 0 <= number < functions:
            raise Malformed("a function nobody asked for")
        origin = _ORIGINS.get(how, InputOrigin.GENERATED)
        of_turned = tests.get(item, "") in turning
        if origin is InputOrigin.TESTED and of_turned:
            origin = InputOrigin.DEMANDED
        runs = [_answer(run) for run in sequence(told.get("runs"), 2)]
        steady = len(runs) == 2 and runs[0].digest == runs[1].digest and runs[0].kind == runs[1].kind
        args, kwargs = clean(told.get("args"), 4 * _TEXT), clean(told.get("kwargs"), 4 * _TEXT)
        whole = bool(args) and max(len(args), len(kwargs)) < 4 * _TEXT
        yield TreeCall(
            function=number,
            key=clean(told.get("key"), 40),
            origin=origin,
            text=clean(told.get("call"), _TEXT).replace("\n", "\\n"),
            literal=(args, kwargs) if whole else None,
            answer=runs[0] if steady else None,
            careless=how == "careless",
            of_turned=of_turned,
            in_place=how == _IN_PLACE,
            lines=_lines(told.get("runs")),
            parts=_parts(told.get("parts"), integer(told.get("own"))),
        )


def missed_of(answer: Mapping[str, Any], functions: int) -> dict[int, str]:
    """Why calls that tests make of a function were not compared, by its number. Malformed."""
    found = dict.fromkeys(range(functions), "")
    for n, live in enumerate(sequence(answer.get("live"), functions)):
        if live is not True:
            found[n] = "it does not stand once in the live program, so its calls cannot be told"
    for key, text in mapping(answer.get("missed")).items():
        number = int(key) if key.isdecimal() and len(key) < 10 else -1
        if number in found:
            found[number] = clean(text, _TEXT).replace("\n", "\\n")
    return {n: why for n, why in found.items() if why}


def _answer(record: object) -> CallAnswer:
    told = mapping(record)
    held = {clean(name, 80): value is True for name, value in list(mapping(told.get("p")).items())[:20]}
    text = clean(told.get("t"), _TEXT).replace("\n", "\\n")
    kind = clean(told.get("k"), 10)
    if kind not in _KINDS:
        raise Malformed("an answer of a kind that there is not")
    return CallAnswer(
        kind=CallOutcome(kind),
        text=text,
        digest=clean(told.get("d"), 40),
        alone=clean(told.get("r"), 40),
        held=held,
        state={clean(name, 80): clean(state, 40) for name, state in list(mapping(told.get("s", {})).items())[:_STATE]},
    )


def _lines(runs: object) -> frozenset[int]:
    """The lines noted in the last of the runs."""
    every = sequence(runs, 2)
    return frozenset(integer(n) for n in sequence(mapping(every[-1]).get("l"), _LINES)) if every else frozenset()


def _parts(told: object, own: int) -> tuple[tuple[str, str], ...]:
    """Name (or place) and digest of the arguments; the object whose method it is left out."""
    found = []
    for part in sequence(told, _ARGUMENTS):
        name, digest = exactly(part, 2)
        if not isinstance(name, int):
            found.append((clean(name, 80), clean(digest, 40)))
        elif name >= own:
            found.append((str(name - own), clean(digest, 40)))
    return tuple(found)
