"""A policy file (TOML) becomes a `Policy`, or a UsageFault that lists every fault of it.

Nothing is merged, inherited or defaulted silently: what a file does not say is a fault of that file, but for the limits
of the jails, which are built in and can only be made tighter.
"""

import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import pathspec

from localagent.domain.gate import Severity
from localagent.domain.policy import (
    ApprovalRules,
    DangerRule,
    DependencyRules,
    InstructionRules,
    JailLevel,
    LeastStrength,
    PatchRules,
    PathRules,
    Permission,
    Policy,
    SizeRules,
    Switch,
)
from localagent.errors import UsageFault
from localagent.fs.bounded_read import read_prefix
from localagent.policy.commands import parse_commands
from localagent.policy.limits import parse_limits
from localagent.policy.table import Faults, Table, parse_toml

# What is wrong with a pattern of paths: one that can match no path of a repository, or something else than it says.
#
# Such a pattern is worse than none: it stands in a list of what is denied and denies nothing. Not promised: that a
# pattern which is right matches any file that there is.

_DRIVE = re.compile(r"[A-Za-z]:(/|$)")
_HOME = re.compile(r"~[^/]*(/|$)")
_STARS = re.compile(r"\*{3,}")
_CLASS = re.compile(r"\[!?+[^/][^\]/]*\]")  # as gitwildmatch ends one: not at a `]` in the first place


@lru_cache(maxsize=2048)  # every layer is read over the whole base, whose patterns were compiled before
def pattern_fault(pattern: str) -> str:
    """What is wrong, why, and what to write instead; "" if nothing is."""
    return _character_fault(pattern) or _shape_fault(pattern) or _class_fault(pattern)


def _character_fault(pattern: str) -> str:
    if pattern.startswith("!"):
        return "a pattern cannot take another back (`!`)"
    if any(ord(c) < 32 or ord(c) == 127 for c in pattern):
        return f"{pattern!r} holds a control character: a pattern is one line, and paths hold none; leave it out"
    if pattern != pattern.strip():
        return (
            f"{pattern!r} begins or ends with a blank, which patterns lose: it would match another path; leave it out"
        )
    if "\\" in pattern:
        return f"{pattern!r} holds a backslash: paths are written with `/`, and `[*]` stands for a `*` itself"
    if pattern.startswith("#"):
        return f"{pattern!r} would be a comment and match nothing; `[#]` stands for a `#` itself"
    return ""


def _shape_fault(pattern: str) -> str:
    if _DRIVE.match(pattern) or _HOME.match(pattern):
        return f"{pattern!r} is a place of a machine: patterns are for paths below the repository's root"
    inner = pattern.removeprefix("/").removesuffix("/")
    if not inner:
        return f"{pattern!r} names nothing: `*` is for everything, `/x` for an `x` at the repository's root"
    for part in inner.split("/"):
        if not part:
            return f"{pattern!r} has an empty part (`//`), which no path has; write one `/`"
        if part in (".", ".."):
            return f"{pattern!r} has the part `{part}`, which no path of a repository has; write the path without it"
        if _STARS.search(part):
            return f"{pattern!r} has three `*` in a row; `*` is for one part of a path, `**` for any number of them"
        if "**" in part and part != "**":
            return f"{pattern!r} has `**` beside other letters, where it is no more than `*`; write `*`, or `**/`"
    return ""


def _class_fault(pattern: str) -> str:
    if "[" in _CLASS.sub("", pattern):
        return f"{pattern!r} has a `[` without its `]` in the same part: it matches nothing; `[[]` is for a `[` itself"
    try:
        compiled = pathspec.GitIgnoreSpec.from_lines([pattern])
    except (ValueError, re.error) as error:
        return f"{pattern!r} is no gitwildmatch pattern: {error}"
    if any(one.include is None for one in compiled.patterns):
        return f"{pattern!r} matches nothing"
    return ""


SCHEMA = "localagent/policy/1"
MOST_BYTES = 1 << 20
ACCEPT_AT = 0.9  # where a policy says nothing
_NAME = re.compile(r"[\w*]+(\.[\w*]+)*(:\w+)?")
_KINDS = ("names", "calls", "writes", "methods", "attributes", "strings", "settings")
_RULE_ID = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_DISTRIBUTION = re.compile(r"(?=.*[a-z0-9])[a-z0-9*]+(-[a-z0-9*]+)*")
_FILE_PATTERN = re.compile(r"(?!\.\.?(/|$))[^*/\\\0]+(/(?!\.\.?(/|$))[^*/\\\0]+)*")
_ACCOUNT = re.compile(r"\*|[A-Za-z0-9_][A-Za-z0-9_.@-]*\$?")
REMEDY = "`localagent policy show` prints a policy that is right; docs/policy.md describes every key"


def load_policy(path: Path) -> Policy:
    """The policy in one file, no layers over it. UsageFault with every fault, each with the path of its key."""
    return parse_policy(read_bounded(path), str(path))


def read_bounded(path: Path) -> bytes:
    """A policy file's bytes, one more than there may be at most."""
    return read_prefix(path, MOST_BYTES, REMEDY)


def parse_policy(data: bytes, source: str, taken: frozenset[str] = frozenset()) -> Policy:
    """The policy in some bytes; `source` names them in faults. `taken` are ids that no danger may have."""
    values, text = parse_policy_toml(data, source)
    faults = Faults(source, text)
    policy = policy_of(values, faults, taken)
    if faults.lines:
        raise UsageFault(faults.lines, remedy=REMEDY)
    return policy


def parse_policy_toml(data: bytes, source: str) -> tuple[dict[str, Any], str]:
    """The values of a policy's file and its text. UsageFault if it is no TOML, or larger than a policy may be."""
    return parse_toml(data, source, most_bytes=MOST_BYTES, remedy=REMEDY)


def policy_of(values: dict[str, Any], faults: Faults, taken: frozenset[str] = frozenset()) -> Policy:
    """The policy in parsed values. Usable only if no fault was noted. `taken` are ids that no danger may have."""
    top = Table(values, "", faults)
    schema = top.take_text("schema")
    if schema not in (SCHEMA, "missing"):
        top.fault("schema", f"must be {SCHEMA!r}, not {schema!r}")
    name = top.take_text("name")
    paths, size, danger = top.take_table("paths"), top.take_table("size"), top.take_table("danger")
    patches, commands = top.take_table("patches"), top.take_table("commands")
    repair, checks, jail = top.take_table("repair"), top.take_table("checks"), top.take_table("jail")
    verification = top.take_table("verification")
    path_rules = _paths(paths)
    policy = Policy(
        name=name,
        paths=path_rules,
        size=_size(size),
        deny_at=danger.take_choice("deny_at", Severity),
        dangers=_dangers(danger, taken),
        bandit_deny_at=checks.take_choice("bandit_deny_at", Severity),
        swallowed_exceptions=repair.take_choice("swallowed_exceptions", Permission),
        special_cased_tests=repair.take_choice("special_cased_tests", Permission),
        third_party_binaries=jail.take_choice("third_party_binaries", Permission),
        ruff=checks.take_choice("ruff", Switch),
        mypy=checks.take_choice("mypy", Switch),
        unanswered=checks.take_choice("unanswered", Permission),
        least_jail_level=jail.take_choice("least_level", JailLevel),
        limits=parse_limits(top.take_table("limits", required=False)),
        min_strength=verification.take_choice("min_strength", LeastStrength),
        accept_at=verification.take_share("accept_at", instead=ACCEPT_AT),
        dependencies=_dependencies(top.take_table("dependencies")),
        patches=_patches(patches, path_rules.tests),
        commands=(parse_commands(commands, _rule_id),),
        approvals=_approvals(top.take_table("approvals")),
        instruction=_instruction(top.take_table("instruction")) if "instruction" in values else None,
    )
    for table in (danger, repair, checks, jail, verification, top):
        table.close()
    return policy


def _paths(table: Table) -> PathRules:
    rules = PathRules(
        editable=table.take_texts("editable", required=True, valid=pattern_fault),
        denied=table.take_texts("denied", required=True, valid=pattern_fault),
        tests=table.take_texts("tests", required=True, valid=pattern_fault),
    )
    table.close()
    return rules


def _patches(table: Table, tests: tuple[str, ...]) -> PatchRules:
    configuration = table.take_texts("test_configuration", required=True, valid=pattern_fault)
    rules = PatchRules(
        editable=table.take_texts("editable", required=True, valid=pattern_fault),
        denied=table.take_texts("denied", required=True, valid=pattern_fault),
        critical=table.take_texts("critical", required=True, valid=pattern_fault),
        critical_names=table.take_texts("critical_names", required=True),
        critical_uses=table.take_texts("critical_uses", required=True, valid=_name_fault),
        dependencies=table.take_texts("dependencies", required=True, valid=pattern_fault),
        test_configuration=configuration,
        tests=table.take_choice("tests", Permission),
        weaker_tests=table.take_choice("weaker_tests", Permission),
        routine=table.take_choice("routine", Permission),
        allowed_in_tests=table.take_texts("allowed_in_tests", required=True),
        size=_size(table.take_table("size")),
        lenient=(*tests, *configuration),
    )
    table.close()
    return rules


def _instruction(table: Table) -> InstructionRules:
    rules = InstructionRules(
        editable=table.take_texts("editable", required=True, valid=pattern_fault),
        denied=table.take_texts("denied", required=True, valid=pattern_fault),
        critical=table.take_texts("critical", required=True, valid=pattern_fault),
        new_tests=table.take_choice("new_tests", Permission),
        answered=table.take_texts("answered", required=True),
        size=_size(table.take_table("size")),
    )
    table.close()
    return rules


def _approvals(table: Table) -> ApprovalRules:
    rules = ApprovalRules(
        people=table.take_texts("people", required=True, valid=_account_fault),
        by_asker=table.take_choice("by_asker", Permission),
    )
    table.close()
    return rules


def _account_fault(name: str) -> str:
    return "" if _ACCOUNT.fullmatch(name) else f"{name!r} is not the name of an account, nor `*` for anybody"


def _size(table: Table) -> SizeRules:
    rules = SizeRules(
        max_files=table.take_count("max_files", most=1000),
        max_hunks=table.take_count("max_hunks", most=20_000),
        max_changed_lines=table.take_count("max_changed_lines", most=100_000),
        max_changed_bytes=table.take_count("max_changed_bytes", most=10_000_000),
        max_changed_nodes=table.take_count("max_changed_nodes", most=1_000_000),
        max_file_bytes=table.take_count("max_file_bytes", most=100_000_000),
        max_depth=table.take_count("max_depth", most=200),
    )
    table.close()
    return rules


def _distribution_fault(name: str) -> str:
    if _DISTRIBUTION.fullmatch(name):
        return ""
    return f"{name!r} is not a normalised name (PEP 503: lower case, words joined by one `-`); `*` may stand in it"


def _inside_fault(path: str) -> str:
    """The last part may hold `*`, the others not; no part leads up or out."""
    folder, slash, last = path.rpartition("/")
    if _FILE_PATTERN.fullmatch(folder + slash + last.replace("*", "x")):
        return ""
    return f"{path!r} is not a relative path without `..`; only its last part may hold `*`"


def _dependencies(table: Table) -> DependencyRules:
    known_names = table.take_text("known_names")
    if fault := _inside_fault(known_names) or ("a pattern is not one file" if "*" in known_names else ""):
        table.fault("known_names", fault)
    rules = DependencyRules(
        allow=table.take_texts("allow", required=True, valid=_distribution_fault),
        deny=table.take_texts("deny", required=True, valid=_distribution_fault),
        known_names=known_names,
        lock_files=table.take_texts("lock_files", required=True, valid=_inside_fault),
        require_hashes=table.take_flag("require_hashes"),
        approvals=table.take_choice("approvals", Permission),
    )
    table.close()
    return rules


def _dangers(table: Table, taken: frozenset[str]) -> tuple[DangerRule, ...]:
    rules: list[DangerRule] = []
    for entry in table.take_tables("rule"):
        rule = _danger(entry)
        if rule.id in {r.id for r in rules}:
            entry.fault("id", f"{rule.id!r} stands twice")
        if rule.id in taken:
            entry.fault("id", f"{rule.id!r} is the id of a rule of the gates, and one id means one thing; give another")
        rules.append(rule)
    return tuple(rules)


def _setting_fault(setting: str) -> str:
    return "" if "=" in setting else f"{setting!r} is not `name=value`"


def _name_fault(name: str) -> str:
    return "" if _NAME.fullmatch(name) else f"{name!r} is not a dotted name"


def _rule_id(table: Table) -> str:
    rule_id = table.take_text("id")
    if rule_id != "missing" and not _RULE_ID.fullmatch(rule_id):
        table.fault("id", f"{rule_id!r} is not lower case words joined by `-`")
    return rule_id


def _danger(table: Table) -> DangerRule:
    rule_id = _rule_id(table)
    rule = DangerRule(
        id=rule_id,
        why=table.take_text("why"),
        severity=table.take_choice("severity", Severity),
        names=table.take_texts("names", required=False, valid=_name_fault),
        calls=table.take_texts("calls", required=False, valid=_name_fault),
        writes=table.take_texts("writes", required=False, valid=_name_fault),
        methods=table.take_texts("methods", required=False, valid=_name_fault),
        attributes=table.take_texts("attributes", required=False, valid=_name_fault),
        strings=table.take_texts("strings", required=False),
        settings=table.take_texts("settings", required=False, valid=_setting_fault),
        allowed=table.take_texts("allowed", required=False, valid=_name_fault),
        match=table.take_texts("match", required=True),
        not_match=table.take_texts("not_match", required=True),
        asks_person=table.take_flag("asks_person", instead=False),
    )
    if not any(getattr(rule, key) for key in _KINDS):
        table.fault("id", f"{rule_id!r} names nothing: one of {', '.join(_KINDS)}")
    table.close()
    return rule
