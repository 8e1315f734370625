"""A file that was to be changed, and whose change was refused, is not forgotten when the model says that it is done."""

from collections.abc import Mapping
from dataclasses import dataclass

from support.agent_builder import Gates, calls, session

from localagent.agent.agent_ports import Answer, Review
from localagent.agent.events import Answered, PersonSaid, ResultKind
from localagent.agent.refused_changes import refused_changes, with_refused
from localagent.domain.paths import RepoPath

MOD = RepoPath("pkg/mod.py")
PLAN = ("plan", {"steps": ["change pkg/mod.py", "add NOTES.md"]})
REFUSED = ("edit", {"path": "pkg/mod.py", "old": "return x\n", "new": "return NEVER\n"})
MADE = ("edit", {"path": "pkg/mod.py", "old": "return x\n", "new": "return -x\n"})


@dataclass
class Never(Gates):
    """Refuses what holds NEVER."""

    broken: tuple[str, ...] = ()

    def of_change(self, before: Mapping[RepoPath, str | None], after: Mapping[RepoPath, str | None]) -> Review:
        found = any("NEVER" in (text or "") for text in after.values())
        return Review(answer=Answer.DENY, reason="no", broken=self.broken) if found else Review(answer=Answer.ALLOW)


def test_a_planned_file_whose_change_was_refused_is_named_until_it_is_changed_or_a_person_speaks() -> None:
    elsewhere = ("create", {"path": "other.txt", "content": "NEVER"})
    read = ("read", {"path": "NOTES.md"})
    s = session([calls(PLAN), calls(REFUSED), calls(elsewhere), calls(read), calls(MADE)], gates=Never())
    s.run()
    events, tried = s.log.events, 3 * 2
    assert [r.kind for r in s.results[1:3]] == [ResultKind.REFUSED] * 2
    assert refused_changes(events[:tried], "", {}) == (MOD,)
    assert refused_changes(events[:tried], "", s.writes) == ()
    assert refused_changes((*events[:tried], PersonSaid(text="leave it")), "", {}) == ()


def test_without_a_plan_the_instruction_names_the_files() -> None:
    s = session([calls(REFUSED)], gates=Never())
    s.run()
    assert refused_changes(s.log.events, "return it in mod.py", {}) == (MOD,)
    assert refused_changes(s.log.events, "return it", {}) == ()


def test_a_place_of_a_file_that_is_otherwise_changed_counts_until_it_is_changed_too() -> None:
    other = ("edit", {"path": "pkg/mod.py", "old": "f(x) + 1", "new": "f(x) + 2"})
    said = "return it in mod.py"
    s = session([calls(other), calls(REFUSED)], gates=Never())
    s.run()
    assert refused_changes(s.log.events, said, s.writes) == (MOD,)
    s = session([calls(REFUSED), calls(other), calls(MADE)], gates=Never())
    s.run()
    assert refused_changes(s.log.events, said, s.writes) == ()
    beside = ("edit", {"path": "pkg/mod.py", "old": "return x\n", "new": "return x\n\n\nY = 1\n"})
    s = session([calls(REFUSED), calls(beside)], gates=Never())
    s.run()
    assert refused_changes(s.log.events, said, s.writes) == ()


def test_what_no_person_may_allow_is_not_missed_in_a_file_that_is_otherwise_changed() -> None:
    other = ("edit", {"path": "pkg/mod.py", "old": "f(x) + 1", "new": "f(x) + 2"})
    s = session([calls(other), calls(REFUSED)], gates=Never(broken=("hidden-door",)))
    s.run()
    assert refused_changes(s.log.events, "return it in mod.py", s.writes) == ()


def test_what_a_contained_model_was_refused_is_not_missed_in_a_file_that_is_otherwise_changed() -> None:
    other = ("edit", {"path": "pkg/mod.py", "old": "f(x) + 1", "new": "f(x) + 2"})
    s = session([calls(other), calls(REFUSED)], gates=Never())
    s.run()
    doors = tuple(
        Answered(call_id=f"d{n}", tool="edit", kind=ResultKind.REFUSED, text="no", broken=(f"door-{n}",))
        for n in range(5)
    )
    said = "return it in mod.py"
    assert refused_changes((*s.log.events, *doors[:4]), said, s.writes) == (MOD,)
    assert refused_changes((*s.log.events, *doors), said, s.writes) == ()


@dataclass
class Asks(Gates):
    """Leaves what holds NEVER to a person."""

    def of_change(self, before: Mapping[RepoPath, str | None], after: Mapping[RepoPath, str | None]) -> Review:
        found = any("NEVER" in (text or "") for text in after.values())
        return Review(answer=Answer.ASK, reason="ask") if found else Review(answer=Answer.ALLOW)


def test_what_waits_for_a_person_is_looked_at_again_unless_the_model_was_contained() -> None:
    s = session([calls(REFUSED)], gates=Asks())
    s.run()
    assert s.writes == {}
    held = with_refused(s.log.events, s.loop.workshop, {})
    assert "return NEVER" in (held[MOD] or "")
    doors = tuple(
        Answered(call_id=f"d{n}", tool="edit", kind=ResultKind.REFUSED, text="no", broken=(f"door-{n}",))
        for n in range(5)
    )
    assert with_refused((*s.log.events, *doors), s.loop.workshop, {}) == {}
