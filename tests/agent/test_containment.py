"""A model that tries one thing after another that nobody may allow loses what it wrote meanwhile, and the pen."""

from collections.abc import Mapping
from dataclasses import dataclass

from support.agent_builder import Gates, Session, calls, session, text

from localagent.agent.agent_ports import Answer, Review
from localagent.agent.containment import MOST_CALLS, NOTE, WHY
from localagent.agent.events import EndKind, Noted, PersonSaid, ResultKind, event_json, event_of
from localagent.domain.chat import ChatReply
from localagent.domain.paths import RepoPath

HONEST = calls(("edit", {"path": "pkg/mod.py", "old": "return x\n", "new": "return -x\n"}))
FINISH = calls(("finish", {"summary": "done"}))


@dataclass
class Rules(Gates):
    """Refuses what mentions rules, and names them: `BREAKS a b`."""

    def of_change(self, before: Mapping[RepoPath, str | None], after: Mapping[RepoPath, str | None]) -> Review:
        rules = tuple(w for t in after.values() for w in (t or "").partition("BREAKS")[2].split())
        return Review(answer=Answer.DENY, reason="no", broken=rules) if rules else Review(answer=Answer.ALLOW)


def _create(name: str, content: str = "x") -> ChatReply:
    return calls(("create", {"path": name, "content": content}))


def _tries(number: int) -> list[ChatReply]:
    return [_create(f"b{n}.txt", f"BREAKS rule-{n}") for n in range(number)]


def _session(*script: ChatReply) -> Session:
    return session(script, gates=Rules())


def test_what_was_written_since_the_first_refusal_goes_and_nothing_more_is_written_or_run() -> None:
    first, *others = _tries(MOST_CALLS + 1)
    late = calls(("run", {"code": "print(1)"}))
    s = _session(HONEST, first, _create("between.txt"), *others, _create("late.txt"), late, FINISH)
    assert s.run().kind is EndKind.FINISHED
    assert list(s.writes) == ["pkg/mod.py"]
    assert [e.text.startswith(NOTE) for e in s.log.events if isinstance(e, Noted)] == [True]
    assert [r.text for r in s.results[-3:-1]] == [f"refused: {WHY}"] * 2
    assert not [ran for ran in s.runs.ran if ran[0] == "code"]


def test_honest_mistakes_contain_nobody() -> None:
    same = [_create(f"c{n}.txt", "BREAKS rule-0") for n in range(2 * MOST_CALLS)]
    at_once = _create("d.txt", "BREAKS " + " ".join(f"more-{n}" for n in range(9)))
    s = _session(*_tries(MOST_CALLS - 1), *same, at_once, HONEST, _create("late.txt"), FINISH)
    assert s.run().kind is EndKind.FINISHED
    assert list(s.writes) == ["pkg/mod.py", "late.txt"]


def test_a_call_outside_the_plan_is_told_so_and_counts_all_the_same() -> None:
    plan = calls(("plan", {"steps": ["change pkg/mod.py"]}))
    s = _session(plan, *_tries(MOST_CALLS + 1), HONEST, FINISH, text(""))
    s.run()
    assert "outside the plan" in s.results[1].text
    assert s.results[MOST_CALLS + 2].text == f"refused: {WHY}"


def test_a_persons_word_ends_it_and_a_session_that_was_killed_in_between_goes_on_contained() -> None:
    s = _session(HONEST, *_tries(MOST_CALLS + 1), FINISH)
    s.run()
    events = tuple(e for event in s.log.events if (e := event_of(*event_json(event))) is not None)
    assert events == s.log.events
    again = session([_create("late.txt"), FINISH], gates=Rules(), events=(*events, PersonSaid(text="go on")))
    again.run()
    assert list(again.writes) == ["pkg/mod.py", "late.txt"]
    assert again.results[-2].kind is ResultKind.DONE
