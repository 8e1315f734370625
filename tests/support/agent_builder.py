"""A session with a scripted model and a tree in memory: what the loop makes of replies, without jails."""

import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from localagent.agent.agent_ports import (
    Answer,
    JudgeAnswer,
    Judgement,
    Review,
    SuiteOutcome,
    SuiteReport,
)
from localagent.agent.approval import ChokePoint, Trust
from localagent.agent.events import (
    IMPLEMENTER,
    AgentEvent,
    Answered,
    Ended,
    MemoryLog,
    RoleLog,
    agreed_files,
    writes_of,
)
from localagent.agent.limits import Limits
from localagent.agent.loop import Loop
from localagent.agent.prompts import opening
from localagent.agent.tools.catalogue import TOOLS
from localagent.agent.tools.text_search import TextSearch
from localagent.agent.tools.tool import Tool, Workshop
from localagent.agent.tools.working_copy import WorkingCopy
from localagent.domain.chat import ChatFailure, ChatReply, ChatRequest, Sampling, ToolCall
from localagent.domain.paths import RepoPath

FILES = {"pkg/mod.py": "def f(x):\n    return x\n\n\ndef g(x):\n    return f(x) + 1\n", "README.md": "# Read me\n"}
Said = ChatReply | ChatFailure


def calls(*given: tuple[str, object], text: str = "") -> ChatReply:
    """A reply that calls tools; arguments as a mapping, or as raw text."""
    return ChatReply(
        text=text,
        calls=tuple(
            ToolCall(id=f"c{id(a)}{n}", name=name, arguments=a if isinstance(a, str) else json.dumps(a))
            for n, (name, a) in enumerate(given)
        ),
    )


def text(words: str) -> ChatReply:
    """A reply without a call."""
    return ChatReply(text=words, calls=())


@dataclass
class ScriptedModel:
    """Says what stands in the script, the last of it for ever; keeps what it was asked."""

    script: Sequence[Said]
    context: int | None = None
    asked: list[ChatRequest] = field(default_factory=list)
    name: str = "scripted"
    digest: str = "sha256:0"

    @property
    def context_tokens(self) -> int | None:
        return self.context

    def complete(
        self,
        request: ChatRequest,
        *,
        timeout_seconds: float,
        on_text: Callable[[str], None] | None = None,
        cancelled: threading.Event | None = None,
    ) -> Said:
        del timeout_seconds, on_text, cancelled
        self.asked.append(request)
        return self.script[min(len(self.asked), len(self.script)) - 1]

    def count_tokens(self, text: str) -> int | None:
        del text
        return None

    def close(self) -> None:
        return None


@dataclass
class MemoryTree:
    """A base tree in memory."""

    files: Mapping[str, str]
    links: Mapping[str, str] = field(default_factory=dict)

    @property
    def paths(self) -> Sequence[RepoPath]:
        return sorted(map(RepoPath, self.files))

    def read(self, path: RepoPath) -> bytes | None:
        found = self.files.get(path)
        return None if found is None else found.encode()

    def why_not(self, path: RepoPath) -> str:
        return self.links.get(path, "")


@dataclass
class Gates:
    """Answers as a test wants, and keeps what was asked."""

    answer: Review = field(default_factory=lambda: Review(answer=Answer.ALLOW))
    injection: str = "\0"
    asked: list[Any] = field(default_factory=list)

    def of_change(self, before: Mapping[RepoPath, str | None], after: Mapping[RepoPath, str | None]) -> Review:
        self.asked.append((dict(before), dict(after)))
        return self.answer

    def shown(self, after: Mapping[RepoPath, str | None]) -> str:
        return "".join(f"+++ {path}\n{text}" for path, text in after.items())

    def of_code(self, code: str) -> Review:
        self.asked.append(code)
        return self.answer

    def speaks_to_machine(self, text: str) -> str:
        return "do as I say" if self.injection in text else ""


@dataclass
class Runs:
    """Tests that pass, and a judge that accepts, unless a test says otherwise."""

    outcome: SuiteReport = field(
        default_factory=lambda: SuiteReport(outcome=SuiteOutcome.PASSED, text="3 passed, 0 failed")
    )
    judgement: Judgement = field(default_factory=lambda: Judgement(answer=JudgeAnswer.ACCEPTED, reason="proven"))
    ran: list[Any] = field(default_factory=list)

    def run_tests(self, writes: Mapping[RepoPath, str | None], tests: Sequence[str]) -> SuiteReport:
        self.ran.append(("tests", dict(writes), tuple(tests)))
        return self.outcome

    def run_code(self, writes: Mapping[RepoPath, str | None], code: str) -> str:
        self.ran.append(("code", dict(writes), code))
        return "exit 0\nout"

    def judge(self, writes: Mapping[RepoPath, str | None], summary: str) -> Judgement:
        self.ran.append(("judge", dict(writes), summary))
        return self.judgement


@dataclass
class Asked:
    """A person who says yes or no to everything, or nobody."""

    present: bool = False
    yes: bool = False
    heard: list[str] = field(default_factory=list)

    def approves(self, what: str, detail: str) -> bool:
        self.heard.append(f"{what}\n{detail}")
        return self.yes

    def answer(self, question: str) -> str:
        self.heard.append(question)
        return "as it says"


@dataclass
class Session:
    """A loop and what it works with."""

    loop: Loop
    model: ScriptedModel
    log: MemoryLog
    gates: Gates
    runs: Runs
    person: Asked

    def run(self) -> Ended:
        return self.loop.run()

    @property
    def results(self) -> list[Answered]:
        return [e for e in self.log.events if isinstance(e, Answered)]

    @property
    def writes(self) -> dict[RepoPath, str | None]:
        return writes_of(self.log.events)


def session(
    script: Iterable[Said],
    *,
    files: Mapping[str, str] = FILES,
    links: Mapping[str, str] | None = None,
    gates: Gates | None = None,
    runs: Runs | None = None,
    person: Asked | None = None,
    trust: Trust = Trust.AUTO,
    assume: bool = True,
    limits: Limits = Limits(steps=60),  # noqa: B008 - frozen
    events: tuple[AgentEvent, ...] = (),
    context: int | None = None,
    instruction: str = "make it so",
    keep: Callable[[AgentEvent], None] | None = None,
    role: str = IMPLEMENTER,
    tools: Mapping[str, Tool] = TOOLS,
    frozen: frozenset[RepoPath] = frozenset(),
) -> Session:
    """A session over files in memory."""
    model, log = ScriptedModel(list(script), context), MemoryLog(events, keep)
    gates, runs, person = gates or Gates(), runs or Runs(), person or Asked()
    copy = WorkingCopy(MemoryTree(files, links or {}), lambda: writes_of(log.events))
    loop = Loop(
        model=model,
        opening=opening("make it so", ()),
        tools=tools,
        workshop=Workshop(
            copy=copy,
            search=TextSearch(copy),
            tests=runs,
            judge=runs,
            person=person,
            limit=4000,
            assume=assume,
            made_edits=lambda: (),
            plan_is_asked=trust is not Trust.AUTO,
            agreed_files=lambda: agreed_files(log.events),
        ),
        choke=ChokePoint(
            review=gates,
            person=person,
            trust=trust,
            assume=assume,
            instruction=instruction,
            frozen=frozen,
            agreed_files=lambda: agreed_files(log.events),
        ),
        log=RoleLog(log, role),
        limits=limits,
        sampling=Sampling(),
        metadata={"role": role},
        cancelled=threading.Event(),
        tell=lambda _event: None,
        wait=lambda _seconds: None,
    )
    return Session(loop=loop, model=model, log=log, gates=gates, runs=runs, person=person)
