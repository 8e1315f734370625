"""Roles in one log: whose events are whose, the plan that binds and who may widen it, tests that were agreed to."""

import pytest
from support.agent_builder import Asked, calls, session

from localagent.agent.approval import Trust
from localagent.agent.events import (
    IMPLEMENTER,
    PLANNER,
    AgentEvent,
    AgreedBy,
    Agreement,
    Answered,
    EndKind,
    FileWrite,
    MemoryLog,
    PersonSaid,
    Replied,
    ResultKind,
    RoleBegan,
    RoleLog,
    Undone,
    agreed_files,
    agreed_tests,
    event_json,
    event_of,
    events_of,
)
from localagent.agent.tools.catalogue import PLANNED_TOOLS, PLANNER_TOOLS
from localagent.domain.paths import RepoPath

PLAN = ("plan", {"steps": ["change f"], "files": ["pkg/mod.py"], "tests": ["tests/test_f.py::test_f"]})
FINISH = calls(("finish", {"summary": "done"}))
AGREED = Answered(
    call_id="p",
    tool="plan",
    kind=ResultKind.DONE,
    text="planned",
    plan=("change f",),
    agreement=Agreement(by=AgreedBy.ASSUMED, files=(RepoPath("pkg/mod.py"),)),
)
PLANNED = (RoleBegan(role=PLANNER), Replied(text="hm"), AGREED)


@pytest.mark.parametrize(
    ("trust", "assume", "person", "by"),
    [
        (Trust.PLAN, False, Asked(present=True, yes=True), AgreedBy.PERSON),
        (Trust.AUTO, True, Asked(), AgreedBy.ASSUMED),
        (Trust.AUTO, False, Asked(present=True, yes=True), AgreedBy.NOBODY),
        (Trust.PLAN, False, Asked(), AgreedBy.NOBODY),
    ],
)
def test_a_plan_is_agreed_to_once_and_says_by_whom(trust: Trust, assume: bool, person: Asked, by: AgreedBy) -> None:
    s = session([calls(PLAN)], role=PLANNER, tools=PLANNER_TOOLS, trust=trust, assume=assume, person=person)
    assert s.run().kind is EndKind.NEXT_ROLE
    assert s.results[0].agreement == Agreement(by=by, files=(RepoPath("pkg/mod.py"), RepoPath("tests/test_f.py")))
    assert len(person.heard) == (by is AgreedBy.PERSON)
    assert agreed_files(s.log.events) == frozenset({RepoPath("pkg/mod.py"), RepoPath("tests/test_f.py")})
    assert s.model.asked[0].metadata == {"role": "planner"}


def test_a_plan_that_a_person_refuses_or_that_names_no_files_binds_nobody() -> None:
    no = Asked(present=True)
    s = session([calls(PLAN)], role=PLANNER, tools=PLANNER_TOOLS, trust=Trust.PLAN, person=no)
    assert s.run().kind is EndKind.GAVE_UP
    assert agreed_files(s.log.events) is None
    for files, says in (
        ([], "names the files"),
        (["pkg"], "no folders and no patterns"),
        (["**/*.py"], "no folders and no patterns"),
        (["../x.py"], "not a path inside"),
        ([f"f{n}.py" for n in range(300)], "at most 200 files"),
    ):
        call = calls(("plan", {"steps": ["x"], "files": files}))
        s = session([call], role=PLANNER, tools=PLANNER_TOOLS)
        assert s.run().kind is EndKind.GAVE_UP
        assert says in s.results[0].text


def _edit(path: str) -> tuple[str, dict[str, str]]:
    return ("edit", {"path": path, "old": "# Read me", "new": "# Read"})


@pytest.mark.parametrize(
    ("trust", "person", "wider"),
    [
        (Trust.PLAN, Asked(present=True, yes=True), True),
        (Trust.PLAN, Asked(present=True), False),
        (Trust.PLAN, Asked(), False),
        (Trust.AUTO, Asked(present=True, yes=True), False),
    ],
)
def test_only_a_person_widens_a_plan(trust: Trust, person: Asked, wider: bool) -> None:
    more = ("plan", {"steps": ["the page, too"], "files": ["README.md"]})
    script = [calls(_edit("README.md")), calls(more), calls(_edit("README.md")), FINISH]
    s = session(script, tools=PLANNED_TOOLS, events=PLANNED, trust=trust, person=person, instruction="change README.md")
    s.run()
    results = s.results[1:]
    assert "outside the plan that was agreed to (pkg/mod.py)" in results[0].text  # though the instruction names it
    assert (results[2].kind is ResultKind.DONE) == wider
    assert [*s.writes] == (["README.md"] if wider else [])


def test_files_made_after_the_plan_and_frozen_ones_are_not_deleted_or_made_anew() -> None:
    test = FileWrite(path=RepoPath("tests/test_f.py"), text="x = 1\n")
    made = Answered(call_id="t", tool="create", kind=ResultKind.DONE, text="", writes=(test,))
    script = [
        calls(("delete", {"path": "tests/test_f.py"})),
        calls(("edit", {"path": "tests/test_f.py", "old": "1", "new": "2"})),
        calls(("create", {"path": "new.py", "content": "x = 1\n"})),
        FINISH,
    ]
    s = session(script, events=(made, *PLANNED), frozen=frozenset({test.path}), tools=PLANNED_TOOLS)
    s.run()
    assert [r.kind for r in s.results[2:5]] == [ResultKind.REFUSED] * 3
    assert s.writes == {test.path: test.text}


def test_a_text_that_one_role_met_takes_from_the_next_what_it_would_have_taken_from_that() -> None:
    met = Answered(call_id="r", tool="read", kind=ResultKind.DONE, text="", injected="read NOTES.md")
    new = calls(("create", {"path": "pkg/new.py", "content": "x = 1\n"}))
    s = session([new, FINISH], events=(RoleBegan(role=PLANNER), met))
    s.run()
    assert "creating a file is not possible after read NOTES.md" in s.results[1].text


def test_a_person_sees_every_file_that_a_plan_is_widened_by() -> None:
    many = [f"pkg/new_{n}.py" for n in range(40)]
    person = Asked(present=True, yes=True)
    more = calls(("plan", {"steps": ["more"], "files": many}))
    s = session([more, FINISH], tools=PLANNED_TOOLS, events=PLANNED, trust=Trust.PLAN, person=person)
    s.run()
    assert all(path in person.heard[0] for path in many)
    assert len(agreed_files(s.log.events) or ()) == 41


def test_each_role_has_a_conversation_of_its_own_and_hears_the_person() -> None:
    log = MemoryLog((Replied(text="before roles"),))
    RoleLog(log, PLANNER).append(Replied(text="planner"))
    log.append(PersonSaid(text="mind the gap"))
    worker = RoleLog(log, IMPLEMENTER)
    worker.append(Replied(text="worker"))
    worker.append(Replied(text="more"))
    assert [getattr(e, "text", "") for e in worker.events] == ["before roles", "mind the gap", "worker", "more"]
    assert [getattr(e, "text", "") for e in events_of(PLANNER, log.events)] == ["planner", "mind the gap"]
    assert sum(isinstance(e, RoleBegan) for e in log.events) == 2


def test_agreements_come_back_from_the_journal_and_old_journals_have_none() -> None:
    for event in PLANNED:
        assert event_of(*event_json(event)) == event
    kind, data = event_json(AGREED)
    del data["agreement"]
    again = event_of(kind, data)
    assert isinstance(again, Answered)
    assert again.agreement is None
    with pytest.raises(ValueError, match="AgreedBy"):
        event_of(kind, {**data, "agreement": {"by": "king", "files": []}})
    with pytest.raises(ValueError, match="not an event"):
        event_of(kind, {**data, "agreement": {"by": "person", "files": ["../x"]}})


def test_agreed_tests_are_what_stood_at_the_agreement_until_they_are_taken_back() -> None:
    path = RepoPath("tests/test_f.py")

    def wrote(text: str | None) -> Answered:
        return Answered(
            call_id="w", tool="create", kind=ResultKind.DONE, text="", writes=(FileWrite(path=path, text=text),)
        )

    done = Answered(
        call_id="f",
        tool="finish",
        kind=ResultKind.DONE,
        text="",
        agreement=Agreement(by=AgreedBy.PERSON, files=(path,)),
    )
    events: tuple[AgentEvent, ...] = (wrote("a"), wrote("b"), done, wrote(None))
    agreed = agreed_tests(events)
    assert agreed is not None
    assert dict(agreed.files) == {path: "b"}
    assert agreed_tests((*events, Undone(since=0))) is None
    assert agreed_tests((*events, Undone(since=3))) == agreed


def test_roles_share_one_budget() -> None:
    s = session([calls(("search", {"query": "f"}))])
    ended = s.loop.run(None, tuple(Replied(text="") for _ in range(59)))
    assert (ended.kind, len(s.model.asked)) == (EndKind.LIMITS_EXCEEDED, 1)
