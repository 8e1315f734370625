"""A policy file (TOML) becomes a `Policy`, or a UsageFault that lists every fault of it.

Nothing is merged, inherited or defaulted silently: what a file does not say is a fault of that file.
"""

import re
import tomllib
from pathlib import Path

import pathspec

from localagent.domain.gate import Severity
from localagent.domain.policy import (
    DangerRule,
    DependencyRules,
    JailLevel,
    PatchRules,
    PathRules,
    Permission,
    Policy,
    SizeRules,
    Switch,
)
from localagent.errors import UsageFault
from localagent.policy.table import Faults, Table

SCHEMA = "localagent/policy/1"
_MOST_BYTES = 1 << 20
_NAME = re.compile(r"[\w*]+(\.[\w*]+)*(:\w+)?")
_RULE_ID = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_DISTRIBUTION = re.compile(r"(?=.*[a-z0-9])[a-z0-9*]+(-[a-z0-9*]+)*")
_FILE_PATTERN = re.compile(r"(?!\.\.?(/|$))[^*/\\\0]+(/(?!\.\.?(/|$))[^*/\\\0]+)*")
_REMEDY = "`localagent policy show` prints a policy that is right; docs/policy.md describes every key"


def load_policy(path: Path) -> Policy:
    """The policy in a file. UsageFault with every fault, each with the dotted path of its key."""
    return load_policy_bytes(path)[0]


def load_policy_bytes(path: Path) -> tuple[Policy, bytes]:
    """The same, with the very bytes that it was read from."""
    try:
        with path.open("rb") as stream:
            data = stream.read(_MOST_BYTES + 1)
    except OSError as error:
        raise UsageFault(f"{path}: cannot be read: {error.strerror or error}", remedy=_REMEDY) from error
    return parse_policy(data, str(path)), data


def parse_policy(data: bytes, source: str) -> Policy:
    """The policy in some bytes; `source` names them in faults."""
    if len(data) > _MOST_BYTES:
        raise UsageFault(f"{source}: larger than {_MOST_BYTES:,} bytes", remedy=_REMEDY)
    try:
        values = tomllib.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise UsageFault(f"{source}: not TOML: {error}", remedy=_REMEDY) from error
    faults = Faults(source)
    policy = _policy(Table(values, "", faults))
    if faults.lines:
        raise UsageFault(faults.lines, remedy=_REMEDY)
    return policy


def _policy(top: Table) -> Policy:
    schema = top.take_text("schema")
    if schema not in (SCHEMA, "missing"):
        top.fault("schema", f"must be {SCHEMA!r}, not {schema!r}")
    name = top.take_text("name")
    paths, size, danger = top.take_table("paths"), top.take_table("size"), top.take_table("danger")
    patches = top.take_table("patches")
    repair, checks, jail = top.take_table("repair"), top.take_table("checks"), top.take_table("jail")
    policy = Policy(
        name=name,
        paths=_paths(paths),
        size=_size(size),
        deny_at=danger.take_choice("deny_at", Severity),
        dangers=_dangers(danger),
        bandit_deny_at=checks.take_choice("bandit_deny_at", Severity),
        swallowed_exceptions=repair.take_choice("swallowed_exceptions", Permission),
        special_cased_tests=repair.take_choice("special_cased_tests", Permission),
        third_party_binaries=jail.take_choice("third_party_binaries", Permission),
        ruff=checks.take_choice("ruff", Switch),
        mypy=checks.take_choice("mypy", Switch),
        least_jail_level=jail.take_choice("least_level", JailLevel),
        dependencies=_dependencies(top.take_table("dependencies")),
        patches=_patches(patches),
    )
    for table in (danger, repair, checks, jail, top):
        table.close()
    return policy


def _pattern_fault(pattern: str) -> str:
    if pattern.startswith("!"):
        return "a pattern cannot take another back (`!`)"
    try:
        pathspec.GitIgnoreSpec.from_lines([pattern])
    except ValueError as error:
        return f"not a gitwildmatch pattern: {error}"
    return ""


def _paths(table: Table) -> PathRules:
    rules = PathRules(
        editable=table.take_texts("editable", required=True, valid=_pattern_fault),
        denied=table.take_texts("denied", required=True, valid=_pattern_fault),
        tests=table.take_texts("tests", required=True, valid=_pattern_fault),
    )
    table.close()
    return rules


def _patches(table: Table) -> PatchRules:
    rules = PatchRules(
        editable=table.take_texts("editable", required=True, valid=_pattern_fault),
        denied=table.take_texts("denied", required=True, valid=_pattern_fault),
        critical=table.take_texts("critical", required=True, valid=_pattern_fault),
        dependencies=table.take_texts("dependencies", required=True, valid=_pattern_fault),
        test_configuration=table.take_texts("test_configuration", required=True, valid=_pattern_fault),
        tests=table.take_choice("tests", Permission),
        allowed_in_tests=table.take_texts("allowed_in_tests", required=True),
        size=_size(table.take_table("size")),
    )
    table.close()
    return rules


def _size(table: Table) -> SizeRules:
    rules = SizeRules(
        max_files=table.take_count("max_files", most=1000),
        max_changed_lines=table.take_count("max_changed_lines", most=100_000),
        max_changed_bytes=table.take_count("max_changed_bytes", most=10_000_000),
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


def _dangers(table: Table) -> tuple[DangerRule, ...]:
    rules: list[DangerRule] = []
    for entry in table.take_tables("rule"):
        rule = _danger(entry)
        if rule.id in {r.id for r in rules}:
            entry.fault("id", f"{rule.id!r} stands twice")
        rules.append(rule)
    return tuple(rules)


def _name_fault(name: str) -> str:
    return "" if _NAME.fullmatch(name) else f"{name!r} is not a dotted name"


def _danger(table: Table) -> DangerRule:
    rule_id = table.take_text("id")
    if rule_id != "missing" and not _RULE_ID.fullmatch(rule_id):
        table.fault("id", f"{rule_id!r} is not lower case words joined by `-`")
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
        allowed=table.take_texts("allowed", required=False, valid=_name_fault),
        match=table.take_texts("match", required=True),
        not_match=table.take_texts("not_match", required=True),
    )
    if not (rule.names or rule.calls or rule.writes or rule.methods or rule.attributes or rule.strings):
        table.fault("id", f"{rule_id!r} names nothing: one of names, calls, writes, methods, attributes, strings")
    table.close()
    return rule
