"""A past task done again from its record: its patch verified, the task run with its seed, both journals compared.

Nothing of the task is changed and nothing lands. What was altered since, or is not there any more, is refused before
anything runs: a replay of something else would show nothing. Not promised: the same events in the same order. The
search goes on from the answers that are there, and when they come is a matter of time.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from localagent.app.cancellation import Stop
from localagent.app.evidence.task_evidence import audit_log, recorded_facts, tool_versions
from localagent.app.fix.edit_writers import known_ways
from localagent.app.fix.pipeline import FixWork, WorkScope, work
from localagent.app.fix.request import FixRequest
from localagent.app.jail_level import open_policy_jail
from localagent.app.policies import reopened
from localagent.app.review.patch_tests import ProofRequest, open_test_runner, open_tree
from localagent.app.settings import Settings
from localagent.domain.edit import Candidate, Patch, digest_of
from localagent.domain.guard import Guard, GuardScope
from localagent.domain.policy import Policy
from localagent.domain.task import Event, Snapshot, Task, TaskResult, Verdict
from localagent.errors import AnswerIsNo, UsageFault
from localagent.fs.atomic_files import RecordDamaged, read_bounded
from localagent.jail.api import BackendKind
from localagent.llm.model.registry import Registry
from localagent.ports import Sink
from localagent.record.audit.entry import AuditKind, Entry
from localagent.record.evidence_facts import Builder
from localagent.record.journal import read_journal
from localagent.record.replay_diff import ReplayExplanation, explained
from localagent.record.store import TaskRecord
from localagent.record.trajectory import TrajectoryDifference, compared, first_departure, trajectory, trajectory_digest
from localagent.repair.search.event_fanout import combined
from localagent.text.strict_json import canonical, load

_MOST_BYTES = 256 << 20
_NO_WAY = frozenset({"interrupted", "cannot-enforce", "fault"})


class PatchCheck(Enum):
    """What the tests say of the record's patch now."""

    NO_PATCH = "no-patch"
    PASSES = "passes"
    FAILS = "fails"


@dataclass(frozen=True, kw_only=True, slots=True)
class Reverified:
    """The record's patch, checked again; `reasons` say why it fails."""

    check: PatchCheck
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Replayed:
    """What came of a replay. `changed` names what the machine has in other versions than then: it may explain much.

    `explanation` is of the departure, None without one.
    """

    task: str
    events: int
    digest: str
    departure: TrajectoryDifference | None
    same_patch: bool
    verified: Reverified
    changed: tuple[str, ...]
    explanation: ReplayExplanation | None = None

    @property
    def same(self) -> bool:
        """Whether it went the same way to the same patch."""
        return self.departure is None and self.same_patch

    @property
    def confirmed(self) -> bool:
        """Whether the patch passes again, where there is one, and the task came to the same."""
        return self.same_patch and self.verified.check is not PatchCheck.FAILS


class _EventCollector:
    """A sink that keeps events."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        self.events.append(event)


def replay(record: TaskRecord, settings: Settings, sink: Sink, stop: Stop, *, repo: Path | None = None) -> Replayed:
    """Do it again. AnswerIsNo or RecordDamaged with the reason where it cannot be; jail and usage faults propagate."""
    facts, _, mine = recorded_facts(settings, record)
    if (builder := facts.get("origin", {}).get("builder", Builder.FIX.value)) != Builder.FIX:
        if builder == Builder.DO:
            raise AnswerIsNo(
                f"task {record.id} was made by a model's tool calls, and its session is not here",
                remedy=f"`localagent show {record.id}` shows what it came to",
            )
        verb = "hook fix" if builder == Builder.HOOK else builder
        raise AnswerIsNo(
            f"task {record.id} was made by {verb}: rules answered findings, and there is no trajectory to go again",
            remedy=f"`localagent {verb}` does it anew; on the same tree its rules give the same patch",
        )
    if facts["outcome"] in _NO_WAY:
        raise AnswerIsNo(f"task {record.id} ended {facts['outcome']}: there is no way to go again")
    recorded = recorded_events(record, facts, mine)
    policy = policy_then(record, facts)
    _same_model(facts, settings)
    task = replace(record.task, repo=os.path.realpath(repo or record.task.repo))
    if "guard" not in facts["asked"]:  # a task of before there was one
        task = replace(task, guard=Guard(scope=GuardScope.NONE))
    request = _request(task, facts)
    same = SameTree(record, facts).check
    kept = _EventCollector()
    verified = _reverified(record, facts, task, settings, policy, sink, stop, same)
    result: TaskResult | None = None
    try:
        sinks = combined((kept, sink))
        result = work(
            FixWork(
                request=request,
                task=task,
                settings=settings,
                policy=policy,
                sink=sinks,
                stop=stop,
                seen=same,
                scope=WorkScope.SEARCH,
            )
        )
    except AnswerIsNo as no:
        if isinstance(no, NotThatTree) or _found_then(facts) is not None:
            raise
    answer = _compared(record, facts, recorded, kept, result, verified)
    at = None if answer.departure is None else answer.departure.event
    data = {"task": record.id, "same": answer.same, "departs_at": at, "digest": answer.digest, "by": os.getuid()}
    audit_log(settings).append(AuditKind.REPLAYED, data)
    return answer


def _reverified(
    record: TaskRecord,
    facts: dict[str, Any],
    task: Task,
    settings: Settings,
    policy: Policy,
    sink: Sink,
    stop: Stop,
    same: Callable[[Snapshot], None],
) -> Reverified:
    """Every check of the task on the record's patch: all tests and checks of the goal twice, then the guard."""
    patch = patch_then(record, facts)
    if patch is None:
        return Reverified(check=PatchCheck.NO_PATCH)
    with open_tree(ProofRequest(repo=Path(task.repo)), settings) as tree:
        same(tree.snapshot)
        jail = open_policy_jail(settings, policy, _backend(facts))
        with open_test_runner(replace(tree, task=task), jail, settings, policy, sink, stop) as ground:
            baseline = ground.verifier.baseline()
            rest = baseline.failing if facts["outcome"] == Verdict.PROGRESS.value else ()
            candidate = Candidate(number=1, patch=patch, edits=(), cost=0.0)
            full = ground.verifier.full(candidate, baseline, seed=task.seed, may_fail=rest)
            if not full.accepted:
                return Reverified(check=PatchCheck.FAILS, reasons=full.reasons)
            if task.guard.scope is GuardScope.NAMED or (task.guard.scope is GuardScope.SUITE and task.tests):
                guard = ground.verifier.guard(candidate, baseline, seconds=task.guard.seconds, tell=lambda *_: None)
                if guard.refusal:
                    return Reverified(check=PatchCheck.FAILS, reasons=(guard.refusal,))
    return Reverified(check=PatchCheck.PASSES)


def patch_then(record: TaskRecord, facts: dict[str, Any]) -> Patch | None:
    """The record's patch or first proposal, None without one; RecordDamaged where it is not the one of the facts."""
    wanted = _found_then(facts)
    if wanted is None:
        return None
    patch = record.patch() if facts["patch"] is not None else record.proposal(1)
    if patch is None or patch.digest != wanted:
        raise RecordDamaged(f"{record.dir} does not hold the patch that the audit journal names: {wanted}")
    return patch


def _backend(facts: dict[str, Any]) -> BackendKind | None:
    asked = facts["asked"]["backend"]
    return BackendKind(asked) if asked else None


def _request(task: Task, facts: dict[str, Any]) -> FixRequest:
    """What was asked. AnswerIsNo where it asked for a way of writing that there is no more."""
    asked = facts["asked"]
    try:
        ways = known_ways(tuple(asked.get("ways", ())))
    except UsageFault as removed:
        raise AnswerIsNo(f"the task cannot be run again: {removed}") from removed
    return FixRequest(
        repo=Path(task.repo),
        tests=task.tests,
        checks=task.checks,
        text=task.text,
        python=task.python,
        seed=task.seed,
        budget=task.budget,
        choosing=task.choosing,
        guard=task.guard,
        min_confidence=task.min_confidence,
        use_model=asked["use_model"],
        model=asked["model"],
        gpu_layers="0",  # whatever the environment says: answers of a GPU are not the processor's
        backend=_backend(facts),
        threads=facts["threads"] or None,
        ways=ways,
    )


def _compared(
    record: TaskRecord,
    facts: dict[str, Any],
    recorded: list[dict[str, Any]],
    kept: _EventCollector,
    result: TaskResult | None,
    verified: Reverified,
) -> Replayed:
    """Both trajectories, and what came of them."""
    told_now = compared((e.kind, load(canonical(e.data))) for e in kept.events)
    told_then = compared((e["kind"], e["data"]) for e in recorded)
    went, was = trajectory(told_now), trajectory(told_then)
    departure = first_departure(was, went)
    return Replayed(
        task=record.id,
        events=len(was),
        digest=trajectory_digest(went),
        departure=departure,
        same_patch=_found_now(result) == _found_then(facts),
        verified=verified,
        changed=_changed(facts, result),
        explanation=None if departure is None else explained(told_then, told_now, departure.event),
    )


def _found_then(facts: dict[str, Any]) -> str | None:
    """The digest of the patch that the task came to, or of its first proposal."""
    found = facts["patch"] or next((p["patch"] for p in facts.get("proposals", ())), None)
    return found if isinstance(found, str) else None


def _found_now(result: TaskResult | None) -> str | None:
    if result is None:
        return None
    first = result.patch or next((candidate.patch for candidate in result.proposals), None)
    return None if first is None else first.digest


class NotThatTree(AnswerIsNo):
    """The tree is not the one that the task saw."""


@dataclass(frozen=True, slots=True)
class SameTree:
    """Whether a tree is the one that a task saw."""

    record: TaskRecord
    facts: dict[str, Any]

    def check(self, taken: Snapshot) -> None:
        """NotThatTree with the files that differ, before anything of it runs."""
        if taken.digest == self.facts["snapshot"]:
            return
        then = self._then()
        now = {str(x.path): [x.kind.value, x.mode, x.digest or x.target] for x in taken.entries.values()}
        differ = sorted(path for path in {*then, *now} if then.get(path) != now.get(path))
        more = f" and {len(differ) - 5} more" if len(differ) > 5 else ""
        names = ", ".join(map(repr, differ[:5])) + more if then else "which files differ was not kept"
        raise NotThatTree(
            f"{taken.root} is not the tree that task {self.record.id} saw: {names}",
            remedy="take an applied patch back (`localagent undo`), or name a copy of that state with --repo",
        )

    def _then(self) -> dict[str, list[Any]]:
        try:
            found = load(read_bounded(self.record.dir / "snapshot.json", _MOST_BYTES))
            return {str(path): [kind, mode, digest] for path, kind, mode, digest in found["entries"]}
        except (FileNotFoundError, ValueError, TypeError, KeyError):
            return {}


def recorded_events(record: TaskRecord, facts: dict[str, Any], mine: tuple[Entry, ...]) -> list[dict[str, Any]]:
    """The task's events, once journal and request are those that the audit journal vouches for."""
    started = next((e for e in mine if e.kind is AuditKind.TASK_STARTED), None)
    if started is None or digest_of(read_bounded(record.dir / "task.json", _MOST_BYTES)) != started.data.get("asked"):
        raise RecordDamaged(f"{record.dir / 'task.json'} is not what was asked")
    try:
        entries = read_journal(record.journal_path)
    except FileNotFoundError:
        raise RecordDamaged(
            f"{record.journal_path} is missing: without it a task cannot be done again",
            remedy="`localagent fix` does it anew",
        ) from None
    lines, tip = facts["journal"]["lines"], facts["journal"]["tip"]
    last = canonical_tip(record.journal_path, lines)
    if len(entries) < lines or last != tip:
        raise RecordDamaged(f"{record.journal_path} does not end as the audit journal says")
    events = [e for e in entries[:lines] if e["kind"] != "progress"]
    return events[:-1] if events and events[-1]["data"] == {"stage": "record"} else events


def canonical_tip(path: Path, lines: int) -> str:
    """The digest of a journal's line number `lines`."""
    rows = read_bounded(path, 1 << 30).split(b"\n")
    return digest_of(rows[lines - 1] + b"\n") if 0 < lines <= len(rows) else ""


def policy_then(record: TaskRecord, facts: dict[str, Any]) -> Policy:
    """The policy that a task ran under. RecordDamaged where it is not the one that the facts name."""
    path = record.dir / "policy.json"
    try:
        data = read_bounded(path, _MOST_BYTES)
    except FileNotFoundError:
        raise RecordDamaged(f"{path} is missing") from None
    if digest_of(data) != facts["policy"]["digest"]:
        raise RecordDamaged(f"{path} is not the policy that the task ran under")
    try:
        return reopened(data)
    except ValueError as fault:
        raise RecordDamaged(f"{path} is no record of a policy: {fault}") from fault


def _same_model(facts: dict[str, Any], settings: Settings) -> None:
    """AnswerIsNo where the model is not there or is another one."""
    if facts["model"] is None:
        return
    registry = Registry(settings.models_dir, settings.data_dir)
    asked = facts["asked"]["model"]
    found = registry.resolve(asked) if asked else registry.default()
    present = f"sha256:{(found.registered_sha256 or found.sha256).removeprefix('sha256:')}"
    if present != facts["model"]["digest"]:
        raise AnswerIsNo(
            f"the model is another one: {present}, the task had {facts['model']['digest']}",
            remedy="`localagent model list` shows what there is",
        )


def _changed(facts: dict[str, Any], result: TaskResult | None) -> tuple[str, ...]:
    """What of the machine is not as it was."""
    then = {**facts["tools"], "python": facts["python"], "jail": canonical(facts["jail"]).decode("ascii").strip()}
    now = tool_versions()
    if result is not None:
        now["jail"] = canonical({"backend": result.jail_backend, "level": result.jail_level}).decode("ascii").strip()
        now["python"] = result.baseline.python if result.baseline else ""
        now["pytest"] = result.baseline.pytest if result.baseline else ""
        then["weights"] = (facts["model"] or {}).get("weights") or ""
        now["weights"] = result.model_weights or ""
    names = sorted({*then} & {*now})
    return tuple(f"{name}: {then[name]}, now {now[name]}" for name in names if then[name] != now[name])
