"""What `localagent gate` answers: a verdict on a patch, with everything that it rests on."""

from dataclasses import dataclass
from enum import StrEnum

from localagent.domain.gate import Decision, Finding, Severity


class PatchVerdict(StrEnum):
    """The answer. NEEDS_PERSON: every finding may be right, and only a person can know."""

    ALLOWED = "allowed"
    NEEDS_PERSON = "needs-person"
    REFUSED = "refused"


@dataclass(frozen=True, kw_only=True, slots=True)
class RuleText:
    """A rule as it is told. `asks_person`: what it finds may be right; `may_run`: in a jail, before a person looked."""

    id: str
    severity: Severity
    why: str
    remedy: str
    asks_person: bool
    may_run: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class PatchApproval:
    """A person's word on one change. `patch` is the diff's digest, `change` that of what it makes of the files.

    `findings` are the lines that were asked about (rule and path), `who` an account, `task` "" or where it came from.
    """

    patch: str
    change: str
    repo: str
    findings: str
    policy: str
    who: str
    reason: str
    at: str
    task: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class FileNote:
    """One file of the patch. `moved_lines` are the hunks' offsets that are not 0."""

    path: str
    source: str
    kind: str
    moved_lines: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """A table of texts that a page shows below the findings."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class PatchReview:
    """A verdict, the decisions it rests on, and the texts of every rule that could have fired.

    `patch_line` is where the patch could not be understood, 0 if it could. `not_asked` says which gates were not asked,
    and why. `gates` are all in their order, so that one which never came to its turn can be told from one that allowed.
    `tool` is the verb that answers; `title`, `exit_code` and `sections` are its own where it asked more than gates.
    `change` is the digest of what the patch makes of the files, "" if it does not apply. `approval` is why a patch that
    needs a person is allowed. `assumed`: questions that nobody wanted to be asked.
    """

    verdict: PatchVerdict
    policy: str
    digest: str
    gates: tuple[str, ...]
    decisions: tuple[Decision, ...]
    rules: dict[str, RuleText]
    files: tuple[FileNote, ...] = ()
    not_asked: dict[str, str]
    patch_line: int = 0
    remedy: str = ""
    tool: str = "localagent gate"
    title: str = ""
    exit_code: int | None = None
    sections: tuple[Section, ...] = ()
    change: str = ""
    approval: PatchApproval | None = None
    assumed: tuple[Finding, ...] = ()

    @property
    def questions(self) -> tuple[str, ...]:
        """What a person is asked about: rule and path of every finding that may be right."""
        found = (f for d in self.decisions for f in d.findings)
        lines = (f"{f.rule} {f.path!r}" for f in found if f.rule in self.rules and self.rules[f.rule].asks_person)
        return tuple(sorted(set(lines)))

    @property
    def may_run(self) -> bool:
        """Whether a jail may run it: allowed, or a person is only asked what the change means."""
        if self.verdict is PatchVerdict.ALLOWED:
            return True
        found = [f.rule for d in self.decisions for f in d.findings]
        known = all(rule in self.rules and self.rules[rule].may_run for rule in found)
        return self.verdict is PatchVerdict.NEEDS_PERSON and bool(found) and known

    @property
    def exit(self) -> int:
        """0 allowed, 1 anything else, unless the verb says so."""
        if self.exit_code is not None:
            return self.exit_code
        return 0 if self.verdict is PatchVerdict.ALLOWED else 1
