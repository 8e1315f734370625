"""Recipes in a session: what was understood is told, the change made on the copy and proven like any other."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from localagent.agent.agent_ports import JudgeAnswer
from localagent.agent.approval import frozen_among
from localagent.agent.events import RECIPE, AgentEvent, Answered, Ended, EndKind, FileWrite, MemoryLog, ResultKind
from localagent.app.agent.patch_judge import VerifyJudge
from localagent.app.agent.snapshot_tree import SnapshotTree
from localagent.domain.chat import ChatFailure, ChatFault, ChatReply, ChatRequest
from localagent.domain.paths import RepoPath
from localagent.recipes.catalogue import carry_out
from localagent.recipes.instruction import RECIPES, Recipe
from localagent.recipes.recipe import Question, RecipeSources, listed

_CONFIGURATION = (".toml", ".cfg", ".ini", ".yml", ".yaml", ".json")
_DOCUMENTS = (".md", ".rst", ".txt", ".adoc")
_ENDS = {
    JudgeAnswer.ACCEPTED: EndKind.FINISHED,
    JudgeAnswer.NEEDS_PERSON: EndKind.NEEDS_PERSON,
    JudgeAnswer.REFUSED: EndKind.GAVE_UP,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class NoModel:
    """In the place of a model where a recipe needs none."""

    name: str = ""
    digest: str = ""
    context_tokens: int | None = field(default=None)

    def complete(
        self,
        request: ChatRequest,
        *,
        timeout_seconds: float,
        on_text: Callable[[str], None] | None = None,
        cancelled: threading.Event | None = None,
    ) -> ChatReply | ChatFailure:
        """There is nobody to answer."""
        del request, timeout_seconds, on_text, cancelled
        return ChatFailure(fault=ChatFault.UNREACHABLE, reason="no model was given")

    def count_tokens(self, text: str) -> int | None:
        """Not known."""
        del text
        return None

    def close(self) -> None:
        """Nothing is open."""


def sources_of(tree: SnapshotTree) -> RecipeSources:
    """The files of a tree that recipes look at."""
    python: dict[RepoPath, bytes] = {}
    configuration: dict[RepoPath, bytes] = {}
    documents: dict[RepoPath, bytes] = {}
    for path in tree.paths:
        if not path.is_python and not path.endswith((*_CONFIGURATION, *_DOCUMENTS)):
            continue
        data = tree.read(path)
        if data is not None:
            kind = python if path.is_python else documents if path.endswith(_DOCUMENTS) else configuration
            kind[path] = data
    return RecipeSources(python, configuration, documents)


def run_recipe(
    asked: Recipe, tree: SnapshotTree, judge: VerifyJudge, log: MemoryLog, tell: Callable[[AgentEvent], None]
) -> Ended | Question:
    """How the recipe ended; the question where nothing in the tree has its name, so that a model may read it."""

    def append(event: AgentEvent) -> None:
        log.append(event)
        tell(event)

    def stopped(reason: str, remedy: str) -> Ended:
        ended = Ended(kind=EndKind.NEEDS_PERSON, reason=reason, remedy=remedy)
        append(ended)
        return ended

    change = carry_out(sources_of(tree), asked)
    if isinstance(change, Question):
        if change.unknown:
            return change
        return stopped(change.text, change.remedy)
    if why := frozen_among(change.writes, judge.frozen):
        return stopped(f"{change.understood}: {why}", "leave --from-tests out, and rename there too")
    left = f" ({listed(change.left)})" if change.left else ""
    writes = tuple(FileWrite(path=path, text=text) for path, text in change.writes.items())
    told = f"understood as: {change.understood}{left}"
    append(Answered(call_id=RECIPE, tool=RECIPE, kind=ResultKind.DONE, text=told, writes=writes))
    judge.claim, judge.mends = change.claim, False
    said = judge.judge(dict(change.writes), change.understood)
    ended = Ended(kind=_ENDS[said.answer], reason=f"{told}: {said.reason}")
    append(ended)
    return ended


def no_such_name(question: Question) -> Ended:
    """The end of a session without a model whose recipe is about nothing in the tree."""
    reason = f"{question.text}; without a model: {'; '.join(RECIPES)}"
    return Ended(kind=EndKind.NEEDS_PERSON, reason=reason, remedy=question.remedy)
