"""What may be edited, what may not be introduced, and what must be enforced. Parsed by `localagent.policy`."""

from dataclasses import dataclass
from enum import StrEnum

from localagent.domain.gate import Severity
from localagent.domain.strength import Grade


class Switch(StrEnum):
    """When a static check runs: as the project's own configuration asks, always, or never."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


class Permission(StrEnum):
    """Whether something may be used."""

    ALLOW = "allow"
    DENY = "deny"


class JailLevel(StrEnum):
    """Least level of the jail; what each adds is described by `localagent doctor`."""

    L1 = "L1"
    L2 = "L2"
    L3 = "L3"
    L4 = "L4"


class LeastStrength(StrEnum):
    """How strong the evidence for a patch must be: no matter how, or at least a grade. E asks that it was measured."""

    NONE = "none"
    E = "E"
    D = "D"
    C = "C"
    B = "B"
    A = "A"

    @property
    def grade(self) -> Grade | None:
        """The grade to reach; None where none is asked for."""
        return None if self is LeastStrength.NONE else Grade(self.value)


@dataclass(frozen=True, kw_only=True, slots=True)
class PathRules:
    """gitwildmatch patterns, relative to the repository's root. A path must match `editable` and neither other list.

    `narrowed` holds the lists of later layers: a path must match each of them too.
    """

    editable: tuple[str, ...]
    denied: tuple[str, ...]
    tests: tuple[str, ...]
    narrowed: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class SizeRules:
    """How much one patch may change, and how large and how deeply nested what it touches may be.

    `max_hunks`: changed places, over all files. `max_changed_nodes`: nodes of syntax trees that come, or that go.
    """

    max_files: int
    max_hunks: int
    max_changed_lines: int
    max_changed_bytes: int
    max_changed_nodes: int
    max_file_bytes: int
    max_depth: int


@dataclass(frozen=True, kw_only=True, slots=True)
class DangerRule:
    """One named group of things that a repair may not newly introduce.

    All entries are dotted names after aliases are resolved; a component may hold `*`; an entry covers what lies below
    it. `names`: any mention. `calls`: only when called. `writes`: assigned to, deleted, or set by `setattr`.
    `methods`: called as a method of anything. `attributes`: mentioned as an attribute of anything. `strings`: patterns
    of whole text constants, and of texts put together from some. `settings`: patterns of `name=value` for what is
    assigned, passed by keyword, a default or an entry of a table, where the value is a constant or a name. `allowed`
    are exceptions to `names`, `calls` and `writes`. `match`/`not_match` are code examples that the rule must and must
    not fire on when they are added to an empty function. `asks_person`: in a patch that anybody wrote a person may let
    it be; a repair is refused all the same.
    """

    id: str
    why: str
    severity: Severity
    names: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()
    strings: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    match: tuple[str, ...] = ()
    not_match: tuple[str, ...] = ()
    asks_person: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class DependencyRules:
    """Which distributions may come in, and where the answer is looked for.

    `allow` and `deny` are normalised names that may hold `*`. `known_names` is a path relative to the policy's folder.
    `lock_files` are paths relative to the repository whose last part may hold `*`.
    """

    allow: tuple[str, ...]
    deny: tuple[str, ...]
    known_names: str
    lock_files: tuple[str, ...]
    require_hashes: bool
    approvals: Permission


@dataclass(frozen=True, kw_only=True, slots=True)
class PatchRules:
    """What `localagent gate` asks of a patch that anybody wrote, where that differs from what is asked of a repair.

    Patterns as in PathRules. A patch may touch what matches `editable` and not `denied`; what matches `critical`,
    `dependencies` or `test_configuration` needs a person, and so does a change of code that is critical by what it is:
    a function, class or variable that `critical_names` matches (without regard to case), or a function that mentions
    what `critical_uses` names, as in DangerRule. `tests`: whether it may touch tests at all. `weaker_tests`: whether a
    person may let tests be made weaker; else nobody can. `routine`: whether what carries no decision (layout, texts
    for people, the project's version, pins of developers' tools that move up) is let be in what is critical. Findings
    of the rules `allowed_in_tests` (ids of dangers, of rules, of bandit's tests) are let be in what matches `lenient`:
    the base policy's tests and their configuration, which no later layer can widen. `narrowed` as in PathRules.
    """

    editable: tuple[str, ...]
    denied: tuple[str, ...]
    critical: tuple[str, ...]
    critical_names: tuple[str, ...]
    critical_uses: tuple[str, ...]
    dependencies: tuple[str, ...]
    test_configuration: tuple[str, ...]
    tests: Permission
    weaker_tests: Permission
    routine: Permission
    allowed_in_tests: tuple[str, ...]
    size: SizeRules
    lenient: tuple[str, ...] = ()
    narrowed: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class InstructionRules:
    """What a change made for an instruction (`localagent do`) may be, beside what is asked of any patch.

    Patterns as in PathRules: a file must match `editable`, and neither `denied` nor what `patches` denies; new files,
    too. What matches `critical`, beside what `patches.critical` names, needs a person whatever was instructed.
    `new_tests`: whether tests may be added; they are never made weaker. `answered` are ids of rules that ask what a
    change means, where the instruction is the answer. `narrowed` as in PathRules.
    """

    editable: tuple[str, ...]
    denied: tuple[str, ...]
    critical: tuple[str, ...]
    new_tests: Permission
    answered: tuple[str, ...]
    size: SizeRules
    narrowed: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class CommandRule:
    """One prefix of commands. `argv` is a word a place, each a choice of words; a word may hold `*`.

    A first word without `/` stands for programs by that name in any folder. `match`/`not_match` are whole commands.
    """

    id: str
    answer: Permission
    why: str
    argv: tuple[tuple[str, ...], ...]
    match: tuple[str, ...] = ()
    not_match: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class CommandRules:
    """Which commands may run in the jail as a check. A rule that denies wins; `otherwise` is for what no rule names."""

    otherwise: Permission
    rules: tuple[CommandRule, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ApprovalRules:
    """Who may approve what needs a person: account names, `*` for anybody. `by_asker`: also who asked for it."""

    people: tuple[str, ...]
    by_asker: Permission


@dataclass(frozen=True, kw_only=True, slots=True)
class LimitRules:
    """What one jail that runs the repository's code may use where it is less than is built in; None: what is built in.

    MiB of memory of the whole tree, processes and threads together, processor seconds of the whole tree, seconds from
    start to end, MiB of one file, MiB written. A worker that is kept warm for many candidates is given its seconds for
    each request, not for its life.
    """

    memory_mib: int | None = None
    processes: int | None = None
    cpu_seconds: int | None = None
    wall_seconds: int | None = None
    file_mib: int | None = None
    disk_mib: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    """A whole policy.

    `deny_at` is the severity from which a newly introduced danger is refused; `unanswered` whether a patch may pass
    that ruff or mypy crashed on; `min_strength` what the evidence must reach before `fix` or `verify` accepts a patch;
    `accept_at` the least confidence, from 0 to 1, that a repair is right before `fix` accepts it.
    `commands` holds the rules of every layer that has some: a command needs the leave of each. `instruction` is None
    where a policy has no such section: then a change for an instruction may be what a repair may be.
    """

    name: str
    paths: PathRules
    size: SizeRules
    deny_at: Severity
    dangers: tuple[DangerRule, ...]
    bandit_deny_at: Severity
    swallowed_exceptions: Permission
    special_cased_tests: Permission
    third_party_binaries: Permission
    ruff: Switch
    mypy: Switch
    unanswered: Permission
    least_jail_level: JailLevel
    limits: LimitRules
    min_strength: LeastStrength
    accept_at: float
    dependencies: DependencyRules
    patches: PatchRules
    commands: tuple[CommandRules, ...]
    approvals: ApprovalRules
    instruction: InstructionRules | None = None
