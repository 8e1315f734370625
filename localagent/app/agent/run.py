"""One session from instruction to record: builds the parts, runs the loop, proves, keeps what came of it.

The journal is written before anything is done; the report whatever the outcome. The repository is changed only when the
request says `apply`, and then by the one way that lands every patch.
"""

import contextlib
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from localagent.agent.agent_ports import JudgeAnswer, Person
from localagent.agent.approval import ChokePoint, Trust
from localagent.agent.context import result_limit
from localagent.agent.events import (
    AgentEvent,
    Answered,
    Ended,
    EndKind,
    MemoryLog,
    PersonSaid,
    Replied,
    ResultKind,
    writes_of,
)
from localagent.agent.loop import Loop
from localagent.agent.prompts import opening
from localagent.agent.tools.catalogue import TOOLS
from localagent.agent.tools.tool import Workshop, parse_arguments
from localagent.agent.tools.working_copy import WorkingCopy
from localagent.app.agent.change_review import GateReview
from localagent.app.agent.chat_model import MODEL_REMEDY, open_chat_model, weaknesses
from localagent.app.agent.data_analysis import DataAnalysis, copy_data, holds_data
from localagent.app.agent.graph_search import GraphSearch
from localagent.app.agent.jail_runs import JailRuns, jail_for, opened_runs
from localagent.app.agent.model_review import open_review
from localagent.app.agent.patch_judge import VerifyJudge
from localagent.app.agent.recipe_run import NoModel, no_such_name, run_recipe
from localagent.app.agent.request import DoOutcome, DoRequest
from localagent.app.agent.script_runs import JailedScript
from localagent.app.agent.session_report import agent_json, explanation
from localagent.app.agent.session_store import Session, journal_log, save_session, whole_instruction
from localagent.app.agent.snapshot_tree import SnapshotTree
from localagent.app.agent.test_driven import NOTE, TestDriven
from localagent.app.cancellation import Stop
from localagent.app.code.repository_index import indexed_facts
from localagent.app.code.skeleton_patch import files_named
from localagent.app.command_rules import refuse_denied
from localagent.app.evidence.task_evidence import TaskEvidence, audit_log, begin, land_recorded, open_signer, setting_of
from localagent.app.fix.environment import interpreter_of, interpreter_remark, left_out
from localagent.app.fix.suggest import search
from localagent.app.policies import OpenPolicy, open_policy
from localagent.app.review.patch_tests import Tree, open_test_runner
from localagent.app.settings import Settings
from localagent.domain.chat import Sampling
from localagent.domain.edit import Candidate, Patch
from localagent.domain.guard import Guard, GuardScope
from localagent.domain.paths import RepoPath
from localagent.domain.task import Budget, Choosing, Event, Snapshot, Stage, Task, TaskResult, Verdict
from localagent.errors import AnswerIsNo, CannotEnforce, InternalFault, Interrupted, LocalagentError
from localagent.fs.atomic_files import CannotRecord, RecordDamaged, read_bounded, write_through
from localagent.jail.api import scratch_folder
from localagent.ports import ChatModel, Sink
from localagent.recipes.instruction import Recipe, recipe_of
from localagent.record.attest.dsse import Signer
from localagent.record.evidence_facts import Builder, TaskOrigin
from localagent.record.journal import Journal
from localagent.record.store import TaskRecord, TaskStore
from localagent.repair.search.event_fanout import combined
from localagent.repo.apply_patch import landing_state
from localagent.repo.apply_record import LandState
from localagent.repo.diff.write_diff import unified_diff
from localagent.repo.patched_snapshot import patched
from localagent.repo.python_environment import installed_modules
from localagent.repo.source_map import SourceMap
from localagent.repo.top_level_modules import importable_names
from localagent.report.task_report import write_report
from localagent.text.strict_json import load
from localagent.text.visible_text import one_line
from localagent.verify.baseline.test_discovery import NoTests
from localagent.verify.worker.worker_client import WorkerLost

_MOST_SNAPSHOT_BYTES = 256 << 20
_SEARCH_SECONDS = 45.0  # for one question
_MOST_CANDIDATES = 1_000


class Absent:
    """Nobody is there to be asked."""

    @property
    def present(self) -> bool:
        """Never."""
        return False

    def approves(self, what: str, detail: str) -> bool:
        """Nobody says yes."""
        del what, detail
        return False

    def answer(self, question: str) -> str:
        """Nobody answers."""
        del question
        return ""


class Work(Enum):
    """What is to be done: the model goes on, or what stands in the copy is proven without it."""

    MODEL = "model"
    PROOF = "proof"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Session:
    """What the parts of one run share."""

    request: DoRequest
    settings: Settings
    opened: OpenPolicy
    record: TaskRecord
    evidence: TaskEvidence
    model: ChatModel
    person: Person
    sink: Sink
    stop: Stop
    log: MemoryLog
    begin: float
    known: dict[str, Any]
    on_text: Callable[[str], None] | None
    work: Work = Work.MODEL


def run_do(
    request: DoRequest,
    settings: Settings,
    sink: Sink,
    stop: Stop | None = None,
    person: Person | None = None,
    *,
    model: ChatModel | None = None,
    on_text: Callable[[str], None] | None = None,
    begun: Callable[[str], None] = lambda _id: None,
) -> DoOutcome:
    """A new session. UsageFault for a wrong request, AnswerIsNo without model or recipe; nothing is kept then.

    `model` is one that is open already, and stays so. `on_text` is told the replies' text as it comes, `begun` the
    session's id as soon as it is kept.
    """
    opened = open_policy(settings, request.policy, request.repo)
    refuse_denied(request.checks, opened.policy)
    signer = open_signer(settings)
    stop = stop or Stop()
    with _model_for(request, (), settings, opened, stop, model) as at_work:
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
        begun(record.id)
        evidence = _evidence(settings, record, opened, request, signer)
        with Journal(record.journal_path) as journal:
            begin_at = time.monotonic()
            session = _Session(
                request=request,
                settings=settings,
                opened=opened,
                record=record,
                evidence=evidence,
                model=at_work,
                person=person or Absent(),
                sink=combined((journal, sink)),
                stop=stop,
                log=journal_log(journal, begin_at),
                begin=begin_at,
                known={},
                on_text=on_text,
            )
            evidence.started(apply=request.apply)
            return _kept(session, journal, resumed=False)


def resume_do(
    kept: Session,
    settings: Settings,
    sink: Sink,
    stop: Stop | None = None,
    person: Person | None = None,
    *,
    model: ChatModel | None = None,
    on_text: Callable[[str], None] | None = None,
    work: Work = Work.MODEL,
) -> DoOutcome:
    """A kept session goes on at its last complete event. AnswerIsNo for one that is finished, or applied.

    One that was killed between its end and its report has no patch yet: a model's finished work is proven again.
    """
    refuse_applied(kept)
    if kept.state == EndKind.FINISHED.value:
        if kept.request.files or (kept.record.result_json() or {}).get("outcome") == Verdict.ACCEPTED.value:
            shows = f"`localagent show {kept.record.id}` shows it"
            raise AnswerIsNo(f"session {kept.record.id} is finished", remedy=shows)
        if any(isinstance(event, Replied) for event in kept.events):
            work = Work.PROOF
        kept = replace(kept, events=kept.events[:-1])
    request = kept.request
    opened = open_policy(settings, request.policy, request.repo)
    stop = stop or Stop()
    with _model_for(request, kept.events, settings, opened, stop, model) as at_work:
        evidence = _evidence(settings, kept.record, opened, request, open_signer(settings))
        with Journal.reopened(kept.record.journal_path) as journal:
            kept.record.drop_patches()
            begin_at = time.monotonic()
            session = _Session(
                request=request,
                settings=settings,
                opened=opened,
                record=kept.record,
                evidence=evidence,
                model=at_work,
                person=person or Absent(),
                sink=combined((journal, sink)),
                stop=stop,
                log=journal_log(journal, begin_at, kept.events),
                begin=begin_at,
                known={},
                on_text=on_text,
                work=work,
            )
            return _kept(session, journal, resumed=True)


@contextlib.contextmanager
def _model_for(
    request: DoRequest,
    events: Sequence[AgentEvent],
    settings: Settings,
    opened: OpenPolicy,
    stop: Stop,
    model: ChatModel | None,
) -> Iterator[ChatModel]:
    """The model of a session; none where a recipe or tests as the specification need none, and none was named."""
    if model is not None:
        yield model
        return
    recipe = _recipe(request, events)
    if request.files and not request.model:
        raise AnswerIsNo("no model was given, and no analysis of data is made without one", remedy=MODEL_REMEDY)
    model = NoModel()
    with contextlib.ExitStack() as stack:
        if request.model or (recipe is None and not request.from_tests):
            jail = lambda: jail_for(request, settings, opened.policy)  # noqa: E731
            try:
                model = stack.enter_context(open_chat_model(request.model, settings, jail, stop))
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


def _kept(session: _Session, journal: Journal, *, resumed: bool) -> DoOutcome:
    """The session's result on the record, whatever it is."""
    try:
        result = _answer(session, resumed=resumed)
    except BaseException as fault:
        code = fault.exit_code if isinstance(fault, LocalagentError) else InternalFault.exit_code
        reason = str(fault) if isinstance(fault, LocalagentError) else f"{type(fault).__name__}: {fault}"
        _record(session, TaskResult(verdict=Verdict.FAULT, reason=reason, exit=code), journal)
        raise
    return _record(session, result, journal)


def _answer(session: _Session, *, resumed: bool) -> TaskResult:
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


def _worked(session: _Session, *, resumed: bool) -> TaskResult:
    request, settings, policy = session.request, session.settings, session.opened.policy
    if request.files:
        return _analysed(session, resumed=resumed)
    task = session.record.task
    with contextlib.ExitStack() as stack:
        with _timed(session, Stage.SNAPSHOT.value):
            runs = stack.enter_context(opened_runs(request, settings, policy, task))
        jail, tree, snapshot = runs.jail, runs.tree, runs.tree.snapshot
        if resumed:
            _hold_tree(session, snapshot)
        else:
            session.evidence.snapshot(snapshot)
        told = {"digest": snapshot.digest}
        session.sink.emit(Event(kind="snapshot", at_seconds=time.monotonic() - session.begin, data=told))
        session.known.update(tree=tree, jail_backend=jail.backend, jail_level=jail.level, digest=snapshot.digest)
        weak = weaknesses(session.model, settings)
        for text in weak:
            session.sink.emit(Event(kind="warning", at_seconds=time.monotonic() - session.begin, data={"text": text}))
        session.known["warnings"] = (*weak, *interpreter_remark(task, Path(snapshot.store)), *left_out(snapshot))
        cancelled = threading.Event()
        stack.enter_context(session.stop.calling(runs.cancel))
        stack.enter_context(session.stop.calling(cancelled.set))
        review = open_review(request, settings, session.model, lambda: jail, session.stop, session.log, cancelled)
        judge = VerifyJudge(
            request=replace(request, instruction=whole_instruction(request, session.log.events)),
            settings=settings,
            policy=policy,
            tree=tree,
            runs=runs,
            person=session.person,
            sink=session.sink,
            stop=session.stop,
            frozen=_specification(request, tree),
            named_fail=lambda: bool(request.tests) and not runs.passes({}, request.tests),
            review=stack.enter_context(review),
        )
        session.known["judge"] = judge
        if session.work is Work.PROOF:
            return _result(session, _proven(session, judge), judge)
        with _timed(session, "recipe"):
            ended = _by_recipe(session, tree, judge)
        if ended is not None:
            return _result(session, ended, judge)
        if request.from_tests and (ended := _from_tests(session, tree, runs, judge)) is not None:
            return _result(session, ended, judge)
        loop = _loop(session, tree, runs, judge, cancelled)
        with _timed(session, "agent"):
            return _result(session, loop.run(), judge)


def _specification(request: DoRequest, tree: SnapshotTree) -> frozenset[RepoPath]:
    """The files of the tests that are the specification. AnswerIsNo where a name is none of a file of the copy."""
    named = {spec: files_named([spec], tree.paths) for spec in request.from_tests}
    for spec, paths in named.items():
        if not paths:
            raise AnswerIsNo(
                f"--from-tests: {spec}: no Python file of the repository, and no folder that holds one",
                remedy="name files or folders by their own path, not by a link, and none that git ignores",
            )
    return frozenset().union(*named.values())


def _proven(session: _Session, judge: VerifyJudge) -> Ended:
    """What the judge says of the copy as it stands; it is in the log then."""
    found = judge.judge(writes_of(session.log.events), "")
    kinds = {JudgeAnswer.ACCEPTED: EndKind.FINISHED, JudgeAnswer.NEEDS_PERSON: EndKind.NEEDS_PERSON}
    ended = Ended(kind=kinds.get(found.answer, EndKind.GAVE_UP), reason=found.reason)
    session.log.append(ended)
    return ended


def _analysed(session: _Session, *, resumed: bool) -> TaskResult:
    """The result of a data analysis: a script and its files instead of a patch. AnswerIsNo where a patch is wanted."""
    if session.work is Work.PROOF:
        raise AnswerIsNo("an analysis of data makes no patch", remedy="its results are in the folder of --results")
    request, settings, policy, known = session.request, session.settings, session.opened.policy, session.known
    jail = jail_for(request, settings, policy)
    cancelled = threading.Event()
    with scratch_folder(settings.scratch_dir) as scratch, session.stop.calling(cancelled.set):
        with _timed(session, Stage.SNAPSHOT.value):
            data, remarks = copy_data(request.files, scratch)
        if not (resumed and holds_data(session.record, data)):
            session.evidence.snapshot(data)
        known.update(jail_backend=jail.backend, jail_level=jail.level, digest=data.digest)
        python = interpreter_of(session.record.task)
        script = JailedScript.of(jail, settings, policy, python, data, scratch)
        analysis = DataAnalysis.open(request, session.record.id, script, session.model, session.log)
        known["warnings"] = (*weaknesses(session.model, settings), *remarks, *analysis.interpreter.remarks())
        tell = lambda event: _tell(session, event)  # noqa: E731
        loop = analysis.loop(policy, session.person, cancelled, tell, session.on_text)
        try:
            with _timed(session, "agent"):
                return analysis.result(loop.run())
        finally:
            known["analysis"] = analysis.json()


def _by_recipe(session: _Session, tree: SnapshotTree, judge: VerifyJudge) -> Ended | None:
    """The end of a session that needs no model, None where a model has to read the instruction."""
    asked = _recipe(session.request, session.log.events)
    if asked is None:
        return None
    ended = run_recipe(asked, tree, judge, session.log, lambda event: _tell(session, event))
    if ended is None and isinstance(session.model, NoModel):
        ended = no_such_name()
        session.log.append(ended)
    return ended


def _from_tests(session: _Session, tree: SnapshotTree, runs: JailRuns, judge: VerifyJudge) -> Ended | None:
    """The end of a session without a model; with one None, and the skeleton stands."""
    log = session.log

    def append(event: AgentEvent) -> None:
        log.append(event)
        _tell(session, event)

    copy = WorkingCopy(tree, lambda: writes_of(log.events))
    own = importable_names(Path(tree.snapshot.store))
    work = TestDriven(
        copy=copy,
        runs=runs,
        specs=session.request.from_tests,
        installed=installed_modules(runs.python) - own,
        append=append,
    )
    if not writes_of(log.events):
        with _timed(session, "skeleton"):
            work.lay_skeleton()
    if not isinstance(session.model, NoModel):
        return None
    with _timed(session, Stage.SEARCH.value):
        work.fill(lambda tests: _searched(session, tests, copy.writes, tree, runs))
    ended = work.proven(judge)
    append(ended)
    return ended


def _searched(
    session: _Session,
    tests: Sequence[str],
    writes: Mapping[RepoPath, str | None],
    tree: SnapshotTree,
    runs: JailRuns,
) -> Patch | None:
    """What the repair search makes of the copy as it is, so that some tests pass; None where it finds nothing.

    A question that cannot be asked finds nothing either: what the tests say is told in the end.
    """
    until = session.begin + session.request.limits.seconds
    end = min(time.monotonic() + _SEARCH_SECONDS, until)
    if end <= time.monotonic():
        return None
    settings, policy = session.settings, session.opened.policy
    with (
        tempfile.TemporaryDirectory(prefix="search-", dir=runs.scratch) as made,
        contextlib.suppress(NoTests, WorkerLost),
    ):
        scratch = Path(made)
        snapshot = patched(tree.snapshot, scratch / "store", tree.changes(writes))
        task = replace(
            session.record.task,
            tests=tuple(tests),
            checks=(),
            python=runs.python,
            guard=Guard(scope=GuardScope.NONE),
            choosing=Choosing.FIRST,
        )
        asked = Tree(task=task, snapshot=snapshot, sources=SourceMap(snapshot), scratch=scratch)
        with open_test_runner(asked, runs.jail, settings, policy, combined(()), session.stop) as ground:
            suggestion = search(
                ground,
                ground.verifier.baseline(),
                settings,
                policy,
                session.sink,
                lambda: end - time.monotonic(),
                most_candidates=_MOST_CANDIDATES,
            )
            return suggestion.patch if suggestion is not None else None
    return None


def _loop(
    session: _Session, tree: SnapshotTree, runs: JailRuns, judge: VerifyJudge, cancelled: threading.Event
) -> Loop:
    request, log = session.request, session.log
    copy = WorkingCopy(tree, lambda: writes_of(log.events))
    asked = whole_instruction(request, log.events)
    own = importable_names(Path(tree.snapshot.store))
    review = GateReview(session.opened.policy, asked, tree, own, judge.frozen)
    note = f"\n\n{NOTE}" if request.from_tests else ""
    return Loop(
        model=session.model,
        opening=opening(request.instruction + note, request.tests),
        tools=TOOLS,
        workshop=Workshop(
            copy=copy,
            search=GraphSearch(copy, lambda: indexed_facts(request.repo, session.settings)),
            tests=runs,
            judge=judge,
            person=session.person,
            limit=result_limit(session.model.context_tokens),
            assume=request.assume,
            made_edits=lambda: _made_edits(log.events),
            plan_is_asked=request.trust is not Trust.AUTO,
        ),
        choke=ChokePoint(
            review=review,
            person=session.person,
            trust=request.trust,
            assume=request.assume,
            instruction=asked,
        ),
        log=log,
        limits=request.limits,
        sampling=Sampling(seed=request.seed),
        metadata={"role": request.roles[0]},
        cancelled=cancelled,
        tell=lambda event: _tell(session, event),
        on_text=session.on_text,
    )


def _made_edits(events: tuple[AgentEvent, ...]) -> set[tuple[str, str, str]]:
    """(path, old, new) of the edits that were made."""
    done = {e.call_id for e in events if isinstance(e, Answered) and e.tool == "edit" and e.kind is ResultKind.DONE}
    found = set()
    for event in events:
        for call in event.calls if isinstance(event, Replied) else ():
            if call.id in done:
                given = parse_arguments(TOOLS["edit"], call.arguments)
                found.add((str(given["path"]), str(given["old"]), str(given["new"])))
    return found


def _tell(session: _Session, event: AgentEvent) -> None:
    """What a person sees of an event while the session is at work."""
    if isinstance(event, Answered):
        data = {"tool": event.tool, "kind": event.kind.value, "text": one_line(event.text.partition("\n")[0], 300)}
        session.sink.emit(Event(kind="tool", at_seconds=time.monotonic() - session.begin, data=data))


@contextlib.contextmanager
def _timed(session: _Session, stage: str) -> Iterator[None]:
    begin_at = time.monotonic()
    session.sink.emit(Event(kind="stage", at_seconds=begin_at - session.begin, data={"stage": stage}))
    try:
        yield
    finally:
        session.known.setdefault("seconds", {})[stage] = time.monotonic() - begin_at


def _hold_tree(session: _Session, snapshot: Snapshot) -> None:
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


def _result(session: _Session, ended: Ended, judge: VerifyJudge) -> TaskResult:
    """The outcome as a task's result."""
    proof = judge.proof
    found = proof.verification if proof is not None else None
    other = "give --model M" if isinstance(session.model, NoModel) else "take a larger model"
    base = TaskResult(
        verdict=Verdict.GAVE_UP,
        reason=explanation(ended, session.log.events),
        exit=AnswerIsNo.exit_code,
        remedy=f"see the report's section `agent`; say more in the instruction, or {other}",
        baseline=found.baseline if found is not None else None,
        full=found.full if found is not None else None,
    )
    if ended.kind is EndKind.FINISHED and proof is not None:
        return replace(base, verdict=Verdict.ACCEPTED, reason=proof.reason, exit=0, remedy="", patch=proof.patch)
    if ended.kind is EndKind.NEEDS_PERSON and proof is not None:
        number = Candidate(number=1, patch=proof.patch, edits=(), cost=0.0)
        take = f"read it, then `localagent apply {session.record.id} --choose 1`"
        proposed = () if found is None or found.full is None else (found.full,)
        return replace(
            base, verdict=Verdict.NEEDS_PERSON, reason=proof.reason, remedy=take, proposals=(number,), proposed=proposed
        )
    if ended.kind is EndKind.NEEDS_PERSON:
        answer = f"{ended.remedy}; " if ended.remedy else ""
        answer += "say it in the instruction"
        if not isinstance(session.model, NoModel):  # who alone understands an answer
            answer += f", or `localagent session resume {session.record.id} --say TEXT`"
        return replace(base, verdict=Verdict.NEEDS_PERSON, reason=ended.reason, remedy=answer)
    if ended.kind is EndKind.LIMITS_EXCEEDED:
        return replace(
            base, remedy=f"`localagent session resume {session.record.id}` goes on, with the same budget again"
        )
    if session.request.from_tests and isinstance(session.model, NoModel) and writes_of(session.log.events):
        name = session.record.id
        by_model = f"`localagent session resume {name} --model M` has a model write the rest"
        by_hand = f"`localagent session export {name} --format patch --out FILE` gives what there is, to be completed"
        return replace(base, remedy=f"{by_model}; {by_hand}")
    return base


def _record(session: _Session, result: TaskResult, journal: Journal) -> DoOutcome:
    """Keeps patch, evidence and report, writes what the request names, lands the patch when asked."""
    record, request, evidence, known = session.record, session.request, session.evidence, session.known
    judge = known.get("judge")
    replies = [e for e in session.log.events if isinstance(e, Replied)]
    result = replace(
        result,
        model_name=session.model.name,
        model_digest=session.model.digest,
        model_tokens=sum(max(0, r.prompt_tokens) + max(0, r.reply_tokens) for r in replies),
        seconds=known.get("seconds", {}),
        jail_backend=known.get("jail_backend", ""),
        jail_level=known.get("jail_level", ""),
        snapshot_digest=known.get("digest", ""),
        warnings=known.get("warnings", ()),
    )
    diff = unified_diff(result.patch) if result.patch is not None else b""
    proposed = [unified_diff(c.patch) for c in result.proposals]
    agent = agent_json(request, session.log.events, known.get("tree"), judge.proof if judge is not None else None)
    agent |= known.get("analysis", {})
    applied = False
    try:
        if result.patch is not None:
            record.save_patch(result.patch)
        for number, candidate in enumerate(result.proposals, 1):
            record.save_proposal(number, candidate.patch)
        signed = evidence.ended(result, diff, journal.tip, proposed)
        if result.patch is not None and request.apply and not result.exit:
            land_recorded(session.settings, record, result.patch, request.repo.resolve())
            applied = True
        if diff and not result.exit and request.out is not None:
            write_through(request.out, diff)
        result = replace(result, attestation=signed)
        report = record.save_result(result, diff=diff or None, proposed=proposed, agent=agent)
        evidence.reported(report)
    except (CannotRecord, RecordDamaged, AnswerIsNo) as no:
        reason = f"{result.reason}, but {no}"
        result = replace(result, verdict=Verdict.NEEDS_PERSON, reason=reason, exit=no.exit_code, remedy=no.remedy)
        report = record.save_result(result, diff=diff or None, proposed=proposed, agent=agent)
    if request.report is not None:
        write_report(request.report, report)
    return DoOutcome(
        exit=result.exit,
        reason=result.reason,
        remedy=result.remedy,
        session=record.id,
        diff=diff if not result.exit else b"",
        proposal=proposed[0] if proposed else b"",
        report=report,
        warnings=result.warnings,
        applied=applied,
    )
