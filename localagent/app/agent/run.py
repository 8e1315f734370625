"""One session from instruction to record: builds the parts, runs the loop, proves, keeps what came of it.

The journal is written before anything is done; the report whatever the outcome. The repository is changed only when the
request says `apply`, and then by the one way that lands every patch.
"""

import contextlib
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from localagent.agent.agent_ports import JudgeAnswer
from localagent.agent.events import (
    REVIEWER,
    AgentEvent,
    Answered,
    Ended,
    EndKind,
    PersonSaid,
    Replied,
    agreed_tests,
    writes_of,
)
from localagent.agent.refused_changes import refused_changes
from localagent.app.agent.chat_model import MODEL_REMEDY, open_chat_model, refuse_absent, weaknesses
from localagent.app.agent.data_analysis import DataAnalysis, copy_data, holds_data
from localagent.app.agent.jail_runs import JailRuns, opened_runs
from localagent.app.agent.model_review import ModelReview, open_review
from localagent.app.agent.patch_judge import VerifyJudge
from localagent.app.agent.recipe_run import NoModel, no_such_name, run_recipe
from localagent.app.agent.request import DoOutcome, DoRequest, other_reviewer, roles_of_worker
from localagent.app.agent.role_turns import RoleTurns
from localagent.app.agent.script_runs import JailedScript
from localagent.app.agent.session_outcome import record_outcome, result_of
from localagent.app.agent.session_run import Frontend, OneClock, SessionRun, Work
from localagent.app.agent.session_store import Session, journal_log, save_session, whole_instruction
from localagent.app.agent.snapshot_tree import SnapshotTree
from localagent.app.agent.specification_run import by_specification, specification
from localagent.app.command_rules import refuse_denied
from localagent.app.evidence.task_evidence import TaskEvidence, audit_log, begin, open_signer, setting_of
from localagent.app.fix.environment import interpreter_of, interpreter_remark, left_out
from localagent.app.jail_level import open_policy_jail
from localagent.app.policies import OpenPolicy, open_policy
from localagent.app.settings import Settings
from localagent.domain.paths import RepoPath
from localagent.domain.task import Budget, Snapshot, Stage, Task, TaskResult, Verdict
from localagent.errors import AnswerIsNo, CannotEnforce, InternalFault, Interrupted, LocalagentError
from localagent.fs.atomic_files import RecordDamaged, read_bounded
from localagent.jail.api import scratch_folder
from localagent.ports import ChatModel
from localagent.recipes.instruction import Recipe, recipe_of
from localagent.recipes.recipe import Question
from localagent.record.attest.dsse import Signer
from localagent.record.evidence_facts import Builder, TaskOrigin
from localagent.record.journal import Journal
from localagent.record.store import TaskRecord, TaskStore
from localagent.repair.search.event_fanout import combined
from localagent.repo.apply_patch import landing_state
from localagent.repo.apply_record import LandState
from localagent.text.strict_json import load

_MOST_SNAPSHOT_BYTES = 256 << 20


def run_do(request: DoRequest, settings: Settings, front: Frontend) -> DoOutcome:
    """A new session. UsageFault for a wrong request, AnswerIsNo without model or recipe; nothing is kept then."""
    opened = open_policy(settings, request.policy, request.repo)
    refuse_denied(request.checks, opened.policy)
    signer = open_signer(settings)
    with _model_for(request, (), settings, opened, front) as model:
        audit_log(settings).ready()
        record = TaskStore(settings.state_dir).create(
            Task(
                id="",
                repo=str(request.repo.resolve()),
                tests=request.tests,
                checks=request.checks,
                text=request.instruction,
                python=request.python,
                seed=request.seed,
                budget=Budget(max_seconds=request.limits.seconds),
            )
        )
        save_session(record, request)
        front.begun(record.id)
        evidence = _evidence(settings, record, opened, request, signer)
        with Journal(record.journal_path) as journal:
            begin = time.monotonic()
            session = SessionRun(
                request=request,
                settings=settings,
                policy=opened.policy,
                record=record,
                evidence=evidence,
                model=model,
                front=front,
                sink=OneClock(sink=combined((journal, front.sink)), begin=begin),
                log=journal_log(journal, begin),
                begin=begin,
            )
            evidence.started(apply=request.apply)
            return _recorded(session, journal, resumed=False)


def resume_do(kept: Session, settings: Settings, front: Frontend, work: Work = Work.MODEL) -> DoOutcome:
    """A kept session goes on at its last complete event. AnswerIsNo for one that is finished, or applied.

    One that was killed between its end and its report has no patch, and no report of its results, yet: a model's
    finished work is proven again.
    """
    refuse_applied(kept)
    if kept.state == EndKind.FINISHED.value:
        if (kept.record.result_json() or {}).get("outcome") == Verdict.ACCEPTED.value:
            shows = f"`localagent show {kept.record.id}` shows it"
            raise AnswerIsNo(f"session {kept.record.id} is finished", remedy=shows)
        if kept.request.files:
            kept = replace(kept, events=_before_finish(kept.events))
        else:
            work = Work.PROOF if any(isinstance(event, Replied) for event in kept.events) else work
            kept = replace(kept, events=kept.events[:-1])
    request = kept.request
    opened = open_policy(settings, request.policy, request.repo)
    with _model_for(request, kept.events, settings, opened, front) as model:
        evidence = _evidence(settings, kept.record, opened, request, open_signer(settings))
        with Journal.reopened(kept.record.journal_path) as journal:
            kept.record.drop_patches()
            begin = time.monotonic()
            session = SessionRun(
                request=request,
                settings=settings,
                policy=opened.policy,
                record=kept.record,
                evidence=evidence,
                model=model,
                front=front,
                sink=OneClock(sink=combined((journal, front.sink)), begin=begin),
                log=journal_log(journal, begin, kept.events),
                begin=begin,
                work=work,
            )
            return _recorded(session, journal, resumed=True)


@contextlib.contextmanager
def _model_for(
    request: DoRequest,
    events: Sequence[AgentEvent],
    settings: Settings,
    opened: OpenPolicy,
    front: Frontend,
) -> Iterator[ChatModel]:
    """The model of a session; none where a recipe or tests as the specification need none, and none was named."""
    if front.model is not None:
        yield front.model
        return
    recipe = _recipe(request, events)
    if request.files and not request.model:
        raise AnswerIsNo("no model was given, and no analysis of data is made without one", remedy=MODEL_REMEDY)
    model: ChatModel = NoModel()
    with contextlib.ExitStack() as stack:
        if request.model or (recipe is None and not request.from_tests):
            jail = lambda: open_policy_jail(settings, opened.policy, request.backend)  # noqa: E731
            try:
                if reviewer := other_reviewer(request):
                    refuse_absent(reviewer, settings, (REVIEWER,))
                opened_model = open_chat_model(
                    request.model, settings, jail, front.stop, roles=roles_of_worker(request)
                )
                model = stack.enter_context(opened_model)
            except AnswerIsNo:
                if recipe is None:
                    raise
        yield model


def _recipe(request: DoRequest, events: Sequence[AgentEvent]) -> Recipe | None:
    """The recipe that the instruction is, where neither the model nor the person has gone on from it."""
    if request.files:
        return None
    gone_on = any(isinstance(e, Replied | PersonSaid) for e in events)
    return None if gone_on else recipe_of(request.instruction)


def _before_finish(events: tuple[AgentEvent, ...]) -> tuple[AgentEvent, ...]:
    """What a session did before its last call was answered, which is then carried out again."""
    last = max((at for at, event in enumerate(events) if isinstance(event, Answered)), default=len(events) - 1)
    return events[:last]


def refuse_applied(kept: Session) -> None:
    """AnswerIsNo for a session whose patch stands in the tree: what it rests on must stay on the record for `undo`."""
    if landing_state(kept.record.dir / "undo") not in (LandState.NONE, LandState.UNDONE):
        name = kept.record.id
        raise AnswerIsNo(
            f"the patch of session {name} is applied",
            remedy=f"begin a new session on the tree as it is, or `localagent undo {name}` first",
        )


def _evidence(
    settings: Settings, record: TaskRecord, opened: OpenPolicy, request: DoRequest, signer: Signer | None
) -> TaskEvidence:
    setting = setting_of(
        opened.recorded(),
        opened.policy.name,
        opened.policy.least_jail_level.value,
        use_model=bool(request.model),
        model=request.model,
        backend=request.backend.value if request.backend is not None else "",
        origin=TaskOrigin(builder=Builder.DO),
    )
    return begin(settings, record, opened.recorded(), setting, signer)


def _recorded(session: SessionRun, journal: Journal, *, resumed: bool) -> DoOutcome:
    """The session's result on the record, whatever it is."""
    try:
        result = _answer(session, resumed=resumed)
    except BaseException as fault:
        code = fault.exit_code if isinstance(fault, LocalagentError) else InternalFault.exit_code
        reason = str(fault) if isinstance(fault, LocalagentError) else f"{type(fault).__name__}: {fault}"
        record_outcome(session, TaskResult(verdict=Verdict.FAULT, reason=reason, exit=code), journal)
        raise
    return record_outcome(session, result, journal)


def _answer(session: SessionRun, *, resumed: bool) -> TaskResult:
    """The result; refusals and interruptions become results of their own."""
    try:
        return _worked(session, resumed=resumed)
    except (KeyboardInterrupt, Interrupted):
        results = session.request.results
        reason = "interrupted; the tree is as it was" if results is None else f"interrupted; {results} was not written"
        remedy = f"`localagent session resume {session.record.id}` goes on"
        return TaskResult(verdict=Verdict.INTERRUPTED, reason=reason, exit=130, remedy=remedy)
    except CannotEnforce as fault:
        verdict = Verdict.CANNOT_ENFORCE
        return TaskResult(verdict=verdict, reason=str(fault), exit=fault.exit_code, remedy=fault.remedy)
    except AnswerIsNo as no:
        return TaskResult(verdict=Verdict.NEEDS_PERSON, reason=str(no), exit=no.exit_code, remedy=no.remedy)


def _worked(session: SessionRun, *, resumed: bool) -> TaskResult:
    request, settings, policy = session.request, session.settings, session.policy
    if request.files:
        return _analysed(session, resumed=resumed)
    task = session.record.task
    with contextlib.ExitStack() as stack:
        with session.timed(Stage.SNAPSHOT.value):
            runs = stack.enter_context(opened_runs(request, settings, policy, task))
        jail, tree, snapshot = runs.jail, runs.tree, runs.tree.snapshot
        if resumed:
            _hold_tree(session, snapshot)
        else:
            session.evidence.snapshot(snapshot)
        session.emit("snapshot", {"digest": snapshot.digest})
        session.known.update(tree=tree, jail_backend=jail.backend, jail_level=jail.level, digest=snapshot.digest)
        weak = weaknesses(session.model, settings)
        for text in weak:
            session.emit("warning", {"text": text})
        session.known["warnings"] = (*weak, *interpreter_remark(task, Path(snapshot.store)), *left_out(snapshot))
        cancelled = threading.Event()
        stack.enter_context(session.front.stop.calling(runs.cancel))
        stack.enter_context(session.front.stop.calling(cancelled.set))
        review = open_review(request, settings, session.model, lambda: jail, session.front.stop, session.log, cancelled)
        session.known["judge"] = judge = judge_of(session, runs, stack.enter_context(review))
        if session.work is Work.PROOF:
            return result_of(session, _proven(session, judge), judge)
        with session.timed("recipe"):
            ended = _by_recipe(session, tree, judge)
        if ended is not None:
            return result_of(session, ended, judge)
        if request.from_tests and (ended := by_specification(session, tree, runs, judge)) is not None:
            return result_of(session, ended, judge)
        turns = RoleTurns(session=session, tree=tree, runs=runs, judge=judge, cancelled=cancelled)
        return result_of(session, turns.run(), judge)


def judge_of(session: SessionRun, runs: JailRuns, review: ModelReview | None = None) -> VerifyJudge:
    """What judges a session's copy, by all that was instructed so far."""
    request, tree, log = session.request, runs.tree, session.log
    asked = whole_instruction(request, log.events)
    return VerifyJudge(
        request=replace(request, instruction=asked),
        settings=session.settings,
        policy=session.policy,
        tree=tree,
        runs=runs,
        person=session.front.person,
        sink=session.sink,
        stop=session.front.stop,
        frozen=specification(request, tree),
        named_fail=lambda: bool(request.tests) and not runs.passes({}, request.tests),
        review=review,
        agreed_tests=lambda: agreed_tests(log.events),
        refused=lambda written: refused_changes(log.events, asked, written),
    )


def _proven(session: SessionRun, judge: VerifyJudge) -> Ended:
    """What the judge says of the copy as it stands; it is in the log then."""
    found = judge.judge(writes_of(session.log.events), "")
    kinds = {JudgeAnswer.ACCEPTED: EndKind.FINISHED, JudgeAnswer.NEEDS_PERSON: EndKind.NEEDS_PERSON}
    ended = Ended(kind=kinds.get(found.answer, EndKind.GAVE_UP), reason=found.reason)
    session.log.append(ended)
    return ended


def _analysed(session: SessionRun, *, resumed: bool) -> TaskResult:
    """The result of a data analysis: a script and its files instead of a patch. AnswerIsNo where a patch is wanted."""
    if session.work is Work.PROOF:
        raise AnswerIsNo("an analysis of data makes no patch", remedy="its results are in the folder of --results")
    request, settings, policy, known = session.request, session.settings, session.policy, session.known
    jail = open_policy_jail(settings, policy, request.backend)
    cancelled = threading.Event()
    with scratch_folder(settings.scratch_dir) as scratch, session.front.stop.calling(cancelled.set):
        with session.timed(Stage.SNAPSHOT.value):
            data, remarks = copy_data(request.files, scratch)
        if not (resumed and holds_data(session.record, data)):
            session.evidence.snapshot(data)
        known.update(jail_backend=jail.backend, jail_level=jail.level, digest=data.digest)
        python = interpreter_of(session.record.task)
        script = JailedScript.of(jail, settings, policy, python, data, scratch)
        analysis = DataAnalysis.open(request, session.record.id, script, session.model, session.log)
        known["warnings"] = (*weaknesses(session.model, settings), *remarks, *analysis.interpreter.remarks())
        loop = analysis.loop(policy, session.front.person, cancelled, session.tell, session.front.on_text)
        try:
            with session.timed("agent"):
                return analysis.result(loop.run())
        finally:
            known["analysis"] = analysis.json()


def _by_recipe(session: SessionRun, tree: SnapshotTree, judge: VerifyJudge) -> Ended | None:
    """The end of a session that needs no model, None where a model has to read the instruction."""
    asked = _recipe(session.request, session.log.events)
    if asked is None:
        return None
    ended = run_recipe(asked, tree, judge, session.log, session.tell)
    if isinstance(ended, Question):
        if not isinstance(session.model, NoModel):
            return None
        ended = no_such_name(ended)
        session.log.append(ended)
    return ended


def _hold_tree(session: SessionRun, snapshot: Snapshot) -> None:
    """AnswerIsNo where a file that the session changed is not as it was when the session began."""
    path = session.record.dir / "snapshot.json"
    try:
        kept = load(read_bounded(path, _MOST_SNAPSHOT_BYTES))
        was = {RepoPath(entry[0]): str(entry[3]) for entry in kept["entries"]}
    except FileNotFoundError:
        session.evidence.snapshot(snapshot)
        return
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise RecordDamaged(f"{path} is damaged: {error}") from error
    now = {p: e.digest or e.target for p, e in snapshot.entries.items()}
    moved = [str(p) for p in writes_of(session.log.events) if was.get(p) != now.get(p)]
    if moved:
        raise AnswerIsNo(
            f"changed since the session began: {', '.join(moved[:5])}",
            remedy="put them back as they were, or give the instruction anew on the tree as it is",
        )
