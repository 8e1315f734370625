"""A conversation that builds one patch: a session of `do` that goes on with each instruction.

Nothing here writes into the repository. After the patch is applied the next instruction begins a new session.
"""

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from localagent.agent.agent_ports import Person
from localagent.agent.events import REVIEWER, Answered, Ended, EndKind, PersonSaid, writes_of
from localagent.app.agent.chat_model import open_chat_model, refuse_absent
from localagent.app.agent.jail_runs import copied_tree, opened_runs
from localagent.app.agent.request import DoOutcome, DoRequest, other_reviewer, roles_of_worker
from localagent.app.agent.run import refuse_applied, resume_do, run_do
from localagent.app.agent.session_control import say, undo_steps
from localagent.app.agent.session_run import Frontend, Work
from localagent.app.agent.session_store import Session, open_session, save_session
from localagent.app.cancellation import Stop
from localagent.app.jail_level import open_policy_jail
from localagent.app.policies import open_policy
from localagent.app.settings import Settings
from localagent.domain.edit import FileFate, Patch
from localagent.domain.paths import RepoPath
from localagent.errors import AnswerIsNo
from localagent.ports import ChatModel, Sink
from localagent.record.store import TaskStore
from localagent.repo.diff.write_diff import unified_diff


@dataclass(frozen=True, kw_only=True, slots=True)
class ChosenPatch:
    """The patch of a session that can be applied: the accepted one, or a proposal by its number."""

    session: str
    proposal: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """How a session stands: what was said last, how the work on it ended ("" where it did not), what the copy changes.

    `ready`: the change is proven as it stands, or waits for the person who applies it.
    """

    said: str
    ended: str
    changed: tuple[RepoPath, ...]
    ready: bool


@dataclass(kw_only=True, slots=True)
class Chat:
    """The conversation. `session` is "" before the first instruction, and again after the patch was applied.

    Its model is open from `use_model` to `close`.
    """

    request: DoRequest
    settings: Settings
    person: Person
    sink: Sink
    on_text: Callable[[str], None]
    session: str = ""
    _model: ChatModel | None = None
    _open: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def close(self) -> None:
        """End the model."""
        self._model = None
        self._open.close()

    def instruct(self, text: str, stop: Stop) -> DoOutcome:
        """A person's words, and the model's work on them until it ends."""
        kept = self.stored()
        if kept is None:
            request = replace(self.request, instruction=text)
            return run_do(request, self.settings, replace(self._front(stop), begun=self.go_on_with))
        refuse_applied(kept)
        return self._resumed(say(kept, time.monotonic(), text), stop, Work.MODEL)

    def choose(self, stop: Stop) -> tuple[ChosenPatch | None, DoOutcome | None]:
        """The patch to apply: the one that the last work ended with, else what stands in the copy, proven now.

        None with the outcome where the proof refuses it. AnswerIsNo where nothing is changed.
        """
        kept = self.need()
        if not writes_of(kept.events):
            raise AnswerIsNo("nothing is changed yet", remedy="say what is to be changed")
        if (ready := _ready(kept)) is not None:
            return ready, None
        outcome = self._resumed(kept, stop, Work.PROOF)
        if outcome.diff or outcome.proposal:
            return ChosenPatch(session=outcome.session, proposal=None if outcome.diff else 1), outcome
        return None, outcome

    def test(self, specs: tuple[str, ...], stop: Stop) -> str:
        """The project's tests, or some, on the copy as it stands; in a jail."""
        kept = self.need()
        policy = open_policy(self.settings, kept.request.policy, kept.request.repo).policy
        with (
            opened_runs(kept.request, self.settings, policy, kept.record.task) as runs,
            stop.calling(runs.cancel),
        ):
            return runs.run_tests(writes_of(kept.events), specs).text

    def diff(self, path: str = "") -> str:
        """What the copy changes, in one file or in all, as a unified diff against the tree as it stands.

        AnswerIsNo where that file is not changed.
        """
        kept = self.need()
        writes = writes_of(kept.events)
        chosen = {name: text for name, text in writes.items() if path in ("", str(name))}
        if path and not chosen:
            changed = ", ".join(map(str, writes)) or "nothing"
            raise AnswerIsNo(f"{path} is not changed", remedy=f"changed: {changed}")
        with copied_tree(self.settings, kept.request.repo) as (tree, _):
            return unified_diff(tree.patch(chosen)).decode("utf-8", "replace")

    def undo(self, *, every: bool) -> tuple[RepoPath, ...]:
        """Take back the last step that changed files, or all, in the copy."""
        kept = self.need()
        refuse_applied(kept)
        return undo_steps(kept, time.monotonic(), every=every)

    def plan(self) -> tuple[str, ...]:
        """The steps of the last plan."""
        kept = self.stored()
        events = kept.events if kept is not None else ()
        return next((e.plan for e in reversed(events) if isinstance(e, Answered) and e.plan), ())

    def standing(self) -> Standing:
        """How the session stands. AnswerIsNo before the first instruction."""
        kept = self.need()
        said = next((e.text for e in reversed(kept.events) if isinstance(e, PersonSaid)), kept.request.instruction)
        last = next((e for e in reversed(kept.events) if isinstance(e, Ended | PersonSaid)), None)
        return Standing(
            said=said,
            ended=last.reason if isinstance(last, Ended) else "",
            changed=tuple(writes_of(kept.events)),
            ready=_ready(kept) is not None,
        )

    def use_model(self, name: str, stop: Stop) -> None:
        """Talk to a model from here on; the one before is ended when the new one answers.

        AnswerIsNo where none answers there, UsageFault for a wrong name, CannotEnforce for a file that is not
        registered.
        """
        request, loading = replace(self.request, model=name), Stop()
        policy = open_policy(self.settings, request.policy, request.repo).policy
        with contextlib.ExitStack() as opened:
            jail = lambda: open_policy_jail(self.settings, policy, request.backend)  # noqa: E731
            with stop.calling(loading.now):
                if reviewer := other_reviewer(request):
                    refuse_absent(reviewer, self.settings, (REVIEWER,))
                roles = roles_of_worker(request)
                model = opened.enter_context(open_chat_model(name, self.settings, jail, loading, roles=roles))
            self.close()
            self._model, self._open = model, opened.pop_all()
        self.request = request
        if (kept := self.stored()) is not None:
            save_session(kept.record, replace(kept.request, model=name))

    def go_on_with(self, session: str) -> None:
        """Talk about a session from here on; "": about a new one."""
        self.session = session

    def stored(self) -> Session | None:
        """The session as it stands on disk; None before the first instruction."""
        return open_session(TaskStore(self.settings.state_dir).open(self.session)) if self.session else None

    def need(self) -> Session:
        """The session. AnswerIsNo before the first instruction."""
        kept = self.stored()
        if kept is None:
            undo = "`localagent undo` takes back a patch that was applied"
            raise AnswerIsNo("nothing was asked yet for a new patch", remedy=f"say what is to be changed; {undo}")
        return kept

    def _resumed(self, kept: Session, stop: Stop, work: Work) -> DoOutcome:
        return resume_do(kept, self.settings, self._front(stop), work)

    def _front(self, stop: Stop) -> Frontend:
        return Frontend(sink=self.sink, stop=stop, person=self.person, model=self._model, on_text=self.on_text)


def _ready(kept: Session) -> ChosenPatch | None:
    """The patch on the record, where it is what stands in the copy and the session ended with it."""
    record = kept.record
    if kept.state == EndKind.FINISHED.value and _makes(record.patch(), kept):
        return ChosenPatch(session=record.id)
    if kept.state == EndKind.NEEDS_PERSON.value and _makes(record.proposal(1), kept):
        return ChosenPatch(session=record.id, proposal=1)
    return None


def _makes(patch: Patch | None, kept: Session) -> bool:
    wanted = {path: None if text is None else text.encode("utf-8") for path, text in writes_of(kept.events).items()}
    changes = patch.changes if patch is not None else ()
    return wanted == {c.path: None if c.fate is FileFate.DELETED else c.after for c in changes}
