"""`localagent chat`: `do` in conversation in the terminal. Nothing is in the tree before `/apply`."""

import argparse
import contextlib
import shlex
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from localagent.app import Settings
from localagent.app.agent.chat import Chat
from localagent.app.agent.request import DoOutcome
from localagent.app.agent.run import refuse_applied
from localagent.app.agent.session_store import find_session
from localagent.app.cancellation import Stop
from localagent.cli import apply as apply_verb
from localagent.cli import approve as approve_verb
from localagent.cli.do import show_agreed
from localagent.cli.exit_signals import stop_on_signals, wait_on_signals
from localagent.cli.line_history import LineHistory
from localagent.cli.progress import PlainSink
from localagent.cli.render import Render
from localagent.cli.session_options import add_session_options, defaults_of, session_request
from localagent.cli.terminal_person import TerminalPerson
from localagent.daemon.client.approval_client import refuse_remote
from localagent.domain.task import Event
from localagent.errors import AnswerIsNo, Interrupted, LocalagentError, UsageFault
from localagent.repair.search.event_fanout import combined
from localagent.text.visible_text import one_line

_MOST_TEXT = 20_000
_MOST_REPLY = 20_000  # characters of one reply of the model that are shown
_MOST_SAID = 300
_MOST_FILES = 5
_PROMPT = "> "


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    p = parser
    add_session_options(p)
    p.add_argument(
        "--resume", default="", metavar="ID", help="continue a session; of the other options only --model applies"
    )


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0 at /quit or the end of the input, 130 by Ctrl-C twice, 1 without a model, 2 without a terminal."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageFault(
            "chat needs a terminal, and standard input or output is none",
            remedy="`localagent do INSTRUCTION` does the same without one; `localagent session resume ID --say TEXT` "
            "goes on with it",
        )
    with contextlib.closing(_chat(args, settings, render)) as chat:
        chat.use_model(args.model or chat.request.model or settings.chat_model, Stop())
        history = LineHistory(settings.state_dir / "chat_history")
        if chat.session:
            _tell_standing(chat, render)
        render.note("Say what is to be changed. /help lists the commands; nothing is in your files before /apply.")
        return _Talk(chat=chat, settings=settings, render=render, history=history).until_quit()


def _chat(args: argparse.Namespace, settings: Settings, render: Render) -> Chat:
    """The conversation, its model not open yet. UsageFault for wrong options."""
    session = ""
    if args.resume:
        kept = find_session(settings, args.resume)
        refuse_remote(kept.record)
        refuse_applied(kept)
        session, request = kept.record.id, kept.request
    else:
        faults: list[str] = []
        request = session_request(args, defaults_of(settings), faults)
        if faults:
            raise UsageFault(faults, remedy="`localagent chat --help` lists the options")
    text = BoundedText(render=render)
    return Chat(
        request=request,
        settings=settings,
        person=TerminalPerson(render),
        sink=combined((PlainSink(render), text)),
        on_text=text.part,
        session=session,
    )


def _tell_standing(chat: Chat, render: Render) -> None:
    """What was said last, how it ended, what stands in the copy, and what can be done next."""
    standing = chat.standing()
    render.note(f"you said last: {one_line(standing.said, _MOST_SAID)}")
    if standing.ended:
        render.note(f"how it ended: {one_line(standing.ended, _MOST_SAID)}")
    else:
        render.note("the work on it was not ended: say how to go on")
    if not standing.changed:
        render.note("nothing is changed in the copy")
        return
    files = f"{len(standing.changed)} file{'s' * (len(standing.changed) != 1)}"
    named = [*map(str, standing.changed[:_MOST_FILES]), *(["..."] if len(standing.changed) > _MOST_FILES else [])]
    proof = (
        "is as the last work ended: /apply writes it"
        if standing.ready
        else "is not proven as it stands: /apply proves it first"
    )
    render.note(f"the change of {files} in the copy ({', '.join(named)}) {proof}; /diff shows it, /undo takes back")


@dataclass(kw_only=True)
class BoundedText:
    """A model's words as they come, up to a bound for each reply; a `Sink`, for what happens ends a reply."""

    render: Render
    shown: int = 0

    def part(self, text: str) -> None:
        """A piece of a reply."""
        left = _MOST_REPLY - self.shown
        self.shown += len(text)
        if left > 0:
            self.render.part(text[:left])
        if self.shown - len(text) <= _MOST_REPLY < self.shown:
            self.render.line()
            self.render.note(f"(the first {_MOST_REPLY} characters of this reply; the rest is not shown)")

    def emit(self, event: Event) -> None:
        """The next piece begins another reply, on a line of its own."""
        del event
        self.shown = 0
        self.render.end_parts()


@dataclass(kw_only=True)
class _Talk:
    """Reads lines and carries them out, one at a time, until the person quits."""

    chat: Chat
    settings: Settings
    render: Render
    history: LineHistory
    ended_by: list[int] = field(default_factory=list)
    warned: set[str] = field(default_factory=set)

    def until_quit(self) -> int:
        """The exit code."""
        interrupted = False
        while signal.SIGTERM not in self.ended_by:
            try:
                wait_on_signals()
                line = self.history.read(_PROMPT)
                interrupted = False
                if line is None:
                    self.render.line()
                    return self._leave(0)
                if line.split() == ["/quit"]:
                    return self._leave(0)
                self._carry_out(line)
            except KeyboardInterrupt:
                self.render.line()
                if interrupted:
                    return self._leave(Interrupted.exit_code)
                interrupted = True
                self.render.note("Ctrl-C once more, or /quit, ends the conversation")
        return self._leave(Interrupted.exit_code)

    def _leave(self, code: int) -> int:
        if self.chat.session:
            self.render.note(f"to go on: localagent chat --resume {self.chat.session}")
        return code

    def _carry_out(self, line: str) -> None:
        """One line. What cannot be done is told, and the conversation goes on."""
        stop = Stop()
        try:
            stop_on_signals(stop, self.ended_by.append)
            try:
                self._obey(line, stop)
            except LocalagentError as fault:
                self.render.error(str(fault), fault.remedy)
        except KeyboardInterrupt:  # while the fault is told, too
            self.render.note("interrupted")

    def _obey(self, line: str, stop: Stop) -> None:
        if line.startswith("/"):
            name, _, rest = line.partition(" ")
            self._command(name, rest.strip(), stop)
        elif len(line) > _MOST_TEXT:
            raise UsageFault(f"that is longer than {_MOST_TEXT} characters", remedy="say it in fewer")
        elif line.strip():
            self._show(self.chat.instruct(line.strip(), stop))

    def _command(self, name: str, rest: str, stop: Stop) -> None:
        known = _COMMANDS.get(name)
        if known is None:
            raise UsageFault(
                f"{name} is no command",
                remedy="/help lists them; a line that begins with a space is always for the model",
            )
        known[1](self, rest, stop)

    def _show(self, outcome: DoOutcome) -> None:
        """How the model's work ended, and what can be done now."""
        self.render.line(outcome.reason)
        agent = outcome.report.get("agent", {})
        show_agreed(agent, self.render)
        for warning in outcome.warnings:
            if warning not in self.warned:
                self.render.note(f"warning: {warning}")
        self.warned.update(outcome.warnings)
        if outcome.diff or outcome.proposal:
            self.render.note("/diff shows the patch, /why what it rests on, /apply writes it into your files")
        elif agent.get("changed"):
            self.render.note("/diff shows what stands in the copy; say what is to be different, or /undo")

    def apply(self, _rest: str, stop: Stop) -> None:
        """`/apply`: the same way as the verb, with the same checks."""
        chosen, outcome = self.chat.choose(stop)
        if outcome is not None:
            self._show(outcome)
        if chosen is None:
            raise AnswerIsNo("it is not applied: it does not hold", remedy="say what is to be different, or /undo")
        words = [chosen.session, *(["--choose", str(chosen.proposal)] if chosen.proposal is not None else [])]
        apply_verb.run(self._parsed(apply_verb.add_arguments, words), self.settings, self.render)
        self.chat.go_on_with("")
        self.render.note("what you say next begins a new patch")

    def approve(self, rest: str, _stop: Stop) -> None:
        """`/approve REASON`: what touches critical files, on the record."""
        if not rest:
            raise UsageFault("/approve needs a reason, which is recorded", remedy="/approve REASON")
        words = [self.chat.need().record.id, f"--reason={rest}"]
        approve_verb.run(self._parsed(approve_verb.add_arguments, words), self.settings, self.render)

    def _parsed(self, add_arguments: Callable[[argparse.ArgumentParser], None], words: list[str]) -> argparse.Namespace:
        """The arguments of another verb, under this conversation's policy."""
        parser = argparse.ArgumentParser()
        add_arguments(parser)
        policy = self.chat.need().request.policy
        return parser.parse_args([*words, *([f"--policy={policy}"] if policy is not None else [])])

    def diff(self, rest: str, _stop: Stop) -> None:
        """`/diff [PATH]`."""
        shown = self.chat.diff(rest).rstrip("\n")
        self.render.text(shown or "nothing is changed")
        if (files := shown.count("\ndiff --git ") + 1) > 1:
            self.render.note(f"{files} files, {shown.count(chr(10)) + 1} lines; /diff PATH shows one file")

    def plan(self, _rest: str, _stop: Stop) -> None:
        """`/plan`."""
        for number, step in enumerate(self.chat.plan(), 1):
            self.render.line(f"{number}. {step}")
        if not self.chat.plan():
            self.render.line("there is no plan yet")

    def test(self, rest: str, stop: Stop) -> None:
        """`/test [SPEC …]`."""
        try:
            specs = tuple(shlex.split(rest))
        except ValueError as error:
            raise UsageFault(f"/test: {error}", remedy="/test [SPEC ...], quoted as in a shell") from None
        self.render.text(self.chat.test(specs, stop))

    def undo(self, rest: str, _stop: Stop) -> None:
        """`/undo [all]`."""
        if rest not in ("", "all"):
            raise UsageFault(f"/undo {rest}: neither nothing nor `all`", remedy="/undo, or /undo all")
        for path in self.chat.undo(every=rest == "all"):
            self.render.line(f"taken back in the copy: {path}")

    def why(self, _rest: str, _stop: Stop) -> None:
        """`/why`: what the last outcome rests on."""
        report = self.chat.need().record.result_json()
        if report is None:
            raise AnswerIsNo("nothing has ended yet", remedy="say what is to be changed")
        agent = report.get("agent", {})
        outcome, reason = str(report.get("outcome")), str(report.get("reason"))
        self.render.line(reason if reason.startswith(outcome) else f"{outcome}: {reason}")
        if agent.get("grade"):
            self.render.line(f"strength {agent['grade']} of A to E for the claim {agent['claim']!r}")
        for title, key in (("not shown", "not_shown"), ("refused", "refused"), ("not obeyed", "speaks_to_machine")):
            for text in agent.get(key, ()):
                self.render.line(f"{title}: {text}")

    def model(self, rest: str, stop: Stop) -> None:
        """`/model [M]`."""
        if rest:
            self.chat.use_model(rest, stop)
        self.render.line(f"model: {self.chat.request.model}")

    def quit(self, rest: str, _stop: Stop) -> None:
        """`/quit` alone ends the conversation, before it comes here."""
        raise UsageFault(f"/quit {rest}: nothing follows /quit", remedy="/quit")

    def help(self, _rest: str, _stop: Stop) -> None:
        """`/help`."""
        for name, (usage, _) in _COMMANDS.items():
            self.render.line(f"  {name:9} {usage}")
        self.render.line("A backslash at the end of a line goes on with the next. Ctrl-C ends the step, at the prompt")
        self.render.line("twice the conversation. A line that begins with a space is always for the model.")


_COMMANDS: dict[str, tuple[str, Callable[[_Talk, str, Stop], None]]] = {
    "/plan": ("the model's plan", _Talk.plan),
    "/diff": ("[PATH] what the copy changes so far, or in one file", _Talk.diff),
    "/test": ("[SPEC ...] runs the tests on the copy, in a jail", _Talk.test),
    "/undo": ("[all] takes back the last step in the copy, or all", _Talk.undo),
    "/approve": ("REASON approves a change of critical files, on the record", _Talk.approve),
    "/why": ("what the last outcome rests on, and what no test shows", _Talk.why),
    "/apply": ("writes the patch into your files, once it is proven", _Talk.apply),
    "/model": ("[M] shows the model, or takes another", _Talk.model),
    "/help": ("this", _Talk.help),
    "/quit": ("ends the conversation; it can be gone on with", _Talk.quit),
}
