"""The answers of two trees, call by call: read from the worker's records, compared, and put into words.

Pure: nothing is asked here. What is compared is what both trees were asked and each answered alike twice.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from localagent.domain.verification import Difference, Differential, FunctionReach, Origin, PropertyBreak
from localagent.verify.answers import Malformed, clean, integer, mapping, sequence
from localagent.verify.changed import ChangedFile
from localagent.verify.regions import Region

DIFFERENCES_SHOWN = 50
HELD_LEAST = 5
_TEXT, _CALLS = 600, 20_000
_ORDER = (Origin.DEMANDED, Origin.TESTED, Origin.NEAR, Origin.GENERATED, Origin.SYMBOLIC)


@dataclass(frozen=True, kw_only=True, slots=True)
class Twin:
    """A touched function in both trees."""

    file: ChangedFile
    old: Region
    new: Region

    @property
    def name(self) -> str:
        """With its class."""
        return f"{self.new.class_name}.{self.new.name}" if self.new.class_name else self.new.name


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """One answer: kind, text, digest, properties."""

    kind: str
    text: str
    digest: str
    held: Mapping[str, bool]


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """One call of one tree. `literal` is its (args, kwargs) where they are plain data."""

    function: int
    key: str
    origin: Origin
    text: str
    literal: tuple[str, str] | None
    answer: Answer | None
    """None where two runs disagreed, or the program did not come so far."""


class Comparison:
    """What both trees answered, and why one of them did not."""

    def __init__(
        self,
        twins: Sequence[Twin],
        before: Mapping[str, Call],
        after: Mapping[str, Call],
        *,
        lost: str = "",
        missed: Mapping[int, str] | None = None,
    ) -> None:
        self._twins, self._before, self._after, self._lost = twins, before, after, lost
        self._missed = missed or {}

    def result(self) -> Differential:
        """The differential."""
        before, after = self._before, self._after
        found: list[Difference] = []
        demanded = 0
        pairs: dict[int, list[tuple[Call, Answer, Answer]]] = {n: [] for n in range(len(self._twins))}
        for key, old in before.items():
            new = after.get(key)
            if new is None or old.answer is None or new.answer is None:
                continue
            if "skipped" in (old.answer.kind, new.answer.kind) or old.answer.kind == new.answer.kind == "late":
                continue
            origin = min((old.origin, new.origin), key=_ORDER.index)
            pairs[old.function].append((replace(old, origin=origin), old.answer, new.answer))
        for number, compared in pairs.items():
            for call, was, now in compared:
                if was.digest == now.digest:
                    continue
                if call.origin is Origin.DEMANDED:
                    demanded += 1
                else:
                    found.append(self._difference(self._twins[number], call, was, now))
        found.sort(key=lambda d: (len(d.call), d.call, d.function))
        held, broken = self._properties(pairs)
        return Differential(
            functions=tuple(self._reach(n, pairs[n]) for n in pairs),
            differences=tuple(found[:DIFFERENCES_SHOWN]),
            differences_left_out=max(0, len(found) - DIFFERENCES_SHOWN),
            demanded=demanded,
            properties_held=held,
            broken_properties=broken,
        )

    @staticmethod
    def _difference(twin: Twin, call: Call, was: Answer, now: Answer) -> Difference:
        return Difference(
            path=twin.file.path,
            function=twin.name,
            call=f"{twin.name}({call.text})",
            old=was.text,
            new=now.text,
            origin=call.origin,
            crash=now.kind in ("raised", "late") and was.kind in ("ok", "refused"),
        )

    def _reach(self, number: int, compared: Sequence[tuple[Call, Answer, Answer]]) -> FunctionReach:
        twin = self._twins[number]
        reach = FunctionReach(
            path=twin.file.path,
            function=twin.name,
            compared=len(compared),
            agreed=sum(was.digest == now.digest for _, was, now in compared),
            answered=sum("ok" in (was.kind, now.kind) for _, was, now in compared),
        )
        if reach.reached:
            return reach
        why = (
            self._lost
            or self._missed.get(number)
            or ("too few inputs" if compared else "no test calls it, and no input could be made up for it")
        )
        return replace(reach, why=why if not compared or reach.answered else "every input is turned down")

    def _properties(
        self, pairs: Mapping[int, Sequence[tuple[Call, Answer, Answer]]]
    ) -> tuple[dict[str, int], tuple[PropertyBreak, ...]]:
        """Properties that held for every call before, by how often; and those that some call breaks after."""
        total: Counter[str] = Counter()
        broken: list[PropertyBreak] = []
        for number, compared in pairs.items():
            twin = self._twins[number]
            for name, count in _held([was for _, was, _ in compared]).items():
                total[name] += count
                bad = [
                    (call, was, now) for call, was, now in compared if now.held.get(name) is False and name in was.held
                ]
                if not bad:
                    continue
                call, was, now = min(bad, key=lambda b: (len(b[0].text), b[0].text))
                broken.append(
                    PropertyBreak(
                        path=twin.file.path, function=twin.name, name=name, held=count,
                        call=f"{twin.name}({call.text})", old=was.text, new=now.text,
                    )
                )  # fmt: skip
            kinds = {was.text.split(":")[0] for _, was, _ in compared if was.kind in ("raised", "refused")}
            fresh = [b for b in compared if b[2].kind in ("raised", "refused") and b[1].kind == "ok"]
            fresh = [b for b in fresh if b[2].text.split(":")[0] not in kinds]
            if fresh and len(compared) >= HELD_LEAST:
                call, was, now = min(fresh, key=lambda b: (len(b[0].text), b[0].text))
                broken.append(
                    PropertyBreak(
                        path=twin.file.path, function=twin.name, name="exception kinds", held=len(compared),
                        call=f"{twin.name}({call.text})", old=was.text, new=now.text,
                    )
                )  # fmt: skip
        return dict(sorted(total.items())), tuple(broken)


def _held(answers: Sequence[Answer]) -> dict[str, int]:
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
) -> Iterator[Call]:
    """The worker's records, checked. `tests` are ids by number, `turning` those that the patch turns. Malformed."""
    for record in sequence(answer.get("calls"), _CALLS):
        told = mapping(record)
        number, item, how = integer(told.get("f")), integer(told.get("item")), told.get("how")
        if not 0 <= number < functions:
            raise Malformed("a function nobody asked for")
        origin = {"seen": Origin.TESTED, "near": Origin.NEAR}.get(str(how), Origin.GENERATED)
        if origin is Origin.TESTED and tests.get(item, "") in turning:
            origin = Origin.DEMANDED
        runs = [_answer(run) for run in sequence(told.get("runs"), 2)]
        steady = len(runs) == 2 and runs[0].digest == runs[1].digest and runs[0].kind == runs[1].kind
        args, kwargs = clean(told.get("args"), 4 * _TEXT), clean(told.get("kwargs"), 4 * _TEXT)
        whole = bool(args) and max(len(args), len(kwargs)) < 4 * _TEXT
        yield Call(
            function=number,
            key=clean(told.get("key"), 40),
            origin=origin,
            text=clean(told.get("call"), _TEXT).replace("\n", "\\n"),
            literal=(args, kwargs) if whole else None,
            answer=runs[0] if steady else None,
        )


def missed_of(answer: Mapping[str, Any], functions: int) -> dict[int, str]:
    """Why calls that tests make of a function were not compared, by its number. Malformed."""
    found = dict.fromkeys(range(functions), "")
    for n, live in enumerate(sequence(answer.get("live"), functions)):
        if live is not True:
            found[n] = "it does not stand once in the live program, so its calls cannot be told"
    for key, text in mapping(answer.get("missed")).items():
        if key.isdigit() and int(key) in found:
            found[int(key)] = clean(text, _TEXT).replace("\n", "\\n")
    return {n: why for n, why in found.items() if why}


def _answer(record: object) -> Answer:
    told = mapping(record)
    held = {clean(name, 80): value is True for name, value in list(mapping(told.get("p")).items())[:20]}
    text = clean(told.get("t"), _TEXT).replace("\n", "\\n")
    return Answer(kind=clean(told.get("k"), 10), text=text, digest=clean(told.get("d"), 40), held=held)
