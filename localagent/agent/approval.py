"""The choke point: allow, ask or deny every call before anything is applied or run. There is no way around it.

In order: what the plan covers, what a text met on the way took away (taint), the gates and the policy, and what the
trust level leaves to a person. A plan can only narrow what the policy allows.
"""

import ast
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from localagent.agent.agent_ports import Answer, ChangeReview, Person, Review
from localagent.agent.containment import WHY, is_contained
from localagent.agent.events import AgentEvent, Answered, Seen
from localagent.agent.tools.tool import Action
from localagent.agent.tools.working_copy import WorkingCopy
from localagent.code.names import imports_of
from localagent.code.source_text import parse_or_none
from localagent.domain.paths import RepoPath

LEFT_TO_PERSON = "a person has to allow it"
"""How the reason of a refusal begins that a person could have answered with yes."""


class Trust(StrEnum):
    """What a person is asked about: every change, the plan, or nothing but what the policy leaves to persons."""

    ASK = "ask"
    PLAN = "plan"
    AUTO = "auto"


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanScope:
    """The files that a plan names, whole or by their ends; folders end in `/`. None named: everything."""

    paths: tuple[str, ...] = ()

    def covers(self, path: RepoPath) -> bool:
        """Whether a file may be changed under it."""
        return not self.paths or self.names(path)

    def names(self, path: RepoPath) -> bool:
        """Whether it is among those that are named."""
        return any(
            path == named or path.endswith(f"/{named}") or (named.endswith("/") and path.startswith(named))
            for named in self.paths
        )


_INERT = frozenset(
    {"__future__", "typing", "dataclasses", "enum", "abc", "collections", "math", "datetime", "pytest", "re", "string",
     "functools", "itertools", "operator", "json", "decimal", "fractions", "statistics", "textwrap", "contextlib",
     "copy", "bisect", "heapq", "numbers", "unicodedata", "csv", "html", "zoneinfo", "calendar", "difflib", "fnmatch",
     "time", "logging", "warnings", "argparse", "uuid"}
)  # fmt: skip
_LISTED = 8
_FILE = re.compile(r"(?:[\w.@+-]+/)*[\w@+-][\w.@+-]*\.\w{1,8}\b|(?:[\w.@+-]+/)+")


_GOES = re.compile(r"\b(?:remov|delet|drop|retir|get rid|tak\w* out|no longer|nobody|mov|renam|merg)", re.IGNORECASE)


def scope_of(texts: Sequence[str]) -> PlanScope:
    """The files and folders that some texts name."""
    return PlanScope(paths=tuple(dict.fromkeys(found for text in texts for found in _FILE.findall(text))))


@dataclass(frozen=True, kw_only=True, slots=True)
class ChokePoint:
    """Decides on actions. `assume`: who gave the instruction wants no questions that the policy does not insist on.

    What `instruction` and the plan name may be changed; where the plan names files, nothing else. Without a plan
    everything may that the policy allows, but for files to go. Where a plan was agreed to before the work, its files
    may (`agreed_files`), whatever the instruction names. `frozen` files never may. `harmless` modules may be imported
    after any text.
    """

    review: ChangeReview
    person: Person
    trust: Trust
    assume: bool
    instruction: str = ""
    harmless: frozenset[str] = frozenset()
    frozen: frozenset[RepoPath] = frozenset()
    agreed_files: Callable[[], Collection[RepoPath] | None] = lambda: None

    def decide(self, action: Action, copy: WorkingCopy, events: Sequence[AgentEvent]) -> Review:
        """ALLOW, or DENY with a reason for the model; a person has been asked by then where one is there.

        `events` are those of every role: what a text did to one of them reaches the next by what it says.
        """
        if (action.code or action.writes) and is_contained(events):
            return _denied(WHY)
        if action.code:
            if lost := self._tainted({w.path: w.text for w in action.writes}, copy, events):
                return _denied(lost)
            return self._settled(self.review.of_code(action.code), "to run this program", lambda: action.code)
        if not action.writes:
            return Review(answer=Answer.ALLOW)
        after = {w.path: w.text for w in action.writes}
        said = self._of_change(after, copy)
        if lost := self._outside(after, copy, events) or self._tainted(after, copy, events):
            return replace(_denied(lost), broken=said.broken)
        if said.answer is Answer.ALLOW and self.trust is Trust.ASK and not self.assume:
            said = Review(answer=Answer.ASK, reason="every change is asked about (--trust ask)")
        return self._settled(said, "this change", lambda: self.review.shown(after))

    def _outside(self, after: Mapping[RepoPath, str | None], copy: WorkingCopy, events: Sequence[AgentEvent]) -> str:
        """Why a change is outside what was planned; "" where it is within. What the session made itself may go."""
        if held := frozen_among(after, self.frozen):
            return held
        agreed = self.agreed_files()
        if agreed is not None:
            outside = [path for path in after if path not in agreed]
            more = "call plan with files to ask for it, or leave it as it is"
            return f"{outside[0]} is outside the plan that was agreed to ({_listed(agreed)}); {more}" if outside else ""
        # an agreed plan binds who works by it, by its files; its words bind nobody
        plan = plan_of([e for e in events if isinstance(e, Answered) and e.agreement is None])
        planned, asked = scope_of(plan), scope_of([self.instruction])
        for path, text in after.items():
            named = planned.names(path) or asked.names(path) or is_word_of(path, [*plan, self.instruction])
            if not named and not planned.covers(path):
                return f"{path} is outside the plan; call plan again and name every file that has to change"
            if text is None and copy.original(path) is not None and not self._may_go(path, plan):
                return f"neither plan nor instruction says that {path} is to go; call plan and say that it is deleted"
        return ""

    def _may_go(self, path: RepoPath, plan: Sequence[str]) -> bool:
        """Whether a file of the tree may be deleted: the instruction names it, or a plan to take it away does."""
        if scope_of([self.instruction]).names(path):
            return True
        asked = _GOES.search(self.instruction) is not None
        return any(scope_of([step]).names(path) and (asked or _GOES.search(step)) for step in plan)

    def _tainted(self, after: Mapping[RepoPath, str | None], copy: WorkingCopy, events: Sequence[AgentEvent]) -> str:
        """Why a change may not be after a text that speaks to a machine; "" where it may, or a person lets it."""
        where = taint_of(events)
        lost = _lost(after, copy, scope_of([self.instruction]), self.harmless) if where else ""
        if not lost or (
            self.person.present and self.person.approves(f"{lost}, after {where}", self.review.shown(after))
        ):
            return ""
        return f"{lost} is not possible after {where}: that text speaks to a machine and is only data"

    def _of_change(self, after: Mapping[RepoPath, str | None], copy: WorkingCopy) -> Review:
        """Of a change by itself; of all that was done where nothing stands against that, or what does is in its files.

        A test that goes with what it tested is one that is deleted, as long as it is looked at alone.
        """
        changed = {path: text for path, text in after.items() if text != copy.original(path)}
        said = self._of_all(changed, copy)
        if said.answer is Answer.ALLOW or not {*copy.writes} - {*after}:
            return said
        together = self._of_all({**copy.writes, **after}, copy)
        about_this = bool(together.paths) and together.paths <= {*after}
        return together if together.answer is Answer.ALLOW or about_this else said

    def _of_all(self, after: Mapping[RepoPath, str | None], copy: WorkingCopy) -> Review:
        if not after:
            return Review(answer=Answer.ALLOW)
        return self.review.of_change({path: copy.original(path) for path in after}, after)

    def _settled(self, said: Review, what: str, detail: Callable[[], str]) -> Review:
        """The gates' answer, with a person's where they leave it to one."""
        if said.answer is not Answer.ASK:
            return said
        if self.person.present and self.person.approves(f"{what}: {said.reason}", detail()):
            return Review(answer=Answer.ALLOW)
        return replace(_denied(f"{LEFT_TO_PERSON}: {said.reason}"), for_person=True)


def is_word_of(path: RepoPath, texts: Sequence[str]) -> bool:
    """Whether some texts say the name of a file without an ending, as README, which no rule knows from a word."""
    return "." not in path.name and any(path.name in re.findall(r"\w+", text) for text in texts)


def plan_of(events: Sequence[AgentEvent]) -> tuple[str, ...]:
    """The last plan that names a file, else the last one: one that names none takes back no other."""
    plans = [e.plan for e in reversed(events) if isinstance(e, Answered) and e.plan]
    return next((plan for plan in plans if scope_of(plan).paths), next(iter(plans), ()))


def planned_modules(events: Sequence[AgentEvent], instruction: str) -> frozenset[str]:
    """The top of what could be imported of the Python files that the last plan, or the instruction, names."""
    plan = plan_of(events)
    files = (path for path in scope_of([instruction, *plan]).paths if path.endswith(".py"))
    return frozenset(path.partition("/")[0].removesuffix(".py") for path in files)


def frozen_among(paths: Iterable[RepoPath], frozen: Collection[RepoPath]) -> str:
    """Why paths may not change: one of them is a test that the change is held against. "" where none is."""
    fixed = sorted({*frozen} & {*paths})
    return f"{fixed[0]} is one of the tests that this change is held against, and stays as it is" if fixed else ""


def _listed(files: Collection[RepoPath]) -> str:
    shown = sorted(files)[:_LISTED]
    return ", ".join(shown) + (f" and {len(files) - _LISTED} more" if len(files) > _LISTED else "")


def _denied(reason: str) -> Review:
    return Review(answer=Answer.DENY, reason=reason)


def taint_of(events: Sequence[AgentEvent]) -> str:
    """Where a text was met that speaks to a machine and that no person has seen; "" where none was."""
    where = ""
    for event in events:
        if isinstance(event, Answered) and event.injected:
            where = event.injected
        elif isinstance(event, Seen):
            where = ""
    return where


def _lost(after: Mapping[RepoPath, str | None], copy: WorkingCopy, asked: PlanScope, harmless: frozenset[str]) -> str:
    """What a change would do that taint takes away, "" for nothing. What the instruction names may come and go."""
    own = {path.parts[0].removesuffix(".py") for path in copy.paths() if path.is_python} - sys.stdlib_module_names
    own |= harmless
    for path, text in after.items():
        before = copy.get(path)
        if (text is None or before is None) and not asked.names(path):
            return "deleting a file" if text is None else "creating a file"
        if path.is_python and text is not None:
            new = {name for name in {*_imports(text)} - {*_imports(before or "")} if not _harmless(name, own)}
            if new:
                return f"importing {min(new)}"
    return ""


def _harmless(name: str, own: Collection[str]) -> bool:
    """Whether a module can do nothing by itself, or is the repository's own."""
    return name.startswith(".") or name.split(".", maxsplit=1)[0] in {*own, *_INERT}


def _imports(text: str) -> Iterator[str]:
    tree = parse_or_none(text)
    for node in ast.walk(tree) if tree is not None else ():
        yield from (imported.origin for imported in imports_of(node))
