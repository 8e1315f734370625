"""What the gates of patches ask of a change made for an instruction, and which questions the instruction answers.

The policy's section `[instruction]` says which files may change, how much, and which rules that ask what a change means
are answered by somebody having asked for it. Nothing that a rule refuses outright is ever answered, and neither is what
guards accounts, money, keys or deployments. Some questions are answered only where the change is what the words of the
instruction name: a test that differs by a named rename, a line of dependencies all of whose words were said.
"""

import ast
import builtins
import configparser
import difflib
import keyword
import re
import tomllib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pathspec

from localagent.code.names import callee_name, dotted_name
from localagent.code.source_text import parse_or_none
from localagent.code.spans import Function, first_line, last_line, lines_of
from localagent.domain.diff import ChangeKind, TreeChange
from localagent.domain.gate import Allow, Decision, Finding
from localagent.domain.paths import RepoPath
from localagent.domain.policy import InstructionRules, Permission, Policy
from localagent.gate import instructed_uses
from localagent.gate.assumed_answers import is_assumed
from localagent.gate.constant_queries import is_of_constants
from localagent.gate.files import critical_paths, patch_paths
from localagent.gate.files.editable_paths import NOT_IN_TREE
from localagent.gate.instructed_tests import is_change_asked, is_change_stated, is_stated
from localagent.gate.tests import side_effects, tamper_rules
from localagent.gate.tests.removed_features import USE
from localagent.gate.tests.replacements import stated
from localagent.text.visible_text import shortened

_NO_SECTION = (
    "the policy has no section [instruction], so a change for an instruction may be what a repair may be: no file "
    "comes or goes, and no test changes (docs/policy.md)"
)
_OPENERS = frozenset({"open", "Path", "PurePath", "pathlib", "os", "shutil", "io", "codecs", "tempfile", "sqlite3"})
_AWAY = re.compile(r"/(?!dev/null$)[\w.~-]+|~|(?:.*/)?\.\.(?:/|$)")
_WRITERS = frozenset({"write_text", "write_bytes", "symlink_to", "hardlink_to"})
_WORD = re.compile(r"\w+")
_NO_NAMES = frozenset({*keyword.kwlist, *dir(builtins)})
_PIECE = re.compile(r"\w+|\W+")
_TERM = re.compile(r"\d+(?:\.\d+)+|\w+")  # 0.9.1 is one
_TAKES_AWAY = re.compile(r"\b(?:remov|delet|drop|retir|get rid|take out|no longer|nobody)", re.IGNORECASE)
_PYPROJECT = "pyproject.toml"
_REPORTS = frozenset({"exception", "print_exc", "format_exc", "print_exception", "format_exception"})
_ALL_CAUGHT = re.compile(r"\bExceptions?\b|(?i:\b(?:any|every|all|whatever|no)(?: kinds? of)? (?:exception|error)s?\b)")
_SETUP_CFG, _TOX = "setup.cfg", "tox.ini"
_NOT_BY_CONTENT = frozenset(r.id for module in (critical_paths, patch_paths, tamper_rules) for r in module.RULES)
_REQUIREMENTS = re.compile(r"(?:[\w.-]*-)?requirements(?:-[\w.-]*)?\.(?:txt|in)")
_ENVIRONMENTS = re.compile(r"\{[\w,.]*\}")
_LETS_THROUGH = frozenset(
    {"guard-gone", "condition-widened", "asks-less", "done-less", "steering-changed", "compares-looser", "check-gone"}
)
_TURNED_AWAY = re.compile(r"\b40[13]\b|(?i:unauthori[sz]ed|forbidden|permission|access_?denied|not_?authenticated)")
_ABOUT_ACCESS = re.compile(
    r"\b(?:auth|tokens?\b|log(?:ged)?[ -]?in\b|sign(?:ed)? ?in|permission|access|credential|40[13]\b|roles?\b|admin"
    r"|anonym|public|forbid|refus|allow|session)",
    re.IGNORECASE,
)
_MIGRATIONS = re.compile(r"_?(?:(?:db|schema|database)_)?migrations? is critical by its name$", re.IGNORECASE)
_ABOUT_TYPES = re.compile(r"\b(?:typ(?:e|es|ed|ing)|annotat\w*|generic|mypy|pyright)\b", re.IGNORECASE)
_ONE_TYPE_EXCUSED = re.compile(rb"#\s*type:\s*ignore\[[a-z-]+\]\s*$")
_ARGUMENT_GONE = re.compile(r"(\S+)\(\u2026 (\w+)=\) is gone$")
_ABOUT_DEPENDENCIES = re.compile(
    r"(?i)\bdependenc|\brequir\w*\b|\bentry[- ]points?\b|\bpins?\b|\bpython 3\b|\bextras?\b"
)
_OF_PROJECTS = frozenset(
    {"project", "optional", "dependencies", "scripts", "requires", "python", "groups", "dependency"}
)
_WEAKNESSES_NAMED = {"B314": r"\b(?:xml|rss|atom|svg|opml|gpx|feeds?)\b", "B324": r"\bsha-?1\b|\bmd5\b"}
_STEM = 4  # letters of a word, which are compared
_RUNS_TESTS = ("pytest", "coverage", "tox", "nox", "hatch", "pdm", "poetry")


def instructed(policy: Policy) -> Policy:
    """The policy for patches as it holds for a change made for an instruction; tests are never made weaker."""
    rules = policy.instruction
    if rules is None:
        patches = replace(
            policy.patches,
            editable=policy.paths.editable,
            narrowed=(*policy.patches.narrowed, *policy.paths.narrowed),
            denied=(*policy.patches.denied, *policy.paths.denied),
            tests=Permission.DENY,
            weaker_tests=Permission.DENY,
            size=policy.size,
        )
        return replace(policy, patches=patches)
    patches = replace(
        policy.patches,
        editable=rules.editable,
        narrowed=rules.narrowed,
        denied=(*policy.patches.denied, *rules.denied),
        critical=(*policy.patches.critical, *rules.critical),
        tests=policy.patches.tests if rules.new_tests is Permission.ALLOW else Permission.DENY,
        weaker_tests=Permission.DENY,
        size=rules.size,
    )
    return replace(policy, patches=patches)


def for_instruction(
    decisions: Sequence[Decision],
    entries: Sequence[TreeChange],
    instruction: str,
    policy: Policy,
    assumed: Collection[str] = (),
) -> list[Decision]:
    """What stands against a change that was made for an instruction, of what the gates decided on it and beside it.

    `assumed`: rules of whose questions some are answered by nobody wanting to be asked.
    """
    return [
        *_not_allowed_at_all(entries, policy.instruction),
        *_outside(entries, policy),
        *answered(decisions, entries, instruction, policy.instruction, assumed),
    ]


def _not_allowed_at_all(entries: Sequence[TreeChange], rules: InstructionRules | None) -> list[Decision]:
    """A refusal where files come or go under a policy without the section."""
    new = [e for e in entries if e.kind is not ChangeKind.MODIFIED] if rules is None else []
    findings = tuple(NOT_IN_TREE.finding(e.path, 0, _NO_SECTION) for e in new)
    return [Decision(gate="instruction", answer=Allow.DENY, findings=findings)] if new else []


def _outside(entries: Sequence[TreeChange], policy: Policy) -> list[Decision]:
    """Tests that newly open or change what lies outside of the repository: tests may write files, but not anywhere."""
    tests = pathspec.GitIgnoreSpec.from_lines([p.lower() for p in policy.paths.tests])
    found = []
    for entry in entries:
        if entry.path.is_python and tests.match_file(entry.path.replace("\n", " ").lower()):
            stood = {text for text, _ in _paths_opened(entry.before)}
            found += [
                side_effects.DESTROYS.finding(
                    entry.path, line, f"a test reaches for {shortened(text, 60)!r}, outside the repository"
                )
                for text, line in _paths_opened(entry.after)
                if text not in stood
            ]
            wrote = {ast.dump(node) for node in _writes_beside_code(entry.before)}
            found += [
                side_effects.DESTROYS.finding(
                    entry.path, node.lineno, "a test writes beside code, where it was found by __file__"
                )
                for node in _writes_beside_code(entry.after)
                if ast.dump(node) not in wrote
            ]
    return [Decision(gate="instruction", answer=Allow.DENY, findings=tuple(found))] if found else []


def _paths_opened(source: bytes) -> Iterator[tuple[str, int]]:
    """(path, line) of absolute paths, home folders and ways up that are given to what opens or changes files."""
    tree = parse_or_none(source)
    for node in ast.walk(tree) if tree is not None else ():
        if not isinstance(node, ast.Call) or dotted_name(node.func).split(".")[0] not in _OPENERS:
            continue
        for part in (inner for argument in node.args for inner in ast.walk(argument)):
            if isinstance(part, ast.Constant) and isinstance(part.value, str) and _AWAY.match(part.value):
                yield part.value, node.lineno


def _writes_beside_code(source: bytes) -> Iterator[ast.Call]:
    """Calls that write to a path made of some `__file__`, or of a name that is set to one."""
    tree = parse_or_none(source)
    nodes = list(ast.walk(tree)) if tree is not None else []
    derived: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Assign) and _mentions(node.value, derived):
            derived |= {t.id for t in node.targets if isinstance(t, ast.Name)}
    for node in nodes:
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Attribute) and node.func.attr in _WRITERS and _mentions(node.func.value, derived):
            yield node
        modes = [a.value for a in (*node.args[:2], *(k.value for k in node.keywords)) if isinstance(a, ast.Constant)]
        writes = any(isinstance(m, str) and len(m) <= 3 and {*m} & {*"wax+"} for m in modes)
        if writes and dotted_name(node.func).rpartition(".")[2] == "open" and _mentions(node, derived):
            yield node


def _mentions(node: ast.AST, derived: Collection[str]) -> bool:
    names = (getattr(n, "id", None) or getattr(n, "attr", None) for n in ast.walk(node))
    return any(name == "__file__" or name in derived for name in names)


def answered(
    decisions: Sequence[Decision],
    entries: Sequence[TreeChange],
    instruction: str,
    rules: InstructionRules | None,
    assumed: Collection[str] = (),
) -> list[Decision]:
    """The decisions without the findings that the instruction answers, or that are `assumed`."""
    if rules is None:
        return list(decisions)
    asked = _InstructionContext(
        instruction=instruction, rules=rules, entries={e.path: e for e in entries}, assumed=assumed
    )
    found = []
    for decision in decisions:
        kept = tuple(f for f in decision.findings if not (asked.answers(f) or asked.is_moved(f)))
        allowed = decision.answer is Allow.DENY and bool(decision.findings) and not kept
        found.append(replace(decision, answer=Allow.ALLOW if allowed else decision.answer, findings=kept))
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class _InstructionContext:
    """What was instructed, and for which changes."""

    instruction: str
    rules: InstructionRules
    entries: Mapping[RepoPath, TreeChange]
    assumed: Collection[str] = ()

    def answers(self, finding: Finding) -> bool:
        """Whether the instruction says what a finding asks."""
        if finding.rule not in self.rules.answered or finding.path is None:
            return False
        entry = self.entries.get(finding.path)
        rule = finding.rule
        assumed = rule in self.assumed and entry is not None and is_assumed(finding, entry, self.instruction)
        opens = (rule in _LETS_THROUGH or assumed) and not _ABOUT_ACCESS.search(self.instruction)
        if opens and entry is not None and _guards_access(entry, finding):
            return False
        return assumed or self._says(finding, finding.path, entry)

    def _says(self, finding: Finding, path: RepoPath, entry: TreeChange | None) -> bool:
        """Whether the words of the instruction answer a finding."""
        match finding.rule:
            case "broad-except" | "bare-except" | "broad-except-at-times":
                return entry is not None and _keeps_fault(entry.after, finding.line, self.instruction)
            case "test-changed" | "test-fixture-changed":
                return entry is not None and (
                    is_named_rename(entry.before, entry.after, self.instruction)
                    or _is_named_rename_at(entry.before, entry.after, finding.line, self.instruction)
                    or is_change_stated(entry, finding.line, [*self.entries.values()], self.instruction)
                    or is_change_asked(entry, finding.line, self.instruction)
                )
            case "protection-dropped":
                return entry is not None and _is_argument_renamed(finding.message, entry.after, self.instruction)
            case "critical-code":
                migrates = _MIGRATIONS.match(finding.message) is not None
                return migrates and re.search(r"\b(?i:migrat)", self.instruction) is not None
            case "bandit" if any(
                test in finding.message and re.search(words, self.instruction, re.IGNORECASE)
                for test, words in _WEAKNESSES_NAMED.items()
            ):
                return True
            case "bandit" | "query-built":
                tree = parse_or_none(entry.after) if entry is not None else None
                query = finding.rule == "query-built" or "B608" in finding.message
                return query and tree is not None and is_of_constants(tree, finding.line)
            case "excuse-added":
                typed = entry is not None and _excuses_one_type(entry.after, finding.line)
                return typed and _ABOUT_TYPES.search(self.instruction) is not None
            case "guard-gone":
                where = finding.message.partition(":")[0]
                return self._speaks_of(where, path, _lost_guards([*self.entries.values()], path))
            case "test-gone-with-feature":
                name = finding.subject.removeprefix(USE)
                needs_name = name.startswith(("-", "/")) or name != finding.subject
                said = not needs_name or is_stated(name.strip("_"), self.instruction)
                return said and _TAKES_AWAY.search(self.instruction) is not None
            case "dependency-edit" | "test-configuration":
                return entry is not None and self._spelled_out(entry)
            case rule if rule in instructed_uses.RULES:
                return entry is not None and (
                    instructed_uses.is_use_asked_for(finding, entry.path, entry.before, entry.after, self.instruction)
                    or (rule == "runs-unasked" and _was_called_otherwise(entry, finding.line, self.instruction))
                )
        return True

    def _speaks_of(self, where: str, path: RepoPath, guards: Sequence[ast.Raise | ast.Assert]) -> bool:
        """Whether the instruction names the place or the file that loses guards, or a word or class of what they say.

        Tests seldom reach what a guard keeps out, so nothing else would tell one that nobody asked to go.
        """
        words = {*_WORD.findall(self.instruction)}
        if not guards or words & {*where.split("."), path.name.partition(".")[0]}:
            return True
        stems = {word.lower()[:_STEM] for word in words if len(word) >= _STEM}
        nodes = [node for guard in guards for node in ast.walk(guard)]
        said = [n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        told = {w.lower()[:_STEM] for text in said for w in _WORD.findall(text) if len(w) >= _STEM}
        return bool(stems & told) or bool(
            words & {n.id for n in nodes if isinstance(n, ast.Name) and n.id[0].isupper()}
        )

    def is_moved(self, finding: Finding) -> bool:
        """Whether a finding is of a statement of a module that stood word for word in another file, and went there."""
        entry = self.entries.get(finding.path) if finding.path is not None else None
        if entry is None or not finding.line or finding.rule in _NOT_BY_CONTENT:
            return False
        at = [s for s in _statements(entry.after) if first_line(s) <= finding.line <= last_line(s)]
        if len(at) != 1:
            return False
        moved = ast.dump(at[0])
        others = (e for e in self.entries.values() if e.path != entry.path and e.path.is_python)
        return any(
            moved in map(ast.dump, _statements(e.before)) and moved not in map(ast.dump, _statements(e.after))
            for e in others
        )

    def _spelled_out(self, entry: TreeChange) -> bool:
        """Whether the file, or what it is for, is named, and no term of its new lines is new to it and to that."""
        named = entry.path.name in self.instruction or _ABOUT_DEPENDENCIES.search(self.instruction) is not None
        if entry.kind is not ChangeKind.MODIFIED or not named:
            return False
        if entry.path.name == _PYPROJECT and not _runs_alike(entry.before, entry.after):
            return False
        if entry.path.name == _SETUP_CFG and not _is_described_alone(entry.before, entry.after):
            return False
        if entry.path.name == _TOX and not _runs_less(entry.before, entry.after):
            return False
        before, after = _lines(entry.before), _lines(entry.after)
        new = [x[2:] for x in difflib.ndiff(before, after) if x.startswith("+ ")]
        known = {*_TERM.findall(self.instruction), *_TERM.findall("\n".join(before)), *_OF_PROJECTS}
        name = entry.path.name
        listed = name in (_PYPROJECT, _SETUP_CFG, _TOX, "README.md") or _REQUIREMENTS.fullmatch(name) is not None
        return listed and all(term in known for line in new for term in _TERM.findall(line))


def _excuses_one_type(source: bytes, line: int) -> bool:
    """Whether a line ends in `# type: ignore[code]`, which hides one finding of a type checker and nothing else."""
    lines = source.split(b"\n")
    return 0 < line <= len(lines) and _ONE_TYPE_EXCUSED.search(lines[line - 1]) is not None


def _is_argument_renamed(message: str, source: bytes, instruction: str) -> bool:
    """Whether each call that lost an argument is given the one that the instruction renames it to."""
    found = _ARGUMENT_GONE.search(message)
    tree = parse_or_none(source)
    if found is None or tree is None:
        return False
    called, lost = found[1].rpartition(".")[2], found[2]
    new = {r.new for r in stated(instruction) if r.old == lost}
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and callee_name(n) == called]
    return bool(calls) and all(new & {k.arg for k in call.keywords} for call in calls)


def _lost_guards(entries: Sequence[TreeChange], path: RepoPath) -> list[ast.Raise | ast.Assert]:
    """What raises or asserts in a file no more, nor in another one instead."""
    before = [node for e in entries if e.path == path for node in _guards_of(e.before)]
    stand = Counter(ast.dump(node) for e in entries for node in _guards_of(e.after))
    for e in entries:
        stand.subtract(ast.dump(node) for node in (_guards_of(e.before) if e.path != path else ()))
    lost = []
    for node in before:
        stand[ast.dump(node)] -= 1
        if stand[ast.dump(node)] < 0:
            lost.append(node)
    return lost


def _guards_of(source: bytes) -> list[ast.Raise | ast.Assert]:
    tree = parse_or_none(source)
    return [n for n in ast.walk(tree) if isinstance(n, ast.Raise | ast.Assert)] if tree is not None else []


def _guards_access(entry: TreeChange, finding: Finding) -> bool:
    """Whether a finding is of a function that turns people away, or says the name of one of its file that does."""
    tree = parse_or_none(entry.before)
    functions = [n for n in ast.walk(tree or ast.Module([], [])) if isinstance(n, Function)]
    refusing = {f.name for f in functions if any(_turns_away(n) for n in ast.walk(f))}
    _, at = _function_at(entry.before, entry.after, finding.line)
    called = re.findall(r"(\w+)\(", finding.message)
    return bool(refusing & ({at.name} if at is not None else set())) or bool(refusing.intersection(called))


def _turns_away(node: ast.AST) -> bool:
    """`raise HTTPError(403)`, `abort(401)`, `raise PermissionError`."""
    if isinstance(node, ast.Call) and callee_name(node.func) in ("abort", "fail", "error", "send_error"):
        return any(isinstance(a, ast.Constant) and a.value in (401, 403) for a in node.args)
    return isinstance(node, ast.Raise) and _TURNED_AWAY.search(ast.unparse(node)) is not None


def _statements(source: bytes) -> list[ast.stmt]:
    tree = parse_or_none(source)
    return tree.body if tree is not None else []


def _lines(data: bytes) -> list[str]:
    return data.decode("utf-8", "replace").splitlines()


def _runs_alike(before: bytes, after: bytes) -> bool:
    """Whether a pyproject.toml builds, tests and starts as before: only what it says of the project differs."""
    old, new = _toml(before), _toml(after)
    if old is None or new is None:
        return False
    tools = [{k: v for k, v in t.get("tool", {}).items() if k in (*_RUNS_TESTS, "localagent")} for t in (old, new)]
    return tools[0] == tools[1] and old.get("build-system") == new.get("build-system")


def _is_described_alone(before: bytes, after: bytes) -> bool:
    """Whether a setup.cfg differs in what it says of the project alone: not in how it is built, tested or started."""
    old, new = _ini(before), _ini(after)
    if old is None or new is None:
        return False
    told = ("metadata", "options", "options.extras_require")
    return {s: v for s, v in old.items() if s not in told} == {s: v for s, v in new.items() if s not in told}


def _runs_less(before: bytes, after: bytes) -> bool:
    """Whether a tox.ini differs by lines and environments that went, no command of a section being the last one."""
    old, new = _ini(before), _ini(after)
    if old is None or new is None or any(old.get(s) != new.get(s) for s in ("pytest", "coverage:run")):
        return False
    for section, key, value in ((s, k, v) for s, values in new.items() for k, v in values.items()):
        had = {_ENVIRONMENTS.sub("", x) for x in old.get(section, {}).get(key, "").splitlines()}
        left = {_ENVIRONMENTS.sub("", x) for x in value.splitlines()}
        if not left <= had or ("commands" in key and not left):
            return False
    return all("commands" in new[s] for s in new if "commands" in old.get(s, {}))


def _ini(data: bytes) -> dict[str, dict[str, str]] | None:
    parser = configparser.RawConfigParser(strict=True)
    try:
        parser.read_string(data.decode())
    except (configparser.Error, UnicodeDecodeError):
        return None
    return {s: dict(parser[s]) for s in parser.sections()}


def _toml(data: bytes) -> dict[str, Any] | None:
    try:
        return tomllib.loads(data.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError):
        return None


def is_named_rename(before: bytes, after: bytes, instruction: str) -> bool:
    """Whether two texts are one but for a name that became another, both of which the instruction names.

    A name that was not there, else an expectation could become another one that stands beside it. The old one may have
    stayed in other places.
    """
    old, new = (_PIECE.findall(text.decode("utf-8", "replace")) for text in (before, after))
    if len(old) != len(new):
        return False
    names = {*re.findall(r"[A-Za-z_]\w{2,}", instruction)} - _NO_NAMES
    changed = {(a, b) for a, b in zip(old, new, strict=True) if a != b}
    return len(changed) == 1 and all(a in names and b in names and b not in old for a, b in changed)


def _is_named_rename_at(before: bytes, after: bytes, line: int, instruction: str) -> bool:
    """Whether the one function of its name around a line differs by a named rename, whatever else the file gained."""
    old, new = _function_at(before, after, line)
    texts = ["\n".join(_lines(s)[lines_of(f)[0] - 1 : lines_of(f)[-1]]) for s, f in ((before, old), (after, new)) if f]
    return len(texts) == 2 and is_named_rename(texts[0].encode(), texts[1].encode(), instruction)


def _function_at(before: bytes, after: bytes, line: int) -> tuple[Function | None, Function | None]:
    """The function around a line of `after`, and the one of its name before; None where there is none, or several."""
    sides = []
    at = ""
    for text in (before, after):
        tree, found = parse_or_none(text), dict[str, list[Function]]()
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found.setdefault(node.name, []).append(node)
                at = node.name if text is after and line in lines_of(node) else at
        sides.append(found)
    old, new = (found.get(at, []) for found in sides)
    return (old[0], new[0]) if len(old) == len(new) == 1 else (None, None)


def _was_called_otherwise(entry: TreeChange, line: int, instruction: str) -> bool:
    """Whether the statement of a module at a line stood there before but for a name that became another one."""
    at = [ast.unparse(s).encode() for s in _statements(entry.after) if line in lines_of(s)]
    stood = (ast.unparse(s).encode() for s in _statements(entry.before))
    return len(at) == 1 and any(is_named_rename(text, at[0], instruction) for text in stood)


def _keeps_fault(source: bytes, line: int, instruction: str) -> bool:
    """Whether the handler at a line does something with what it caught, or the instruction says that all is caught."""
    tree = parse_or_none(source)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.ExceptHandler) and line in lines_of(node):
            inside = [n for s in node.body for n in ast.walk(s)]
            if any(isinstance(n, ast.Name) and n.id == node.name for n in inside if node.name):
                return True
            if any(isinstance(n, ast.Call) and _is_report(n) for n in inside):
                return True
            named = isinstance(node.type, ast.Name) and node.type.id == "Exception"
            if named and _ALL_CAUGHT.search(instruction) is not None:
                return True
    return False


def _is_report(call: ast.Call) -> bool:
    """`log.exception("...")`, `log.error("...", exc_info=True)`, `traceback.print_exc()`."""
    told = any(k.arg == "exc_info" and isinstance(k.value, ast.Constant) and k.value.value for k in call.keywords)
    return told or (isinstance(call.func, ast.Attribute) and call.func.attr in _REPORTS)
