"""The work of one `fix` task, stage after stage: parts are opened, the loop runs, what was found is measured.

Nothing of it is kept here, and the repository is not changed.
"""

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from localagent.app.cancellation import Stop
from localagent.app.fix.acceptance_threshold import judged
from localagent.app.fix.edit_writers import measured_ways, open_writer
from localagent.app.fix.environment import interpreter_of, interpreter_remark, left_alone, left_out
from localagent.app.fix.failure_slice import SliceLocalizer
from localagent.app.fix.injection_scan import ShownFiles, injection_warnings, reported_injections, warnings_of
from localagent.app.fix.learned_order import open_order
from localagent.app.fix.measure_strength import assessed
from localagent.app.fix.model_setup import OpenModel, context_of, open_model
from localagent.app.fix.prior import load_prior
from localagent.app.fix.request import FixRequest
from localagent.app.jail_level import open_policy_jail
from localagent.app.settings import Settings
from localagent.bisect.revert_edits import HunkLocalizer, revert_edits, reverted_files
from localagent.domain.policy import Policy
from localagent.domain.task import Event, Snapshot, Stage, Task, TaskResult
from localagent.edit.space import open_edit_space
from localagent.gate.repair_gates import open_gate_chain
from localagent.jail.api import scratch_folder
from localagent.llm.scoring.continuation_score import ModelOnward
from localagent.llm.scoring.decoder import ModelDecoder
from localagent.llm.scoring.text_likelihood import ModelReader
from localagent.localize.fuse import SpectrumLocalizer
from localagent.ports import EditWriter, GateChain, Jail, Localizer, Sink, Sources
from localagent.repair.acceptance.confidence_model import load_confidence
from localagent.repair.ordering.weights import Weights
from localagent.repair.search.repair_task import Repair
from localagent.repair.search.state import Parts
from localagent.repo.snapshot import take_snapshot
from localagent.repo.source_map import SourceMap
from localagent.verify.verifier import JailVerifier

LATE_SHARE, LATE_SECONDS = 0.02, 0.5  # what began in time may take so much longer


def answers_due(max_seconds: float) -> float:
    """By when a task that may take so many seconds has every answer of its jails, or does without."""
    return (1 + LATE_SHARE) * max_seconds + LATE_SECONDS


class WorkScope(Enum):
    """How far a task is worked on: until something is found, or until its confidence is known as well."""

    SEARCH = "search"
    WHOLE = "whole"


@dataclass(frozen=True, kw_only=True, slots=True)
class FixWork:
    """What the stages share. `seen` is told the snapshot before anything of it runs, and may refuse."""

    request: FixRequest
    task: Task
    settings: Settings
    policy: Policy
    sink: Sink
    stop: Stop
    seen: Callable[[Snapshot], None]
    scope: WorkScope = WorkScope.WHOLE


@dataclass(frozen=True, kw_only=True, slots=True)
class _TestBed:
    """The copy of the tree and what runs it; `seconds`: since the task began."""

    jail: Jail
    snapshot: Snapshot
    verifier: JailVerifier
    seconds: float
    remarks: tuple[str, ...]


def work(asked: FixWork) -> TaskResult:
    """The task itself, nothing of it kept."""
    begin = time.monotonic() if asked.request.begun is None else asked.request.begun
    jail = open_policy_jail(asked.settings, asked.policy, asked.request.backend)
    gates = open_gate_chain(asked.policy, ())
    with contextlib.ExitStack() as stack:
        model = open_model(asked.request, asked.settings, jail, asked.sink)
        if model.scorer is not None:
            stack.callback(model.scorer.close)
        ground = _open_test_bed(asked, jail, begin, stack)
        shown = ShownFiles()
        parts = _parts(asked, ground, gates, model, shown)
        repair = Repair(asked.task, parts, spent=time.monotonic() - begin)
        result = repair.run()
        if asked.scope is WorkScope.WHOLE:
            result = _measured(asked, ground, parts, result, begin)
            result = judged(asked.task, result, repair, parts, asked.policy, at_seconds=time.monotonic() - begin)
        if result.model_tokens:
            said = injection_warnings(shown, result.localization, result.baseline, parts.sources)
            result = replace(
                result, findings=reported_injections(said), warnings=(*warnings_of(said), *result.warnings)
            )
        return _with_context(result, ground, model, parts.sources)


def _open_test_bed(asked: FixWork, jail: Jail, begin: float, stack: contextlib.ExitStack) -> _TestBed:
    """The snapshot, told and shown to whoever may refuse it; the verifier is ended with `stack`, and by `stop`."""
    scratch = stack.enter_context(scratch_folder(asked.settings.scratch_dir))
    asked.sink.emit(Event(kind="stage", at_seconds=0.0, data={"stage": Stage.SNAPSHOT.value}))
    snapshot = take_snapshot(Path(asked.task.repo), scratch / "store")
    took = time.monotonic() - begin
    told = {"digest": snapshot.digest, "files": len(snapshot.entries)}
    asked.sink.emit(Event(kind="snapshot", at_seconds=took, data=told))
    asked.seen(snapshot)
    remarks = interpreter_remark(asked.task, Path(snapshot.store))
    for remark in remarks:
        asked.sink.emit(Event(kind="warning", at_seconds=took, data={"text": remark}))
    verifier = JailVerifier(
        jail=jail,
        task=asked.task,
        snapshot=snapshot,
        python=interpreter_of(asked.task),
        scratch=scratch,
        sandbox_dir=asked.settings.sandbox_dir,
        policy=asked.policy,
        sink=asked.sink,
    )
    verifier.begin = begin
    verifier.worker_pool.until = begin + answers_due(asked.task.budget.max_seconds)
    stack.callback(verifier.cancel)
    stack.enter_context(asked.stop.calling(verifier.cancel))
    return _TestBed(jail=jail, snapshot=snapshot, verifier=verifier, seconds=took, remarks=remarks)


def _parts(asked: FixWork, ground: _TestBed, gates: GateChain, model: OpenModel, shown: ShownFiles) -> Parts:
    """What the loop works with."""
    sources, task = SourceMap(ground.snapshot), asked.task
    weights, ranker = open_order(asked.settings)
    space = open_edit_space(load_prior(asked.settings.models_dir / "prior.json"))
    return Parts(
        verifier=ground.verifier,
        localizer=_localizer(asked, ground),
        space=space,
        gates=gates,
        scorer=model.scorer,
        sink=asked.sink,
        sources=sources,
        weights=weights,
        confidence=load_confidence(asked.settings.models_dir / "confidence.json"),
        context=shown.noting(lambda path, baseline: context_of(path, baseline, sources, task)),
        reader=ModelReader(ModelDecoder(model.scorer)) if model.scorer is not None else None,
        writer=_writer(asked, model, weights, sources),
        ranker=ranker,
        mender=model.scorer,
        given=tuple(revert_edits(asked.request.reverts, sources)),
        reverted=reverted_files(asked.request.reverts, sources),
        onward=ModelOnward(ModelDecoder(model.scorer), model.scorer) if model.scorer is not None else None,
    )


def _localizer(asked: FixWork, ground: _TestBed) -> Localizer:
    """By what the tests show, and by the commit that broke them where that is known."""
    spectrum = SpectrumLocalizer(text=asked.task.text)
    sliced = SliceLocalizer(spectrum, ground.verifier, budget_seconds=asked.task.budget.max_seconds)
    return HunkLocalizer(sliced, asked.request.reverts) if asked.request.reverts else sliced


def _writer(asked: FixWork, model: OpenModel, weights: Weights, sources: Sources) -> EditWriter | None:
    """Who writes edits: a model, where one is there and may."""
    request = asked.request
    if model.scorer is None or model.file is None or not request.writing:
        return None
    ways = request.ways or measured_ways(model.file.writing)
    return open_writer(model.scorer, ways, weights, sources, asked.task)


def _measured(asked: FixWork, ground: _TestBed, parts: Parts, result: TaskResult, begin: float) -> TaskResult:
    """With the strength of what was found."""
    assessment = assessed(
        result,
        ground.verifier,
        parts,
        seed=asked.task.seed,
        policy=asked.policy,
        took=time.monotonic() - begin,
        budget=asked.task.budget.max_seconds,
    )
    spent = {Stage.STRENGTH.value: round(assessment.seconds, 3)} if assessment is not None else {}
    return replace(result, assessment=assessment, seconds={**result.seconds, **spent})


def _with_context(result: TaskResult, ground: _TestBed, model: OpenModel, sources: Sources) -> TaskResult:
    """With what is known here alone: jail, snapshot, model, and what a reader should be warned of."""
    scorer = model.scorer
    remarks = result.full.remarks if result.full is not None and result.chosen is not None else ()
    return replace(
        result,
        reason="; ".join((result.reason, *remarks)),
        seconds={Stage.SNAPSHOT.value: round(ground.seconds, 3), **result.seconds},
        jail_backend=ground.jail.backend,
        jail_level=ground.jail.level,
        snapshot_digest=ground.snapshot.digest,
        threads=scorer.threads if scorer is not None else 0,
        warnings=(
            *ground.remarks,
            *model.warnings,
            *(scorer.remarks if scorer is not None else ()),
            *result.warnings,
            *remarks,
            *ground.verifier.notes,
            *left_alone(result.baseline, sources),
            *left_out(ground.snapshot),
        ),
    )
