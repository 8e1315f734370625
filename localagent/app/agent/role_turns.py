"""The roles that a model plays in turn: planner, tester, implementer, each in a conversation of its own.

What the first two make binds the third: the plan's files, and the tests. One log holds all of it, so that a session
goes on in the role in which it was killed, and one budget is for all of them.
"""

import threading
import time
from dataclasses import dataclass
from pathlib import Path

from localagent.agent.agent_ports import ChangeReview, PatchJudge
from localagent.agent.approval import ChokePoint, Trust, planned_modules
from localagent.agent.context import Opening, result_limit
from localagent.agent.events import (
    IMPLEMENTER,
    PLANNER,
    TESTER,
    AgentEvent,
    Answered,
    Ended,
    EndKind,
    Replied,
    ResultKind,
    RoleLog,
    agreed_files,
    agreed_tests,
    events_of,
    writes_of,
)
from localagent.agent.loop import Loop
from localagent.agent.prompts import PLANNER as PLANNER_PROMPT
from localagent.agent.prompts import TESTER as TESTER_PROMPT
from localagent.agent.prompts import opening
from localagent.agent.refused_changes import with_refused
from localagent.agent.tools.catalogue import PLANNED_TOOLS, PLANNER_TOOLS, TESTER_TOOLS, TOOLS
from localagent.agent.tools.tool import Workshop, parse_arguments
from localagent.agent.tools.working_copy import WorkingCopy
from localagent.app.agent.acceptance_tests import AcceptanceJudge, NewTestsReview
from localagent.app.agent.change_review import GateReview
from localagent.app.agent.graph_search import GraphSearch
from localagent.app.agent.jail_runs import JailRuns
from localagent.app.agent.patch_judge import VerifyJudge
from localagent.app.agent.session_run import SessionRun
from localagent.app.agent.session_store import whole_instruction
from localagent.app.agent.snapshot_tree import SnapshotTree
from localagent.app.agent.test_driven import NOTE
from localagent.app.code.repository_index import indexed_facts
from localagent.domain.chat import Sampling
from localagent.domain.paths import RepoPath
from localagent.gate.assumed_answers import ASSUMED, TESTS
from localagent.repo.python_environment import installed_modules
from localagent.repo.top_level_modules import importable_names

_STAGES = {PLANNER: "planner", TESTER: "tester", IMPLEMENTER: "agent"}


@dataclass(frozen=True, kw_only=True, slots=True)
class RoleTurns:
    """One run of a session with a model. `judge` proves what the implementer makes."""

    session: SessionRun
    tree: SnapshotTree
    runs: JailRuns
    judge: VerifyJudge
    cancelled: threading.Event

    def run(self) -> Ended:
        """Each role that is asked for and has not done its work yet, until one ends the session."""
        begin, first = time.monotonic(), len(self.session.log.events)
        for role in (PLANNER, TESTER, IMPLEMENTER):
            if not self._is_due(role):
                continue
            earlier = self.session.log.events[first:]
            with self.session.timed(_STAGES[role]):
                ended = self.loop(role).run(begin, earlier)
            if ended.kind is not EndKind.NEXT_ROLE:
                return ended
        return ended

    def _is_due(self, role: str) -> bool:
        """Tests that were named and fail are the acceptance tests: then none are written."""
        events, request = self.session.log.events, self.session.request
        if role == PLANNER:
            return role in request.roles and agreed_files(events) is None
        if role == TESTER:
            return role in request.roles and agreed_tests(events) is None and not self.judge.named_fail()
        return True

    def loop(self, role: str) -> Loop:
        """The conversation of a role, by what the session's log holds now."""
        session, request, log = self.session, self.session.request, self.session.log
        agreed = agreed_tests(log.events)
        tests = tuple(agreed.files) if agreed is not None else ()
        binding = lambda: agreed_files(log.events) if role == IMPLEMENTER else None  # noqa: E731
        review, judge, copy = self._writing_tests() if role == TESTER else self._changing()
        workshop = Workshop(
            copy=copy,
            search=GraphSearch(copy, lambda: indexed_facts(request.repo, session.settings)),
            tests=self.runs,
            judge=judge,
            person=session.front.person,
            limit=result_limit(session.model.context_tokens),
            assume=request.assume,
            made_edits=lambda: _made_edits(log.events),
            plan_is_asked=self._plan_is_asked,
            agreed_files=binding,
        )
        self.judge.with_refused = lambda written: with_refused(events_of(IMPLEMENTER, log.events), workshop, written)
        work = PLANNED_TOOLS if agreed_files(log.events) is not None else TOOLS
        return Loop(
            model=session.model,
            opening=self._opening(role, tests),
            tools={PLANNER: PLANNER_TOOLS, TESTER: TESTER_TOOLS}.get(role, work),
            workshop=workshop,
            choke=ChokePoint(
                review=review,
                person=session.front.person,
                trust=request.trust,
                assume=request.assume,
                instruction=self._asked,
                frozen=self.judge.frozen | frozenset(tests),
                agreed_files=binding,
            ),
            log=RoleLog(log, role),
            limits=request.limits,
            sampling=Sampling(seed=request.seed),
            metadata={"role": role},
            cancelled=self.cancelled,
            tell=session.tell,
            on_text=session.front.on_text,
        )

    @property
    def _asked(self) -> str:
        return whole_instruction(self.session.request, self.session.log.events)

    @property
    def _own(self) -> frozenset[str]:
        return importable_names(Path(self.tree.snapshot.store))

    @property
    def _plan_is_asked(self) -> bool:
        return self.session.request.trust is not Trust.AUTO

    def _changing(self) -> tuple[ChangeReview, PatchJudge, WorkingCopy]:
        """What planner and implementer work with: gates, judge and copy of the change."""
        session, log, asked = self.session, self.session.log, self._asked
        assumed = ASSUMED | TESTS if session.request.assume else frozenset[str]()
        planned = lambda: planned_modules(log.events, asked)  # noqa: E731
        review = GateReview(session.policy, asked, self.tree, self._own, assumed, planned)
        return review, self.judge, WorkingCopy(self.tree, lambda: writes_of(log.events))

    def _writing_tests(self) -> tuple[ChangeReview, PatchJudge, WorkingCopy]:
        """What the tester works with: of the change, new tests alone."""
        session, log, asked, own = self.session, self.session.log, self._asked, self._own
        review = NewTestsReview(session.policy, asked, self.tree, own)
        judge = AcceptanceJudge(
            instruction=asked,
            tree=self.tree,
            runs=self.runs,
            person=session.front.person,
            asks=self._plan_is_asked,
            assume=session.request.assume,
            own=own,
            installed=installed_modules(self.runs.python) - own,
        )
        tests = lambda: {p: t for p, t in writes_of(log.events).items() if review.is_new_test(p)}  # noqa: E731
        return review, judge, WorkingCopy(self.tree, tests)

    def _opening(self, role: str, tests: tuple[RepoPath, ...]) -> Opening:
        request, events = self.session.request, self.session.log.events
        text = request.instruction
        if role == IMPLEMENTER:
            note = f"\n\n{NOTE}" if request.from_tests else ""
            files = agreed_files(events)
            steps = next((e.plan for e in events if isinstance(e, Answered) and e.agreement and e.plan), ())
            named = tuple(dict.fromkeys((*request.tests, *map(str, tests))))
            return opening(text + note, named, steps if files is not None else (), sorted(files or ()))
        return Opening(system=PLANNER_PROMPT if role == PLANNER else TESTER_PROMPT, instruction=text)


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
