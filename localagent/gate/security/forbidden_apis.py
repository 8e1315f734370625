"""Gate: what a repair newly introduces by resolved name, judged by the policy's table of dangers.

Occurrences are counted before and after, so code that moves within its unit is not new. Does not judge what an
existing call is given, nor what a function of another file does.
"""

import ast
import fnmatch
import re
import sys
import textwrap
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import cached_property

from localagent.code.name_uses import NameUse, bindings_with, find_uses, module_bindings, within
from localagent.code.regions import UnitSource
from localagent.code.source_text import parse_or_none
from localagent.domain.gate import Decision, Finding, Severity
from localagent.domain.policy import DangerRule, Policy
from localagent.gate.core.gate_input import ChangedRegion, GateInput
from localagent.gate.core.rule import decide
from localagent.gate.security.plain_uses import plain_uses

_ORDER = list(Severity)
_STDLIB = frozenset(sys.stdlib_module_names)
_NAMED = frozenset(
    {"name", "call", "import", "asked"}
)  # how a module of one's own is used; to change one is another matter
_TELLING = frozenset(
    {"os", "posix", "nt", "subprocess", "shutil", "ctypes", "pickle", "marshal", "sys", "builtins", "importlib"}
)
_REACHES = "network"
_COPIES = frozenset({"shutil.copy", "shutil.copy2", "shutil.copyfile"})
_SYNONYMS = {"posix": "os", "nt": "os", "_io": "io", "_operator": "operator", "__builtin__": "builtins"}
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_BINDING = (*_DEFINITIONS, ast.arguments, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.ExceptHandler)
_WORD = re.compile(r"\w+")
_TEXTS = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|#[^\n]*")


class Matcher:
    """Dotted patterns, answered quickly: exact ones from a set, those with `*` one after the other."""

    def __init__(self, patterns: tuple[str, ...]) -> None:
        self._exact = frozenset(p for p in patterns if "*" not in p)
        self._globs = tuple(p.split(".") for p in patterns if "*" in p)

    def __bool__(self) -> bool:
        return bool(self._exact or self._globs)

    def covers(self, name: str) -> bool:
        """True if a pattern is the name or stands for something that the name lies below."""
        at = len(name)
        while at != -1:
            if name[:at] in self._exact:
                return True
            at = name.rfind(".", 0, at)
        parts = name.split(".") if self._globs else []
        return any(len(glob) <= len(parts) and all(map(fnmatch.fnmatchcase, parts, glob)) for glob in self._globs)

    def reaches_into(self, name: str) -> bool:
        """True if a pattern stands for something below the name."""
        return any(p.startswith(f"{name}.") for p in self._exact) or any(
            ".".join(glob).startswith(f"{name}.") for glob in self._globs
        )

    def ends_with(self, attribute: str) -> bool:
        """True if a pattern's last part is the attribute."""
        return any("." in p and p.rpartition(".")[2] == attribute for p in self._exact) or any(
            len(glob) > 1 and glob[-1] != "*" and fnmatch.fnmatchcase(attribute, glob[-1]) for glob in self._globs
        )


class _Danger:
    """One rule of the table, ready to be asked."""

    def __init__(self, rule: DangerRule) -> None:
        self.rule = rule
        self._names, self._calls, self._writes = Matcher(rule.names), Matcher(rule.calls), Matcher(rule.writes)
        self._allowed = Matcher(rule.allowed)
        self._methods, self._attributes = frozenset(rule.methods), frozenset(rule.attributes)

    @cached_property
    def _strings(self) -> re.Pattern[str]:
        return re.compile("|".join(fnmatch.translate(s) for s in self.rule.strings) or r"(?!)")

    @cached_property
    def _settings(self) -> re.Pattern[str]:
        return re.compile("|".join(fnmatch.translate(s) for s in self.rule.settings) or r"(?!)", re.IGNORECASE)

    def stood_in(self, old: str, new: str) -> bool:
        """True if the rule forbids nothing in `new` that it did not forbid in `old`, of which it is a rewording.

        That is: only comments differ, and what they say is not forbidden, or statements of Python were taken out.
        """
        if not self._strings.match(old) or not _is_shortened(old, new):
            return False
        had = set(old.splitlines())
        comments = [line.partition("#")[2].strip() for line in new.splitlines() if line not in had]
        return not any(self._strings.match(text) for text in (*comments, "\n".join(comments)))

    def fires(self, use: NameUse, *, mine: bool) -> bool:
        """True if the rule forbids the use. `mine`: it begins with a name of the tree's own, which is no stranger's."""
        if use.kind == "asked":  # of what kind a connection is reaches nobody; what a test runner is may be a trick
            use = use._replace(kind="name")
            if self.rule.id == _REACHES:
                return False
        if use.kind == "method":
            return use.name in self._methods
        if use.kind == "attribute":
            return use.name in self._attributes
        if use.kind == "string":
            return self._strings.match(use.name) is not None
        if use.kind == "setting":
            return self._settings.match(use.name) is not None
        if use.kind == "indirect":
            return self._names.ends_with(use.name) or use.name in self._methods
        if use.kind == "name" and self._is_method(use.name):
            return True
        ways = list(_ways(use.name))
        return any(self._fires_on(use.kind, name) for name in (ways[1:] if mine else ways))

    def _is_method(self, name: str) -> bool:
        """`pathlib.Path.write_bytes`: a method that is named by its class, to be called later."""
        parts = name.split(".")
        return len(parts) > 2 and parts[0] in _STDLIB and parts[-1] in self._methods and parts[-2][:1].isupper()

    def _fires_on(self, kind: str, name: str) -> bool:
        if self._allowed and self._allowed.covers(name):
            return False
        if kind == "import":
            return self._names.covers(name) and not self._allowed.reaches_into(name)
        if kind == "write":
            return self._writes.covers(name) or self._names.covers(name)
        return self._names.covers(name) or (kind == "call" and self._calls.covers(name))


def _ways(name: str) -> Iterator[str]:
    """A name and the shorter ways to the same thing: `pathlib.os.system` is `os.system`."""
    yield name
    parts = name.split(".")
    if parts[0] in _SYNONYMS:
        yield ".".join((_SYNONYMS[parts[0]], *parts[1:]))
    known = parts[0] in _STDLIB
    for at in range(1, len(parts) - 1):
        if parts[at] in _TELLING or (known and parts[at] in _STDLIB):
            yield ".".join((_SYNONYMS.get(parts[at], parts[at]), *parts[at + 1 :]))


class Dangerous:
    """Refuses newly introduced uses of what the policy calls dangerous: by all rules, or by those that ask a person."""

    def __init__(self, policy: Policy, *, asks_person: bool | None = None) -> None:
        bar = _ORDER.index(policy.deny_at)
        rules = [r for r in policy.dangers if asks_person is None or r.asks_person is asks_person]
        self._dangers = tuple(_Danger(r) for r in rules if _ORDER.index(r.severity) >= bar)
        self.name = "doubtful" if asks_person else "dangerous"
        self._answers: dict[tuple[NameUse, bool], tuple[_Danger, ...]] = {}
        self._own: frozenset[str] = frozenset()

    def review(self, change: GateInput) -> Decision:
        """Deny if a use that stands in the table occurs more often after than before.

        What the tree itself can import, as it stood before the patch, is its own: what that does is judged in it. Names
        of the standard library are nobody's own, nor is anything where a person is asked.
        """
        self._own = change.own_packages - _STDLIB
        regions = change.regions
        return decide(self.name, [finding for region in regions for finding in self._review(region, regions)])

    def _review(self, region: ChangedRegion, regions: tuple[ChangedRegion, ...]) -> Iterator[Finding]:
        others = [r.whole.after for r in regions if r.path == region.path] if len(regions) > 1 else []
        if not others and self._is_harmless(region):
            return
        outer = bindings_with(region.file, others) if others else module_bindings(region.file)
        before, after = region.whole
        uses = find_uses(after.tree, outer)
        if before is None:
            fresh = _mentioning(uses, _new_identifiers(region))
        else:
            fresh = _other_copies(before, after, _beyond(uses, within(region.file, before).uses))
        old = () if before is None else _strings_of(within(region.file, before).uses)
        plain: frozenset[int] | None = None
        for use, node in fresh:
            for danger in self._fired(use):
                if plain is None:
                    plain = plain_uses(after.nodes, region.file.source)
                if id(node) in plain:
                    continue
                if use.kind == "string" and any(danger.stood_in(text, use.name) for text in old):
                    continue
                yield _finding(danger.rule, region, node, use)

    def _is_harmless(self, region: ChangedRegion) -> bool:
        """True if nothing new and dangerous stands near the change, and what stands there decides nothing elsewhere."""
        before, after = region.near
        unit = region.before_whole
        if before is None or unit is None:
            return False
        known = within(region.file, unit)
        if known.by_text or _binds(before) != _binds(after):
            return False
        if "uses" not in before.memo:
            before.memo["uses"] = Counter(use for use, _ in known.find_uses(before.tree))
        fresh = _beyond(known.find_uses(after.tree), before.memo["uses"])
        return not any(self._fired(use) for use, _ in fresh)

    def _fired(self, use: NameUse) -> tuple[_Danger, ...]:
        """Every rule that forbids a use: one of them may be let be in tests where another is not."""
        mine = use.kind in _NAMED and use.name.partition(".")[0] in self._own
        if (use, mine) not in self._answers:
            if len(self._answers) > 50_000:
                self._answers.clear()
            fired = (d for d in self._dangers if d.fires(use, mine=mine and not d.rule.asks_person))
            self._answers[use, mine] = tuple(fired)
        return self._answers[use, mine]


def _finding(rule: DangerRule, region: ChangedRegion, node: ast.AST, use: NameUse) -> Finding:
    found = f"{'name' if use.kind == 'asked' else use.kind} {use.name}"
    return Finding(
        rule=rule.id,
        severity=rule.severity,
        path=region.path,
        line=region.whole.after.line_of(node),
        message=f"newly introduced {found}: {rule.why}",
        subject=found,
    )


def _strings_of(uses: Counter[NameUse]) -> tuple[str, ...]:
    return tuple(use.name for use in uses if use.kind == "string" and "\n" in use.name)


def _is_shortened(old: str, new: str) -> bool:
    """Whether two texts of several lines differ in comments alone, or in statements that were taken out of Python."""
    was, now = _statements(old), _statements(new)
    if was is not None and now is not None and len(was) > 1:
        rest = iter(was)
        return all(line in rest for line in now)
    kept, code = _without_comments(old), _without_comments(new)
    return len(kept) > 1 and kept == code


def _statements(text: str) -> list[str] | None:
    tree = parse_or_none(textwrap.dedent(text))
    return None if tree is None else ast.unparse(tree).split("\n")


def _without_comments(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip() and not re.match(r"\s*#(?!!)", line)]


def _beyond(uses: Iterator[tuple[NameUse, ast.AST]], before: Counter[NameUse]) -> Iterator[tuple[NameUse, ast.AST]]:
    """Uses beyond those that were there."""
    seen: Counter[NameUse] = Counter()
    for use, node in uses:
        seen[use] += 1
        if seen[use] > before[use]:
            yield use, node


def _other_copies(
    before: UnitSource, after: UnitSource, uses: Iterator[tuple[NameUse, ast.AST]]
) -> Iterator[tuple[NameUse, ast.AST]]:
    """Uses without copies of what was copied before, from and to the same places: they differ in times and modes."""
    same: set[int] | None = None
    for use, node in uses:
        copies = use.name in _COPIES or (use.kind == "method" and f"shutil.{use.name}" in _COPIES)
        if copies and same is None:
            known = {given for _, given in _copies(before)}
            same = {id(part) for call, given in _copies(after) if given in known for part in (call, call.func)}
        if not copies or same is None or id(node) not in same:
            yield use, node


def _copies(snippet: UnitSource) -> Iterator[tuple[ast.Call, str]]:
    """Calls that are written as copies of files, with what they are given."""
    for node in snippet.nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and ast.unparse(node.func) in _COPIES:
            yield node, ast.dump(ast.Call(func=ast.Constant(0), args=node.args, keywords=node.keywords))


def _mentioning(uses: Iterator[tuple[NameUse, ast.AST]], words: set[str]) -> Iterator[tuple[NameUse, ast.AST]]:
    return ((use, node) for use, node in uses if words & set(_WORD.findall(use.name)))


def _new_identifiers(region: ChangedRegion) -> set[str]:
    """Where the file did not parse: words that stand more often in its code than before, outside texts and comments."""
    before = region.file.source.decode(region.file.encoding or "utf-8", "replace")
    return set(_identifier_counts(region.whole.after.text) - _identifier_counts(before))


def _identifier_counts(text: str) -> Counter[str]:
    return Counter(_WORD.findall(_TEXTS.sub(" ", unicodedata.normalize("NFKC", text))))


def _binds(snippet: UnitSource) -> Counter[str]:
    """Every name that a snippet binds, in whatever way; counted once."""
    if "binds" in snippet.memo:
        kept: Counter[str] = snippet.memo["binds"]
        return kept
    found: Counter[str] = Counter()
    for node in snippet.nodes:
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load):
                found[node.id] += 1
        elif isinstance(node, _BINDING):
            found[ast.dump(node) if not isinstance(node, _DEFINITIONS) else f"{type(node).__name__} {node.name}"] += 1
    snippet.memo["binds"] = found
    return found
