"""What the agent needs of the rest, as protocols; `app` builds the concrete parts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from localagent.agent.events import Agreement
from localagent.domain.paths import RepoPath


class BaseTree(Protocol):
    """The working tree as it stood when the session began. Text files only are ever shown."""

    @property
    def paths(self) -> Sequence[RepoPath]:
        """Every regular file that may be read, sorted."""
        ...

    def read(self, path: RepoPath) -> bytes | None:
        """A file's bytes; None for what is no regular file of the tree, or too large."""
        ...

    def why_not(self, path: RepoPath) -> str:
        """Why a path that stands in the tree cannot be read or edited; "" where nothing is known against it."""
        ...


class Answer(StrEnum):
    """What may become of a change, or of code that is to run."""

    ALLOW = "allow"
    ASK = "ask"  # a person has to say
    DENY = "deny"


@dataclass(frozen=True, kw_only=True, slots=True)
class Review:
    """The gates' answer, in one line that says why and what to do. `broken`: rules that no person answers.

    `paths`: the files that it speaks of; `for_person`: nothing but the yes of a person is wanting.
    """

    answer: Answer
    reason: str = ""
    broken: tuple[str, ...] = ()
    paths: frozenset[RepoPath] = frozenset()
    for_person: bool = False


class ChangeReview(Protocol):
    """The static gates and the policy, asked before anything is applied or run."""

    def of_change(self, before: Mapping[RepoPath, str | None], after: Mapping[RepoPath, str | None]) -> Review:
        """Of files as they were in the tree at the start, and as they are to be; None: no such file."""
        ...

    def shown(self, after: Mapping[RepoPath, str | None]) -> str:
        """A change as a person reads it who is asked about it: all of it, not only where it is."""
        ...

    def of_code(self, code: str) -> Review:
        """Of a program that is to run in the jail."""
        ...

    def speaks_to_machine(self, text: str) -> str:
        """The words of a text that speak to a machine; "" where none do."""
        ...


class SuiteOutcome(StrEnum):
    """How a run of tests ended."""

    PASSED = "passed"  # all that passed before, and all that was named
    FAILED = "failed"
    NO_TESTS = "no tests"
    COULD_NOT_RUN = "could not run"


@dataclass(frozen=True, kw_only=True, slots=True)
class SuiteReport:
    """What the tests say of the working copy. `text` is for a model: counts, then failures, the new ones first."""

    outcome: SuiteOutcome
    text: str


class SuiteRunner(Protocol):
    """Runs tests and code on the working copy, in jails."""

    def run_tests(self, writes: Mapping[RepoPath, str | None], tests: Sequence[str]) -> SuiteReport:
        """`tests` are pytest arguments; none: the whole suite."""
        ...

    def run_code(self, writes: Mapping[RepoPath, str | None], code: str) -> str:
        """Output of a Python program that runs at the root of the copy."""
        ...


class JudgeAnswer(StrEnum):
    """Whether a change may become the session's patch."""

    ACCEPTED = "accepted"
    NEEDS_PERSON = "needs-person"
    REFUSED = "refused"
    AGREED = "agreed"  # what a role made is what the rest of the session is bound to


@dataclass(frozen=True, kw_only=True, slots=True)
class Judgement:
    """The proof's answer, with its reason for a model and for a person."""

    answer: JudgeAnswer
    reason: str
    agreement: Agreement | None = None


class PatchJudge(Protocol):
    """Proves the whole change: gates, every test before and after, static tools, evidence."""

    def judge(self, writes: Mapping[RepoPath, str | None], summary: str) -> Judgement:
        """Never raises for what the change does."""
        ...


class Person(Protocol):
    """Who gave the instruction, where somebody is there."""

    @property
    def present(self) -> bool:
        """Whether anybody can be asked."""
        ...

    def approves(self, what: str, detail: str) -> bool:
        """Yes or no to one thing."""
        ...

    def answer(self, question: str) -> str:
        """Their words."""
        ...


class CodeSearch(Protocol):
    """Finds things in the working copy; each line is `path:line: text`, best first."""

    def search(self, query: str) -> Sequence[str]:
        """Where the words of a query stand."""
        ...

    def symbol(self, name: str) -> Sequence[str]:
        """Where a function, class or variable of a (dotted) name is defined."""
        ...

    def references(self, name: str) -> Sequence[str]:
        """Where a name is used."""
        ...
