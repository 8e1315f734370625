"""The loop itself, with a verifier that evaluates a tiny program in this process instead of a jail.

The programs are ours and harmless; all that decides (order, budget, gates, controls, beam, choice) is the real code.
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
import pytest
from support.choice_builder import NO_OPINION

from localagent.code.source_text import parse_or_none
from localagent.domain.behaviour import Behaviours, Crash, DistinguishingCall
from localagent.domain.edit import SPAN, Candidate, Edit, EditEffect, Patch, Reading, Splice, Written
from localagent.domain.gate import Allow, Decision, Finding, Severity
from localagent.domain.guard import Guard, GuardResult
from localagent.domain.outcome import (
    Baseline,
    CauseKind,
    CheckResult,
    Failure,
    FailureCause,
    Frame,
    FullResult,
    Outcome,
    QuickResult,
    QuickRoute,
    TestResult,
)
from localagent.domain.paths import RepoPath
from localagent.domain.task import Budget, Choosing, Event, Suspicion, Task, TaskResult, Verdict
from localagent.edit.space import open_edit_space
from localagent.localize.fuse import SpectrumLocalizer
from localagent.ports import EditMender, EditSpace, EditWriter, Lines, OnwardReader, Priced, QuickCheck, Sources
from localagent.repair.acceptance import acceptance
from localagent.repair.acceptance.acceptance import KEPT_SHARE, KEPT_TO_HARDEN
from localagent.repair.ordering.ranker import Ranker, knows_nothing
from localagent.repair.ordering.weights import Weights
from localagent.repair.search import beam
from localagent.repair.search.beam import MAX_ALIKE, PARSED
from localagent.repair.search.frontier import Frontier
from localagent.repair.search.repair_task import Repair
from localagent.repair.search.run_context import Rivals
from localagent.repair.search.search_node import Lineage, SearchStep
from localagent.repair.search.state import Parts
from localagent.repair.search.syntax_only import unparsed

M, T = RepoPath("m.py"), RepoPath("test_m.py")
Tests = Mapping[str, Callable[[Mapping[str, object]], bool]]


@dataclass
class Laboratory:
    """Verifier and quick check: tests are callables over the program's namespace."""

    source: bytes
    tests: Tests
    refuse_full: int = 0
    quick_runs: list[Candidate] = field(default_factory=list)
    cancelled: bool = False
    interrupt_after: int = 10**9
    covers: dict[str, Mapping[RepoPath, frozenset[int]]] = field(default_factory=dict)
    crashing: bool = False
    answers: Callable[[Mapping[str, object]], object] | None = None
    outside: Callable[[Mapping[str, object]], bool] | None = None  # the one test outside the goal
    guards: list[float] = field(default_factory=list)  # the seconds of each guard check
    guard_takes: float = 0.0
    not_run: int = 0
    full_late: bool = False

    def outcomes(self, source: bytes) -> dict[str, tuple[Outcome, Failure | None]]:
        out: dict[str, tuple[Outcome, Failure | None]] = {}
        for name, test in self.tests.items():
            try:
                space: dict[str, object] = {}
                exec(compile(source, "m.py", "exec"), space)
                good = test(space)
            except Exception as error:  # noqa: BLE001 - a test may fail in any way
                at = error.__traceback__
                while at is not None and at.tb_next is not None:
                    at = at.tb_next
                line = getattr(error, "lineno", None) or (at.tb_lineno if at else 1)
                frames = (Frame(path=M, line=line, function="f"),)
                failure = Failure(exception=type(error).__name__, message=str(error), frames=frames)
                out[name] = (Outcome.FAILED, failure)
            else:
                out[name] = (
                    (Outcome.PASSED, None)
                    if good
                    else (
                        Outcome.FAILED,
                        Failure(exception="AssertionError", message="wrong"),
                    )
                )
        return out

    def baseline(self) -> Baseline:
        found = self.outcomes(self.source)
        covered = {M: frozenset(range(1, self.source.count(b"\n") + 1))}
        tests = tuple(
            TestResult(id=k, outcome=o, failure=f, lines=self.covers.get(k, covered), path=T, seconds=0.001)
            for k, (o, f) in found.items()
        )
        return Baseline(
            tests=tests,
            failing=tuple(t.id for t in tests if not t.outcome.good),
            passing=tuple(t.id for t in tests if t.outcome.good),
            test_files=frozenset({T}),
            not_run=self.not_run,
        )

    def quick(self, baseline: Baseline, *, jobs: int) -> QuickCheck:
        self.base = baseline
        return self

    def check(self, candidate: Candidate, *, cpu_seconds: float, stop_early: bool = True) -> QuickResult:
        self.quick_runs.append(candidate)
        if len(self.quick_runs) > self.interrupt_after:
            raise KeyboardInterrupt
        found = self.outcomes(candidate.patch.after(M) or self.source)
        turned = tuple(k for k in self.base.failing if found[k][0].good)
        broken = tuple(k for k in self.base.passing if not found[k][0].good)
        return QuickResult(
            outcomes={k: o for k, (o, _) in found.items()},
            turned=turned,
            broken=broken,
            complete=True,
            plausible=len(turned) == len(self.base.failing) and not broken,
            route=QuickRoute.SWAP,
            failures={k: f for k, (_, f) in found.items() if f is not None and k in self.base.failing},
        )

    def full(
        self, candidate: Candidate, baseline: Baseline, *, seed: int, may_fail: Collection[str] = ()
    ) -> FullResult:
        self.refuse_full -= 1
        good = self.refuse_full < 0
        return FullResult(
            accepted=good,
            reasons=() if good else ("shuffled order fails",),
            fail_to_pass=tuple(name for name in baseline.failing if name not in may_fail) if good else (),
            pass_to_pass=baseline.passing,
            pass_to_fail=(),
            still_failing=tuple(name for name in baseline.failing if name in may_fail),
            late=not good and self.full_late,
        )

    def guard(
        self, candidate: Candidate, baseline: Baseline, *, seconds: float, tell: Callable[[int, int], None]
    ) -> GuardResult:
        self.guards.append(seconds)
        time.sleep(self.guard_takes)
        if self.outside is None:
            return GuardResult(why="no tests found outside --test")
        tell(1, 1)
        space: dict[str, object] = {}
        exec(compile(candidate.patch.after(M) or b"", "m.py", "exec"), space)
        broken = () if self.outside(space) else ("test_other.py::test_o",)
        return GuardResult(found=1, ran=1, passed=1 - len(broken), broken=broken)

    def behaviours(self, candidates: Sequence[Candidate], baseline: Baseline, *, seed: int) -> Behaviours:
        if self.answers is not None:
            return self.asked(candidates)
        if not self.crashing:
            return Behaviours()
        rows = {c.number: ("ok:a", *("raised:x",) * 5) for c in candidates}
        crash = Crash(call="f(0)", failure=Failure(exception="IndexError", message="out of range"))
        return Behaviours(
            rows=rows, kept=(False, *(True,) * 5), seen=(True, *(False,) * 5), crashes=dict.fromkeys(rows, (crash,))
        )

    def still_pass(
        self, changes: Mapping[RepoPath, bytes], baseline: Baseline, names: Collection[str]
    ) -> frozenset[str] | None:
        found = self.outcomes(changes.get(M, self.source))
        return frozenset(name for name in names if found[name][0].good)

    def asked(self, candidates: Sequence[Candidate]) -> Behaviours:
        """One input, `f()`, and what `answers` makes of each program."""
        told = {}
        for c in candidates:
            space: dict[str, object] = {}
            exec(compile(c.patch.after(M) or b"", "m.py", "exec"), space)
            assert self.answers is not None
            told[c.number] = str(self.answers(space))
        rows = {number: (f"ok:{text}",) for number, text in told.items()}
        return Behaviours(
            rows=rows, kept=(True,), seen=(False,), shown=(DistinguishingCall(column=0, call="f()", answers=told),)
        )

    def cancel(self) -> None:
        self.cancelled = True

    def close(self) -> None:
        pass


class Digits:
    """An edit space of one operator: every digit becomes every other digit, by tokens where the file does not parse."""

    def edits(
        self, path: RepoPath, sources: Sources, *, lines: Lines | None, failures: Sequence[Failure]
    ) -> Iterator[Edit]:
        source = sources[path]
        effects = frozenset[EditEffect]() if parses(source) else frozenset({EditEffect.MENDS_SYNTAX})
        for i, byte in enumerate(source):
            line = source.count(b"\n", 0, i) + 1
            if chr(byte).isdigit() and (lines is None or line in lines):
                for d in b"0123456789":
                    if d != byte:
                        yield Edit(
                            path=path,
                            splices=(Splice(start=i, end=i + 1, text=bytes([d])),),
                            operator="digit",
                            line=line,
                            end_line=line,
                            prior=0.0,
                            note=f"{chr(byte)} -> {chr(d)}",
                            scope=None,
                            effects=effects,
                        )


class Nothing:
    """An edit space without edits."""

    def edits(self, path: RepoPath, sources: Sources, **_: object) -> Iterator[Edit]:
        return iter(())


class Elements:
    """An edit space of one operator: a list gets each digit as its last element."""

    def edits(
        self, path: RepoPath, sources: Sources, *, lines: Lines | None, failures: Sequence[Failure]
    ) -> Iterator[Edit]:
        for i in (k for k, byte in enumerate(sources[path]) if byte == ord("]")):
            line = sources[path].count(b"\n", 0, i) + 1
            if lines is None or line in lines:
                for d in b"0123456789":
                    added = Splice(start=i, end=i, text=b", " + bytes([d]))
                    yield Edit(
                        path=path, splices=(added,), operator="element", line=line, end_line=line, prior=0.0, scope=None
                    )  # fmt: skip


def parses(source: bytes) -> bool:
    try:
        compile(source, "m.py", "exec")
    except SyntaxError:
        return False
    return True


@dataclass
class Gates:
    """Denies edits whose note is listed, and lets no line of `protected` be edited."""

    denied: frozenset[str] = frozenset()
    protected: frozenset[int] = frozenset()

    def protection(self, path: RepoPath, line: int, baseline: Baseline, sources: Sources) -> Finding | None:
        if line not in self.protected:
            return None
        return Finding(rule="listed", severity=Severity.HIGH, path=path, line=line, message=f"{path}:{line} is listed")

    def review(self, candidate: Candidate, baseline: Baseline, sources: Sources) -> Iterable[Decision]:
        if candidate.edits[-1].note in self.denied:
            finding = Finding(rule="listed", severity=Severity.HIGH, path=M, line=1, message="listed")
            return [Decision(gate="list", answer=Allow.DENY, findings=(finding,))]
        return [Decision(gate="list", answer=Allow.ALLOW)]


@dataclass
class Events:
    seen: list[Event] = field(default_factory=list)

    def emit(self, event: Event) -> None:
        self.seen.append(event)


@dataclass
class Oracle:
    """A scripted scorer: full marks for one note, low ones for the rest; or broken from the start."""

    favourite: str
    broken: bool = False
    warning: str = ""
    partly: bool = False
    name: str = "scripted"
    digest: str = "sha256:0"
    weights: str = "sha256:0"
    tokens_used: int = 0
    prepared: tuple[str, ...] = ()
    pause: float = 0.0  # seconds that an answer takes

    def prepare(self, context: str, *, timeout_seconds: float) -> None:
        self.prepared = (*self.prepared, context)

    def read(
        self, source: bytes, context: str, edits: Sequence[Edit], *, timeout_seconds: float
    ) -> Sequence[Reading | None]:
        time.sleep(self.pause)
        if self.broken:
            self.warning = "the model crashed"
            return [None for _ in edits]
        self.tokens_used += 10
        if self.partly:
            self.warning = "the model crashed"
            edits, rest = edits[: len(edits) // 2], edits[len(edits) // 2 :]
            return [*(Reading(ratio=-9.0, stood=-1.0) for _ in edits), *(None for _ in rest)]
        return [Reading(ratio=0.0 if e.note == self.favourite else -9.0, stood=-1.0) for e in edits]

    def close(self) -> None:
        pass


@dataclass
class Taste:
    """A scripted reader that finds texts with `liked` in them likelier by so many nats; None: it cannot read."""

    liked: bytes
    nats: float | None

    def likelihoods(self, texts: Sequence[bytes], *, timeout_seconds: float) -> list[float] | None:
        return None if self.nats is None else [-20.0 + self.nats * (self.liked in text) for text in texts]


def repair(
    laboratory: Laboratory,
    *,
    budget: Budget | None = None,
    gates: Gates | None = None,
    scorer: Oracle | None = None,
    reader: Taste | None = None,
    writer: EditWriter | None = None,
    ranker: Ranker | None = None,
    onward: OnwardReader | None = None,
    mender: EditMender | None = None,
    space: EditSpace | None = None,
    learned: float = 0.0,
    mended: float = 0.3,
    choosing: Choosing = Choosing.ASK,
    goal: tuple[str, ...] = (),
    guard: Guard | None = None,
    named: tuple[str, ...] = (),
) -> tuple[TaskResult, Events]:
    events = Events()
    parts = Parts(
        verifier=laboratory,
        localizer=SpectrumLocalizer(),
        space=space or Digits(),
        gates=gates or Gates(),
        scorer=scorer,
        sink=events,
        sources={M: laboratory.source, T: b"import m\n"},
        weights=Weights(learned=learned, mended=mended),
        confidence=NO_OPINION,
        context=lambda path, baseline: f"# {len(baseline.failing)} of {path}",
        reader=reader,
        writer=writer,
        ranker=ranker,
        onward=onward,
        mender=mender,
    )
    limits = budget or Budget(max_candidates=500, max_seconds=30, jobs=1)
    task = Task(id="t", repo="/r", tests=goal or named, budget=limits, choosing=choosing, guard=guard or Guard())
    return Repair(task, parts).run(), events


def number(name: str, value: object) -> Callable[[Mapping[str, object]], bool]:
    return lambda space: space[name] == value


def test_one_wrong_digit_is_found_and_ranked() -> None:
    lab = Laboratory(b"a = 1\nb = 2\n", {"a": number("a", 1), "b": number("b", 7)})
    result, _ = repair(lab)
    assert result.verdict is Verdict.ACCEPTED
    assert result.patch is not None
    assert result.patch.after(M) == b"a = 1\nb = 7\n"
    assert result.exit == 0
    assert result.rank_of_first_plausible is not None
    assert result.rank_of_first_plausible <= result.verified


def test_a_learned_order_leads_where_it_is_switched_on() -> None:
    usual = knows_nothing(with_model=False)
    liking = np.array([9.0 * (name == "pairs-known") for name in usual.features])
    ranker = Ranker(
        name="usual", with_model=knows_nothing(with_model=True), without_model=replace(usual, linear=liking)
    )

    def ran(learned: float) -> tuple[int | None, object]:
        lab = Laboratory(b"a = 9\nb = 2\n", {"a": number("a", 9), "b": number("b", 9)})
        result, events = repair(lab, ranker=ranker, learned=learned)
        return result.rank_of_first_plausible, next(e for e in events.seen if e.kind == "localized").data["order"]

    by_hand, hand = ran(0.0)
    first, named = ran(1.0)
    assert (hand, named) == ("hand", "usual")
    assert first is not None
    assert by_hand is not None
    assert first <= 2 < by_hand


def test_two_wrong_digits_are_found_through_the_beam() -> None:
    lab = Laboratory(b"a = 1\nb = 2\n", {"a": number("a", 8), "b": number("b", 7)})
    result, _ = repair(lab)
    assert result.patch is not None
    assert result.patch.after(M) == b"a = 8\nb = 7\n"
    assert result.rounds == 2


def test_candidates_that_turned_different_tests_are_joined_at_once() -> None:
    lab = Laboratory(b"a = 1\nb = 2\nc = 3\n", {"a": number("a", 8), "b": number("b", 7), "c": number("c", 6)})
    result, _ = repair(lab)
    assert result.patch is not None
    assert result.patch.after(M) == b"a = 8\nb = 7\nc = 6\n"
    first_of_three = next(c for c in lab.quick_runs if len(c.edits) == 3)
    assert first_of_three.patch == result.patch


@pytest.mark.parametrize("most", [beam.MAX_AGAIN, 0])
def test_candidates_that_changed_the_same_place_are_joined_as_the_edit_space_has_it(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(beam, "MAX_AGAIN", most)

    def holds(d: int) -> Callable[[Mapping[str, object]], bool]:
        return lambda space: d in cast(list[int], space["a"])

    lab = Laboratory(b"a = [0]\n", {"five": holds(5), "eight": holds(8)})
    repair(lab, space=Elements())
    first_of_two = next(c for c in lab.quick_runs if len(c.edits) == 2)
    joined = first_of_two.patch.after(M) in (b"a = [0, 5, 8]\n", b"a = [0, 8, 5]\n")
    assert joined is bool(most)


def test_nothing_to_fix_is_an_answer_of_its_own() -> None:
    result, _ = repair(Laboratory(b"a = 1\n", {"a": number("a", 1)}))
    assert (result.verdict, result.exit, result.patch) == (Verdict.NOTHING_TO_FIX, 0, None)


def test_tests_that_did_not_run_are_not_called_passing() -> None:
    result, _ = repair(Laboratory(b"a = 1\n", {"a": number("a", 1)}, not_run=3))
    assert (result.verdict, result.exit) == (Verdict.GAVE_UP, 1)
    assert "3 did not run" in result.reason


def test_a_full_check_that_came_too_late_is_no_failure_of_the_patch() -> None:
    tests: Tests = {"a": lambda s: s["a"] in (5, 6), **{name: lambda _: True for name in "bcd"}}
    result, _ = repair(Laboratory(b"a = 1\n", tests, refuse_full=99, full_late=True))
    assert result.verdict is Verdict.GAVE_UP
    assert "failed the full check" not in result.reason
    assert "no time for the full check" in result.reason


def test_the_budget_of_candidates_is_never_exceeded() -> None:
    lab = Laboratory(b"a = 1\nb = 2\n", {"b": lambda _: False})
    result, _ = repair(lab, budget=Budget(max_candidates=5, max_seconds=30, jobs=2))
    assert (result.verdict, result.verified) == (Verdict.GAVE_UP, 5)
    controls = 2
    assert len(lab.quick_runs) == 5 + controls
    assert "budget of candidates" in result.reason
    assert "`localagent debug b` shows where to look" in result.reason


def test_where_the_baseline_took_all_the_time_nothing_is_searched_and_that_is_said() -> None:
    lab = Laboratory(b"a = 1\nb = 2\n", {"b": number("b", 7)})
    result, _ = repair(lab, budget=Budget(max_candidates=500, max_seconds=1e-9, jobs=1))
    assert (result.verdict, result.verified, result.enumerated) == (Verdict.GAVE_UP, 0, 0)
    assert lab.quick_runs == []
    assert "the time is used up after 0 candidates; running the tests without a patch took" in result.reason
    assert "--max-seconds" in result.reason


def test_a_denied_candidate_never_runs() -> None:
    lab = Laboratory(b"a = 1\n", {"a": number("a", 7)})
    result, _ = repair(lab, gates=Gates(frozenset({"1 -> 7"})))
    assert result.verdict is Verdict.GAVE_UP
    assert result.denied == {"listed": 1}
    assert all(c.edits[-1].note != "1 -> 7" for c in lab.quick_runs)


def test_tests_that_pass_on_a_broken_program_are_not_believed() -> None:
    runs = iter([False] + [True] * 1000)
    lab = Laboratory(b"a = 1\n", {"a": lambda _: next(runs)})
    result, _ = repair(lab)
    assert result.verdict is Verdict.UNTRUSTED_TESTS
    assert result.exit == 1
    assert result.patch is None


def test_a_plausible_candidate_the_full_check_refuses_is_not_accepted() -> None:
    tests: Tests = {"a": lambda s: s["a"] in (5, 6), **{name: lambda _: True for name in "bcd"}}
    lab = Laboratory(b"a = 1\n", tests, refuse_full=1)
    result, _ = repair(lab)
    assert result.verdict is Verdict.ACCEPTED
    assert result.plausible == 2
    lab = Laboratory(b"a = 1\n", tests, refuse_full=99)
    result, _ = repair(lab)
    assert result.verdict is Verdict.GAVE_UP
    assert "failed the full check" in result.reason


def test_rivals_that_one_test_does_not_tell_apart_need_a_person() -> None:
    lab = Laboratory(b"a = 1\n", {"a": lambda s: s["a"] in (5, 6)})
    result, _ = repair(lab)
    assert (result.verdict, result.exit, result.patch) == (Verdict.NEEDS_PERSON, 1, None)
    assert "1 -> 5" in result.reason
    assert "1 -> 6" in result.reason


def test_rivals_that_differ_on_a_known_input_are_ambiguous_and_the_input_is_told() -> None:
    lab = Laboratory(b"a = 1\n", {"a": lambda s: s["a"] in (5, 6)}, answers=lambda s: s["a"])
    result, events = repair(lab)
    assert (result.verdict, result.exit, result.patch) == (Verdict.AMBIGUOUS, 1, None)
    assert result.ambiguity is not None
    assert result.ambiguity.call == "f()"
    taken = {n: (c.patch.after(M) or b"")[4:5].decode() for n, c in enumerate(result.proposals, 1)}
    assert result.ambiguity.answers == taken
    assert "on f(): 1 answers 5; 2 answers 6" in result.reason
    told = [e.data for e in events.seen if e.kind == "ambiguous"]
    assert told == [{"call": "f()", "answers": [[1, "5"], [2, "6"]]}]


def test_the_greatest_cluster_is_assumed_and_the_input_is_told() -> None:
    lab = Laboratory(b"a = 1\n", {"a": lambda s: s["a"] in (5, 6, 7)}, answers=lambda s: s["a"] == 5)
    result, _ = repair(lab, choosing=Choosing.ASSUME)
    assert result.verdict is Verdict.ACCEPTED
    assert result.patch is not None
    assert result.patch.after(M) == b"a = 6\n"  # 6 and 7 do the same, and 5 costs no less
    assert any("On f() it answers False; others that pass: True" in w for w in result.warnings)


def test_rivals_are_no_obstacle_where_the_best_is_to_be_assumed() -> None:
    lab = Laboratory(b"a = 1\n", {"a": lambda s: s["a"] in (5, 6)})
    result, events = repair(lab, choosing=Choosing.ASSUME)
    assert result.verdict is Verdict.ACCEPTED
    assert result.plausible == 2
    assert any("--assume" in w for w in result.warnings)
    assert any(e.kind == "undecided" for e in events.seen)  # the journal says what was in doubt


def test_assuming_does_not_take_what_the_full_check_refuses() -> None:
    lab = Laboratory(b"a = 1\n", {"a": lambda s: s["a"] in (5, 6)}, refuse_full=99)
    result, _ = repair(lab, choosing=Choosing.ASSUME)
    assert (result.verdict, result.patch) == (Verdict.GAVE_UP, None)


def test_assuming_says_nothing_where_nothing_was_in_doubt() -> None:
    tests: Tests = {"a": number("a", 8), **{name: lambda _: True for name in "bcd"}}
    result, _ = repair(Laboratory(b"a = 1\n", tests), choosing=Choosing.ASSUME)
    assert result.verdict is Verdict.ACCEPTED
    assert not any("--assume" in w for w in result.warnings)


def test_the_first_that_passes_is_taken_without_looking_for_another() -> None:
    lab = Laboratory(b"a = 1\n", {"a": lambda s: s["a"] in (5, 6)})
    result, events = repair(lab, choosing=Choosing.FIRST)
    asked, _ = repair(Laboratory(b"a = 1\n", lab.tests))
    assert result.verdict is Verdict.ACCEPTED
    assert result.verified < asked.verified
    assert any("--first" in w for w in result.warnings)
    assert not any(e.kind == "ranked" for e in events.seen)


def test_the_first_is_not_taken_where_the_full_check_refuses_it() -> None:
    lab = Laboratory(b"a = 1\n", {"a": lambda s: s["a"] in (5, 6)}, refuse_full=1)
    result, events = repair(lab, choosing=Choosing.FIRST)
    assert result.verdict is Verdict.ACCEPTED
    checks = [e.data["accepted"] for e in events.seen if e.kind == "full-check"]
    assert checks == [False, True]


def test_of_rivals_the_one_that_reads_most_naturally_is_taken_and_said_to_be() -> None:
    tests = {"a": lambda s: s["a"] in (5, 6)}
    result, events = repair(Laboratory(b"a = 1\n", tests), reader=Taste(b"6", 9.0))
    assert result.verdict is Verdict.ACCEPTED
    assert result.patch is not None
    assert result.patch.after(M) == b"a = 6\n"
    assert any("reads most naturally" in w for w in result.warnings)
    assert any(e.kind == "read" for e in events.seen)


def test_what_reads_most_naturally_and_is_left_to_a_person_is_not_said_to_be_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(acceptance, "unproven", lambda *_: True)
    tests = {"a": lambda s: s["a"] in (5, 6)}
    result, events = repair(Laboratory(b"a = 1\n", tests), reader=Taste(b"6", 9.0))
    assert (result.verdict, result.patch) == (Verdict.NEEDS_PERSON, None)
    assert any(e.kind == "read" for e in events.seen)
    assert not any("reads most naturally" in w for w in result.warnings)


@pytest.mark.parametrize("nats", [None, 0.0, 0.5])
def test_a_reader_that_cannot_tell_settles_nothing(nats: float | None) -> None:
    tests = {"a": lambda s: s["a"] in (5, 6)}
    result, _ = repair(Laboratory(b"a = 1\n", tests), reader=Taste(b"6", nats))
    assert (result.verdict, result.patch) == (Verdict.NEEDS_PERSON, None)


def test_a_program_that_crashes_near_the_few_tests_needs_a_person() -> None:
    lab = Laboratory(b"a = 1\n", {"a": number("a", 8)}, crashing=True)
    result, events = repair(lab)
    assert (result.verdict, result.exit) == (Verdict.NEEDS_PERSON, 1)
    assert "crashes on inputs near theirs (IndexError in f(0))" in result.reason
    assert not any(e.kind == "hardening" for e in events.seen)  # a guess is not built upon
    assert [c.patch.after(M) for c in result.proposals] == [b"a = 8\n"]


def test_with_tests_enough_a_crash_near_them_is_only_an_odd_input() -> None:
    lab = Laboratory(b"a = 1\nb = 2\n", {"a": number("a", 8), **{f"b{n}": number("b", 2) for n in range(3)}})
    lab.crashing = True
    assert repair(lab)[0].verdict is Verdict.ACCEPTED


def test_a_patch_is_progress_where_other_failing_tests_never_run_it() -> None:
    lab = Laboratory(b"a = 1\nb = 2\n", {"a": number("a", 7), "elsewhere": lambda _: False})
    lab.covers = {"elsewhere": {RepoPath("other.py"): frozenset({1})}}
    result, _ = repair(lab)
    assert (result.verdict, result.exit, result.patch) == (Verdict.PROGRESS, 1, None)
    assert [c.patch.after(M) for c in result.proposals] == [b"a = 7\nb = 2\n"]
    assert result.full is not None
    assert (result.full.fail_to_pass, result.full.still_failing) == (("a",), ("elsewhere",))
    assert result.reason == "turns 1 of 2 failing tests; 1 does not run what it changes and still fails: elsewhere"
    lab = Laboratory(b"a = 1\nb = 2\n", {"a": number("a", 7), "elsewhere": lambda _: False})
    result, _ = repair(lab)
    assert result.verdict is Verdict.GAVE_UP


class Punctual(Laboratory):
    """Checks that take a while, and a full check that only answers within the task's time."""

    seconds = 1.5
    begun = 0.0

    def baseline(self) -> Baseline:
        self.begun = time.monotonic()
        return super().baseline()

    def check(self, candidate: Candidate, *, cpu_seconds: float, stop_early: bool = True) -> QuickResult:
        time.sleep(0.01)
        return super().check(candidate, cpu_seconds=cpu_seconds, stop_early=stop_early)

    def full(
        self, candidate: Candidate, baseline: Baseline, *, seed: int, may_fail: Collection[str] = ()
    ) -> FullResult:
        self.full_late = time.monotonic() - self.begun > self.seconds
        self.refuse_full = int(self.full_late)
        return super().full(candidate, baseline, seed=seed, may_fail=may_fail)


@pytest.mark.parametrize("other", ["other.py", "m.py"])
def test_what_turned_some_tests_is_checked_while_there_is_time(other: str) -> None:
    lines = b"".join(b"%c = 1\n" % letter for letter in b"bcdefghijklmnopqrstuv")
    lab = Punctual(b"a = 1\n" + lines, {"a": number("a", 0), "elsewhere": lambda _: False})
    every = frozenset(range(1, 22))
    lab.covers = {"a": {M: every}, "elsewhere": {RepoPath(other): every}}
    result, _ = repair(lab, budget=Budget(max_candidates=10_000, max_seconds=lab.seconds, jobs=1))
    if other == "other.py":
        assert result.verdict is Verdict.PROGRESS
        assert [c.patch.after(M) for c in result.proposals] == [b"a = 0\n" + lines]
    else:
        assert result.verdict is Verdict.GAVE_UP
        assert "the time is used up" in result.reason


class Incomplete(Laboratory):
    """One of its tests fails for want of a plugin."""

    def baseline(self) -> Baseline:
        found = super().baseline()
        cause = FailureCause(
            kind=CauseKind.MISSING_PLUGIN, subject="mocker", sentence="no mocker", remedy="install it", failing=("m",)
        )
        return replace(found, failing=tuple(name for name in found.failing if name != "m"), causes=(cause,))


@pytest.mark.parametrize("choosing", list(Choosing))
def test_nothing_is_accepted_while_a_test_fails_for_want_of_something(choosing: Choosing) -> None:
    lab = Incomplete(b"a = 1\nb = 2\n", {"a": number("a", 7), "m": lambda _: False})
    result, _ = repair(lab, choosing=choosing)
    assert (result.verdict, result.exit, result.patch) == (Verdict.PROGRESS, 1, None)
    assert [c.patch.after(M) for c in result.proposals] == [b"a = 7\nb = 2\n"]
    assert result.reason == "turns 1 of 2 failing tests; 1 still fails: m"


class OnlyTheCheckRuns(Incomplete):
    """What was named with --check passes, and its tests fail for want of a plugin."""

    def baseline(self) -> Baseline:
        check = CheckResult(command="make", outcome=Outcome.PASSED, seconds=0.0)
        return replace(super().baseline(), checks=(check,))


def test_a_named_check_that_passes_leaves_nothing_to_fix_beside_tests_that_cannot_run() -> None:
    result, _ = repair(OnlyTheCheckRuns(b"a = 1\n", {"m": lambda _: False}))
    assert (result.verdict, result.exit) == (Verdict.NOTHING_TO_FIX, 0)
    assert result.reason == "nothing to fix: the named checks pass; tests beside them do not run: no mocker"
    result, _ = repair(OnlyTheCheckRuns(b"a = 1\n", {"m": lambda _: False}), named=("test_m.py",))
    assert result.verdict is Verdict.NEEDS_PERSON


def test_some_of_the_tests_that_were_named_are_progress_and_the_rest_is_told() -> None:
    lab = Laboratory(b"a = 1\nb = 2\n", {"a": number("a", 7), "b": lambda _: False})
    result, _ = repair(lab, named=("test_m.py",))
    assert (result.verdict, result.exit, result.patch) == (Verdict.PROGRESS, 1, None)
    assert [c.patch.after(M) for c in result.proposals] == [b"a = 7\nb = 2\n"]
    assert result.reason == "turns 1 of 2 tests and checks that were asked for; 1 still fails: b"
    assert result.proposed[0].still_failing == ("b",)


def test_a_patch_that_breaks_a_test_is_no_progress() -> None:
    tests: Tests = {"a": number("a", 7), "b": lambda _: False, "c": number("a", 1)}
    result, _ = repair(Laboratory(b"a = 1\nb = 2\n", tests), named=("test_m.py",))
    assert (result.verdict, result.proposals) == (Verdict.GAVE_UP, ())


def test_where_every_place_is_protected_the_reason_says_so() -> None:
    lab = Laboratory(b"a = 1\n", {"a": number("a", 7)})
    result, _ = repair(lab, gates=Gates(protected=frozenset({1})))
    assert (result.verdict, result.verified) == (Verdict.GAVE_UP, 0)
    assert result.reason.endswith("may not be repaired: m.py:1 is listed")


class Unseen(Laboratory):
    """No test's lines are known to hold what a patch changes."""

    def baseline(self) -> Baseline:
        found = super().baseline()
        return replace(found, tests=tuple(replace(t, lines={M: frozenset({99})}) for t in found.tests))

    lost = False
    blind = False

    def still_pass(
        self, changes: Mapping[RepoPath, bytes], baseline: Baseline, names: Collection[str]
    ) -> frozenset[str] | None:
        if self.lost:
            return None
        return frozenset(names) if self.blind else super().still_pass(changes, baseline, names)


def _answer(space: Mapping[str, object]) -> float:
    return cast("Callable[[], float]", space["f"])()


_UNSEEN: Tests = {
    "a": lambda space: _answer(space) == 7,
    "b": lambda space: _answer(space) > 1,
    "c": lambda space: _answer(space) < 8,
    "d": lambda space: _answer(space) != 3,
}


@pytest.mark.parametrize(("blind", "lost"), [(False, False), (True, False), (False, True)])
def test_what_no_test_runs_is_accepted_only_where_breaking_it_is_noticed(*, blind: bool, lost: bool) -> None:
    lab = Unseen(b"def f():\n    return 7 / 0\n", _UNSEEN)
    lab.blind, lab.lost = blind, lost
    result, events = repair(lab)
    told = [e.data["noticed"] for e in events.seen if e.kind == "goal-controls"]
    assert told
    if not blind and not lost:
        assert result.verdict is Verdict.ACCEPTED
        return
    assert (result.verdict, result.exit, result.patch) == (Verdict.NEEDS_PERSON, 1, None)
    assert len(result.proposals) == 1
    assert ("cannot be told" if lost else "fails when m.py:f is broken on purpose") in result.reason
    assumed, _ = repair(lab, choosing=Choosing.ASSUME)
    assert assumed.verdict is Verdict.ACCEPTED
    assert any("--assume" in w for w in assumed.warnings)


def test_the_models_order_is_followed() -> None:
    lab = Laboratory(b"a = 1\n", {"a": number("a", 9)})
    with_model, _ = repair(lab, scorer=Oracle("1 -> 9"))
    without, _ = repair(Laboratory(b"a = 1\n", {"a": number("a", 9)}))
    assert with_model.rank_of_first_plausible == 1
    assert without.rank_of_first_plausible == 9
    assert with_model.model_name == "scripted"
    assert with_model.model_tokens == 10


def test_a_broken_model_changes_nothing_but_the_warning() -> None:
    tests = {"a": number("a", 9)}
    broken, _ = repair(Laboratory(b"a = 1\n", tests), scorer=Oracle("", broken=True))
    without, _ = repair(Laboratory(b"a = 1\n", tests))
    assert broken.patch == without.patch
    assert broken.rank_of_first_plausible == without.rank_of_first_plausible
    assert broken.warnings == ("the model crashed",)
    assert broken.model_name is None


def test_what_a_crashing_model_had_read_is_not_used() -> None:
    """Half of the edits have readings when it dies: the other half must not stand behind or before them for that."""
    tests = {"a": number("a", 9)}
    partly, _ = repair(Laboratory(b"a = 1\n", tests), scorer=Oracle("", partly=True))
    without, _ = repair(Laboratory(b"a = 1\n", tests))
    assert (partly.patch, partly.rank_of_first_plausible) == (without.patch, without.rank_of_first_plausible)
    assert partly.warnings == ("the model crashed",)


def test_what_a_model_ordered_is_put_back_when_it_is_dropped() -> None:
    """It liked large digits; it dies when the first candidate runs, and the rest comes as without it."""

    class Backwards(Oracle):
        def read(
            self, source: bytes, context: str, edits: Sequence[Edit], *, timeout_seconds: float
        ) -> Sequence[Reading | None]:
            return [Reading(ratio=float(e.note[-1]) - 9.0, stood=-1.0) for e in edits]

    class Killing(Laboratory):
        def check(self, candidate: Candidate, *, cpu_seconds: float, stop_early: bool = True) -> QuickResult:
            if candidate.edits[-1].operator == "digit":
                model.warning = "the model crashed"
            return super().check(candidate, cpu_seconds=cpu_seconds, stop_early=stop_early)

    tests, model = {"a": number("a", 2)}, Backwards("")
    kept, _ = repair(Laboratory(b"a = 1\n", tests), scorer=Backwards(""))
    dropped, events = repair(Killing(b"a = 1\n", tests), scorer=model)
    assert kept.rank_of_first_plausible == 8
    assert dropped.rank_of_first_plausible in (3, 4)  # one or two were in flight
    assert [e.data["edits"] for e in events.seen if e.kind == "unordered"] == [9]
    assert dropped.model_name is None


def test_the_model_is_told_first_what_stands_in_front_of_the_most_suspicious_file() -> None:
    class Told(Oracle):
        def read(
            self, source: bytes, context: str, edits: Sequence[Edit], *, timeout_seconds: float
        ) -> Sequence[Reading | None]:
            assert self.prepared == (context,)
            return super().read(source, context, edits, timeout_seconds=timeout_seconds)

    scorer = Told("")
    result, _ = repair(Laboratory(b"a = 1\n", {"a": number("a", 9)}), scorer=scorer)
    assert result.patch is not None
    assert scorer.prepared == (f"# 1 of {M}",)
    assert scorer.tokens_used


@dataclass
class Mending:
    """A scripted mender that would write one digit and no other; `silent` answers nothing."""

    favourite: str
    mends: bool = True
    silent: bool = False
    asked: int = 0

    def mend(
        self, source: bytes, context: str, edits: Sequence[Edit], *, timeout_seconds: float
    ) -> Sequence[float | None]:
        self.asked += 1
        return [None if self.silent else 0.0 if e.note == self.favourite else -99.0 for e in edits]


def test_what_the_model_mends_with_comes_first() -> None:
    """Scores are all alike; the mender alone tells edits apart, and only as far as MENDED_LEAST."""
    lab = Laboratory(b"a = 1\n", {"a": number("a", 8)})
    plain, events = repair(lab, scorer=Oracle(""))
    assert [e.data for e in events.seen if e.kind == "ordered"] == [{"edits": 9, "scored": 9}]
    (favourite,) = {e.note for c in lab.quick_runs for e in c.edits if e.note.endswith("8")}
    mender = Mending(favourite)
    first, events = repair(Laboratory(b"a = 1\n", {"a": number("a", 8)}), scorer=Oracle(""), mender=mender)
    assert plain.rank_of_first_plausible is not None
    assert first.rank_of_first_plausible is not None
    assert first.rank_of_first_plausible < plain.rank_of_first_plausible
    told = [e.data for e in events.seen if e.kind == "ordered"]
    assert told == [{"edits": 9, "scored": 9}, {"edits": 9, "mended": 9}]  # each counts as soon as it is there
    assert mender.asked == 1


def test_where_mending_counts_for_nothing_nobody_is_asked() -> None:
    mender = Mending("")
    repair(Laboratory(b"a = 1\n", {"a": number("a", 8)}), scorer=Oracle(""), mender=mender, mended=0.0)
    assert mender.asked == 0


@pytest.mark.parametrize("mender", [Mending("", mends=False), Mending("", silent=True)])
def test_a_mender_that_says_nothing_changes_nothing(mender: Mending) -> None:
    tests = {"a": number("a", 8)}
    without, _ = repair(Laboratory(b"a = 1\n", tests), scorer=Oracle(""))
    beside, _ = repair(Laboratory(b"a = 1\n", tests), scorer=Oracle(""), mender=mender)
    assert beside.rank_of_first_plausible == without.rank_of_first_plausible
    assert mender.asked == (1 if mender.mends else 0)


class Slips(Digits):
    """The same edits, as those of an undefined name: nothing about them was guessed."""

    def edits(
        self, path: RepoPath, sources: Sources, *, lines: Lines | None, failures: Sequence[Failure]
    ) -> Iterator[Edit]:
        for edit in super().edits(path, sources, lines=lines, failures=failures):
            yield replace(edit, effects=frozenset({EditEffect.MENDS_NAME, EditEffect.EXPLAINED}))


class Asked(Digits):
    """Remembers which lines it was asked about."""

    def __init__(self) -> None:
        self.lines: list[Lines | None] = []

    def edits(
        self, path: RepoPath, sources: Sources, *, lines: Lines | None, failures: Sequence[Failure]
    ) -> Iterator[Edit]:
        self.lines.append(lines)
        return super().edits(path, sources, lines=lines, failures=failures)


def test_the_edit_space_is_told_which_lines_are_dear() -> None:
    """By the search's own costs: the best line costs nothing more."""
    space = Asked()
    tests = {"a": number("a", 2), "b": number("b", 2)}
    repair(Laboratory(b"a = 1\nb = 2\n", tests), space=space)
    (first, *_) = space.lines
    assert isinstance(first, Priced)
    assert first.crowd == Weights().crowd
    assert min(first.dearer.values()) == 0.0
    assert set(first.dearer) <= {1, 2}


def test_of_a_small_budget_some_are_kept_for_a_sturdier_patch_where_one_may_be_made() -> None:
    source = b"a = 1\n" + b"".join(b"b%d = 2\n" % k for k in range(9))
    few = {"a": lambda space: space["a"] != 1}
    many = few | {f"b{k}": number(f"b{k}", 2) for k in range(9)}
    budget = Budget(max_candidates=50, max_seconds=30, jobs=1)

    def ran(tests: Mapping[str, Callable[[Mapping[str, object]], bool]], space: Digits) -> tuple[int, int]:
        result, _ = repair(Laboratory(source, tests), budget=budget, choosing=Choosing.ASSUME, space=space)
        assert result.rank_of_first_plausible is not None
        return result.rank_of_first_plausible, result.verified

    assert ran(many, Slips())[1] == 50
    assert ran(few, Digits())[1] == 50
    first, verified = ran(few, Slips())
    assert first < 10
    assert verified in (50 - kept for kept in (KEPT_TO_HARDEN, int(KEPT_SHARE * (50 - first))))
    assert verified < 50


def test_of_those_that_change_a_line_and_fail_alike_two_are_kept() -> None:
    """Each other digit in line 1 or 3 ends the crash; none of them turns the test, which wants line 2 changed, too."""
    source = b"a = 1\nb = 2\nif a == 1: raise KeyError(a)\n"
    result, events = repair(Laboratory(source, {"b": number("b", 9)}))
    assert result.proposals
    kept = [e.data["number"] for e in events.seen if e.kind == "kept" and e.data["round"] == 1]
    edits = {e.data["number"]: str(e.data["edit"]) for e in events.seen if e.kind == "checked"}
    lines = Counter(edits[number].partition(" ")[0] for number in kept)
    assert set(lines) == {"['m.py:1", "['m.py:3"}
    assert max(lines.values()) == MAX_ALIKE


def test_what_ran_on_one_kept_candidate_comes_later_on_others_that_fail_alike() -> None:
    """Four kept candidates want the same edit of line 2: its digits run once before any of them runs again."""
    source = b"a = 1\nb = 2\nif a == 1: raise KeyError(a)\n"
    lab = Laboratory(source, {"b": number("b", 9)})
    result, events = repair(lab)
    assert result.rank_of_first_plausible is not None
    plausible = next(e.data["number"] for e in events.seen if e.kind == "checked" and e.data["plausible"])
    assert isinstance(plausible, int)
    built_upon = [c for c in lab.quick_runs if len(c.edits) == 2 and c.edits[-1].line == 2 and c.number < plausible]
    texts = [c.edits[-1].splices[0].text for c in built_upon]
    assert len(texts) == len(set(texts)) > 2


@pytest.mark.parametrize(
    ("source", "explained"),
    [
        (b"a = 1\nb = 2\nif a == 1: raise KeyError(a)\n", True),
        (b"a = 1\nb = 2\nif a == 1: raise RecursionError(a)\n", False),
        (b"a = 01\nb = 2\n", False),
    ],
)
def test_a_crash_that_an_edit_ended_is_explained_by_it_but_no_endless_recursion_and_no_text_that_did_not_parse(
    source: bytes, explained: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[SearchStep] = []
    monkeypatch.setattr(Rivals, "remember", lambda _, step: told.append(step))
    _, events = repair(Laboratory(source, {"b": number("b", 9)}))
    assert any(e.kind == "kept" and e.data["round"] == 1 for e in events.seen)
    assert any(not step.parent.edits for step in told) == explained


@pytest.mark.parametrize(("first", "parsed"), [(b"01", True), (b"11", False)])
def test_the_snapshots_turns_are_fewer_once_three_kept_candidates_parse(
    first: bytes, parsed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two that fail alike are kept, and one that crashes."""
    seen: list[bool] = []
    pop = Frontier.pop

    def watched(frontier: Frontier, *, written: bool = True) -> SearchStep | Lineage | None:
        seen.append(frontier.parsed)
        return pop(frontier, written=written)

    monkeypatch.setattr(Frontier, "pop", watched)
    source = b"a = " + first + b"\nb = 2\nif a > 50: raise KeyError(a)\n"
    repair(Laboratory(source, {"b": lambda space: False}))
    assert not seen[0]
    assert seen[-1] == parsed


def test_a_run_repeats_itself() -> None:
    # when the space of a second round opens is a matter of time: the order of neighbours
    def trail() -> tuple[list[tuple[str, ...]], Patch | None]:
        lab = Laboratory(b"a = 1\nb = 2\n", {"a": number("a", 8), "b": number("b", 7)})
        result, _ = repair(lab)
        return sorted(tuple(e.note for e in c.edits) for c in lab.quick_runs), result.patch

    assert trail() == trail()


def test_where_a_file_does_not_parse_only_that_file_is_edited() -> None:
    def failing(*exceptions: str, path: RepoPath | None = M) -> tuple[Failure, ...]:
        frame = Frame(path=path, line=1, function="<module>")
        return tuple(Failure(exception=name, message="", frames=(frame,)) for name in exceptions)

    broken = {M: b"a = (\n", T: b"import m\n"}
    assert unparsed(failing("SyntaxError", "IndentationError"), broken) == {M}
    assert unparsed(failing("SyntaxError", "NameError"), broken) == frozenset()
    assert unparsed(failing("SyntaxError", path=None), broken) == frozenset()
    assert unparsed((), broken) == frozenset()
    newer = {M: b"def f(a):\n    return t'{a}'\n", T: b"import m\n"}
    if parse_or_none(newer[M]) is None:
        assert unparsed(failing("SyntaxError"), newer) == frozenset()
        assert list(open_edit_space({}).edits(M, newer, lines=None, failures=failing("SyntaxError"))) == []


def test_a_syntax_error_of_a_text_that_is_compiled_restricts_nothing() -> None:
    """The failure stands in the test that compiles what a generator wrote, or in the generator, which parse."""
    for place in (M, T, RepoPath("gone.py")):
        failure = Failure(exception="SyntaxError", message="", frames=(Frame(path=place, line=1, function="f"),))
        assert unparsed((failure,), {M: b"a = 1\n", T: b"import m\n"}) == frozenset()

    class Generated(Laboratory):
        def outcomes(self, source: bytes) -> dict[str, tuple[Outcome, Failure | None]]:
            at_test = (Frame(path=T, line=1, function="test_a"),)
            return {
                name: (outcome, failure and replace(failure, frames=at_test))
                for name, (outcome, failure) in super().outcomes(source).items()
            }

    def compiles(space: Mapping[str, object]) -> bool:
        compile("1" + ")" * abs(int(str(space["a"])) - 3), "<made>", "eval")
        return True

    result, _ = repair(Generated(b"a = 7\n", {"a": compiles}))
    assert result.patch is not None
    assert result.patch.after(M) == b"a = 3\n"


def test_a_program_that_always_parsed_was_not_made_to_parse() -> None:
    seen: list[bool] = []
    pop = Frontier.pop

    def watched(self: Frontier, *, written: bool = True) -> SearchStep | Lineage | None:
        seen.append(self.parsed)
        return pop(self, written=written)

    def compiles(space: Mapping[str, object]) -> bool:
        digits = [int(str(space[name])) for name in "abcd"]
        compile("1" + ")" * (digits == [1, 1, 1, 1]), "<made>", "eval")
        return sum(digits) == 99

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Frontier, "pop", watched)
        _, events = repair(Laboratory(b"a = 1\nb = 1\nc = 1\nd = 1\n", {"a": compiles}))
    assert [e.kind for e in events.seen].count("kept") >= PARSED
    assert not any(seen)


@pytest.mark.parametrize(("source", "asked"), [(b"a = 01\n", False), (b"a = 11\n", True)])
def test_where_a_file_does_not_parse_the_model_is_not_asked(source: bytes, asked: bool) -> None:
    """A number may not begin with a 0: the parser says so."""
    result, events = repair(Laboratory(source, {"a": number("a", 21)}), scorer=Oracle("none"))
    assert result.patch is not None
    assert next(e.data["asked"] for e in events.seen if e.kind == "expanded") == asked


def test_the_first_candidate_that_makes_it_parse_is_asked_about_before_others_run() -> None:
    """What is said of its edits holds for those of all that come after it."""

    source = b"a = 01\n" + b"".join(b"%s = 1\n" % bytes([98 + k]) for k in range(6))
    lab = Laboratory(source, {"g": number("g", 9)})
    budget = Budget(max_candidates=40, max_seconds=300, jobs=1)
    result, events = repair(lab, scorer=Oracle("1 -> 9", pause=0.3), budget=budget)
    assert result.rank_of_first_plausible is not None
    kinds = [e.kind if e.kind != "expanded" else f"asked {e.data['asked']}" for e in events.seen]
    assert "asked False" in kinds
    meanwhile = kinds[kinds.index("asked True") : kinds.index("ordered")]
    assert meanwhile.count("started") <= 1  # the one that was looked for when it was its turn to be built upon


def test_a_file_that_raises_a_syntax_error_parses_all_the_same_and_the_model_is_asked() -> None:
    def template(space: Mapping[str, object]) -> bool:
        compile(f"x = {'(' * (1 - (space['a'] == 2))}1", "<template>", "exec")
        return True

    _, events = repair(Laboratory(b"a = 1\n", {"a": template}), scorer=Oracle("none"))
    assert next(e.data["asked"] for e in events.seen if e.kind == "expanded")


def test_edits_that_the_model_is_not_asked_about_cost_what_an_average_one_does() -> None:
    """Else each of them would come before the edits that it was asked about, on programs that parse."""

    def first_cost(scorer: Oracle | None) -> float:
        lab = Laboratory(b"a = 01\n", {"a": number("a", 21)})
        repair(lab, scorer=scorer)
        return next(c.cost for c in lab.quick_runs if EditEffect.MENDS_SYNTAX in c.edits[-1].effects)

    weights = Weights()
    dearer = -weights.model * weights.unscored
    assert dearer > 0.0
    assert first_cost(Oracle("none")) == pytest.approx(first_cost(None) + dearer)


def test_edits_of_what_does_not_parse_are_no_dearer_once_the_model_was_dropped() -> None:
    lab = Laboratory(b"a = 01\n", {"a": number("a", 1)}, refuse_full=99)
    plain = Laboratory(b"a = 01\n", {"a": number("a", 1)}, refuse_full=99)
    repair(plain)
    dropped = Oracle("none", warning="the model crashed")
    _, events = repair(lab, scorer=dropped)
    assert [e.kind for e in events.seen].count("unordered") == 1
    assert lab.quick_runs[-1].cost == plain.quick_runs[-1].cost


def test_only_who_made_the_snapshot_parse_counts_as_having_done_so() -> None:
    """One test fails with a SyntaxError that no edit ends, the other turns: the snapshot keeps its turns."""

    def never(space: Mapping[str, object]) -> bool:
        raise SyntaxError("of a template")

    source = b"".join(b"%s = 1\n" % bytes([97 + k]) for k in range(6))
    lab = Laboratory(source, {"never": never, "a": lambda space: space["a"] in (2, 3, 4, 5)})
    seen: list[bool] = []
    pop = Frontier.pop

    def watched(self: Frontier, *, written: bool = True) -> SearchStep | Lineage | None:
        seen.append(self.parsed)
        return pop(self, written=written)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Frontier, "pop", watched)
        _, events = repair(lab)
    assert [e.kind for e in events.seen].count("kept") >= PARSED
    assert not any(seen)


def test_a_rival_the_full_check_refuses_is_not_offered_and_the_search_goes_on() -> None:
    lab = Laboratory(b"a = 1\nb = 2\n", {"ab": lambda space: int(str(space["a"])) + int(str(space["b"])) == 8})
    both, _ = repair(lab)
    assert both.verdict is Verdict.NEEDS_PERSON
    assert len(both.proposals) == 2
    lab.refuse_full = 1
    one, _ = repair(lab)
    assert [c.patch.after(M) for c in one.proposals] == [c.patch.after(M) for c in both.proposals[1:]]
    lab.refuse_full = 10**6
    none, _ = repair(lab)
    assert (none.verdict, none.proposals) == (Verdict.GAVE_UP, ())
    assert "2 plausible ones failed the full check" in none.reason


def span(start: int, end: int, text: bytes, note: str = "written") -> Edit:
    splice = Splice(start=start, end=end, text=text)
    effects = frozenset({EditEffect.WRITTEN_BY_MODEL})
    return Edit(path=M, splices=(splice,), operator=SPAN, line=1, end_line=1, prior=-2.5, note=note, effects=effects)


class Scribe:
    """A writer that gives what it was told to, one a time."""

    def __init__(self, *edits: Edit, score: float = -1.0) -> None:
        self.edits, self.score = list(edits), score
        self.begun: list[Suspicion] = []
        self.told: list[tuple[Edit, int]] = []
        self.tokens_used = 0
        self.asked = 0

    @property
    def next_cost(self) -> float:
        return 2.5 if self.edits else float("inf")

    def begin(self, sources: Sources, places: Sequence[Suspicion], baseline: Baseline) -> None:
        assert sources[M]
        self.begun = list(places)

    def heard(self, edit: Edit, failures: Sequence[Failure]) -> None:
        self.told.append((edit, len(failures)))

    def more(self, *, timeout_seconds: float) -> Sequence[Written]:
        self.asked += 1
        return [Written(edit=self.edits.pop(0), score=self.score)] if self.edits else []


WORDS = b"a = 'x'\n"
SEVERAL: Tests = {"a": number("a", "y"), **{f"t{k}": lambda _: True for k in range(4)}}


def test_what_the_space_lacks_is_taken_from_the_writer() -> None:
    lab = Laboratory(WORDS, SEVERAL)
    result = repair(lab, writer=Scribe(span(5, 6, b"z"), span(5, 6, b"y")))[0]
    assert result.verdict is Verdict.ACCEPTED
    assert result.patch is not None
    assert result.patch.after(M) == b"a = 'y'\n"
    assert result.written == 2
    assert result.chosen is not None
    assert result.chosen.model_score == -1.0


def test_written_edits_pass_the_gates_and_run_once() -> None:
    lab = Laboratory(WORDS, SEVERAL)
    result = repair(lab, writer=Scribe(span(5, 6, b"y", "bad")), gates=Gates(frozenset({"bad"})))[0]
    assert result.verdict is Verdict.ALL_DENIED
    lab = Laboratory(WORDS, SEVERAL)
    repair(lab, writer=Scribe(*[span(5, 6, b"z")] * 5))
    assert sum(c.edits[-1].operator == SPAN for c in lab.quick_runs) == 1


def test_a_writer_with_nothing_changes_nothing() -> None:
    for writer in (None, Scribe()):
        result = repair(Laboratory(b"a = 1\n", {"a": number("a", 7)}), writer=writer)[0]
        assert result.verdict is Verdict.ACCEPTED
        assert result.written == 0


def test_nothing_is_written_once_a_candidate_is_plausible() -> None:
    writer = Scribe(*[span(0, 0, b"b = %d\n" % k) for k in range(400)])
    tests: Tests = {"a": number("a", 7), **{f"t{k}": lambda _: True for k in range(4)}}
    result = repair(Laboratory(b"a = 1\n", tests), writer=writer)[0]
    assert result.chosen is not None
    assert result.chosen.edits[0].operator == "digit"
    assert writer.asked < 50


def test_under_few_tests_a_written_text_needs_a_person() -> None:
    result = repair(Laboratory(WORDS, {"a": number("a", "y")}), writer=Scribe(span(5, 6, b"y")))[0]
    assert result.verdict is Verdict.NEEDS_PERSON
    assert [p.patch.after(M) for p in result.proposals] == [b"a = 'y'\n"]


MANY = WORDS + b"".join(b"v%d = 1\n" % n for n in range(60))
LIMITED = Budget(max_candidates=200, max_seconds=30, jobs=1)


def test_the_last_candidates_are_kept_for_what_is_written() -> None:
    """It came too seldom beside so many others, which are likelier each."""
    writer = Scribe(*(span(5, 6, b"z%d" % n) for n in range(24)), span(5, 6, b"y"), score=-9.0)
    result, events = repair(Laboratory(MANY, SEVERAL), writer=writer, budget=LIMITED)
    assert result.verdict is Verdict.ACCEPTED
    assert result.rank_of_first_plausible is not None
    assert 180 < result.rank_of_first_plausible <= 200
    assert not [e for e in events.seen if e.kind == "released"]


@pytest.mark.parametrize("writer", [Scribe(*(span(5, 6, b"z%d" % n) for n in range(3))), Scribe(), None])
def test_what_the_writer_leaves_of_them_the_others_have(writer: Scribe | None) -> None:
    lab = Laboratory(MANY, SEVERAL)
    result, events = repair(lab, writer=writer, budget=LIMITED)
    assert result.verdict is Verdict.GAVE_UP
    assert result.verified == 200
    released = [n for n, e in enumerate(events.seen) if e.kind == "released"]
    assert len(released) == (writer is not None)
    started = [e.data["number"] for e in events.seen[: released[0]] if e.kind == "started"] if released else []
    assert len(started) == (180 if released else 0)


def test_few_candidates_are_not_kept() -> None:
    few = Budget(max_candidates=199, max_seconds=30, jobs=1)
    writer = Scribe(*(span(5, 6, b"z%d" % n) for n in range(60)), score=-9.0)
    result, _ = repair(Laboratory(MANY, SEVERAL), writer=writer, budget=few)
    assert result.verified == 199
    assert result.written < 40


def test_a_file_that_no_tree_can_be_written_of_is_told_and_not_edited() -> None:
    source = b"big = 0x" + b"f" * 4_000 + b"\na = 1\n"
    result, _ = repair(Laboratory(source, {"a": number("a", 7)}), space=open_edit_space({}))
    assert result.verdict is Verdict.GAVE_UP
    assert [w for w in result.warnings if "m.py is not edited" in w and "more digits than Python writes" in w]
    sound, _ = repair(Laboratory(b"a = 1\n", {"a": number("a", 7)}), space=Nothing())
    assert not [w for w in sound.warnings if "not edited" in w]
