"""Gates: files and code that a person must look at whatever the change is, and dependencies.

A repair of such a file is found and proven like any other, and then kept as a proposal until a person approves it.
"""

import ast
import fnmatch
import re
from collections import Counter
from collections.abc import Iterator

import pathspec

from localagent.code.bindings import Bindings
from localagent.code.name_uses import find_uses, module_bindings
from localagent.code.names import last_name
from localagent.code.regions import DoesNotParse, SourceFile, decode_source, parse, walk
from localagent.code.spans import Definition, first_line, last_line
from localagent.domain.edit import FileChange
from localagent.domain.gate import Decision, Finding
from localagent.domain.paths import RepoPath
from localagent.domain.policy import PatchRules, Permission, Policy
from localagent.gate.core.gate_input import GateInput, ReplacedBytes
from localagent.gate.core.rule import RuleExample, became, decide, question
from localagent.gate.review.routine_changes import is_routine
from localagent.gate.security.forbidden_apis import Matcher
from localagent.text.confusable_letters import as_read

# Code that is critical by what it is: by the names of what is changed, and by what that uses. Wherever its file lies.
#
# Judges the functions and classes around a change, and the variables that changed lines set. Not seen: critical code
# whose names say nothing and that uses nothing but what every code uses.


class CriticalCode:
    """What a policy calls critical code."""

    def __init__(self, rules: PatchRules) -> None:
        self._names = re.compile("|".join(map(fnmatch.translate, rules.critical_names)) or r"(?!)", re.IGNORECASE)
        self._uses = Matcher(rules.critical_uses)

    def touched(self, file: FileChange, spans: list[ReplacedBytes]) -> Iterator[tuple[int, str]]:
        """(line, why) for each critical part that changed, before or after; a source that does not parse has none."""
        grown = 0
        told: set[str] = set()
        ranges: list[tuple[bytes, int, int]] = []
        before, after = _assigned(file.before), _assigned(file.after)
        stay = frozenset(one for one, count in before.items() if after[one] == count)
        for span in spans:
            ranges.append((file.before, span.start, span.end))
            ranges.append((file.after, span.start + grown, span.start + grown + len(span.text)))
            grown += len(span.text) - (span.end - span.start)
        for data, start, end in ranges:
            first = data.count(b"\n", 0, start) + 1
            last = first + data.count(b"\n", start, max(start, end - 1))
            for line, why in self._within(data, first, last, stay):
                if why not in told:
                    told.add(why)
                    yield line, why

    def _within(self, data: bytes, first: int, last: int, stay: frozenset[str]) -> Iterator[tuple[int, str]]:
        try:
            tree = parse(decode_source(data))
        except DoesNotParse:
            return
        outer: Bindings | None = None
        for statement in _statements(tree.body, first, last):
            for name in _named(statement, first, last, stay):
                if self._names.match(name):
                    yield first, f"{name} is critical by its name"
            part = ast.Module(body=[statement], type_ignores=[])
            outer = outer or module_bindings(SourceFile(data))
            for use, _ in find_uses(part, outer):
                if use.kind in ("name", "call", "import") and self._uses.covers(use.name):
                    yield first, f"what is changed uses {use.name}"


def _statements(body: list[ast.stmt], first: int, last: int) -> Iterator[ast.stmt]:
    """The functions, and the statements outside of functions, that some lines lie in."""
    for node in body:
        if first_line(node) > last or last_line(node) < first:
            continue
        if isinstance(node, ast.ClassDef):
            head = ast.ClassDef(
                name=node.name, bases=node.bases, keywords=node.keywords, body=[], decorator_list=node.decorator_list,
                lineno=node.lineno, col_offset=0, end_lineno=last_line(node),
            )  # fmt: skip
            yield head
            yield from _statements(node.body, first, last)
        else:
            yield node


def _assigned(data: bytes) -> Counter[str]:
    """The assignments of a source, whole; none where it does not parse."""
    try:
        tree = parse(decode_source(data))
    except DoesNotParse:
        return Counter()
    return Counter(ast.dump(n) for n in walk(tree) if isinstance(n, ast.Assign | ast.AnnAssign | ast.AugAssign))


def _named(node: ast.AST, first: int, last: int, stay: frozenset[str]) -> Iterator[str]:
    """The scopes of a statement that some lines lie in, and what is bound in them otherwise than it was (`stay`)."""
    for inner in walk(node):
        if isinstance(inner, Definition):
            if inner.lineno <= last and last_line(inner) >= first:
                yield inner.name
        elif isinstance(inner, ast.Assign | ast.AnnAssign | ast.AugAssign) and first <= inner.lineno <= last:
            targets = inner.targets if isinstance(inner, ast.Assign) else [inner.target]
            for target in targets if ast.dump(inner) not in stay else []:
                yield last_name(target)


_VERIFY = "def verify_password(a, b):\n    return a == b\n"
_MAC = "import hmac\n\n\ndef f(a, b):\n    return hmac.new(b'', b, 'sha256')\n"
_SOME = {"before": "x = 1\n", "after": "x = 2\n"}

CRITICAL = question(
    id="critical-file",
    why="what guards accounts, money, keys, data or deployments is changed",
    remedy="have somebody who owns that code read the change",
    match=tuple(
        RuleExample(path=path, **_SOME)
        for path in (
            "app/auth/tokens.py",
            "app/payment_gateway.py",
            "app/migrations/0002_add.py",
            "deploy/run.py",
            "Setup.py",
            "app/m\u0131grations/a.py",
            ".github/scripts/a.py",
            ".github/workflows/a.yml",
            "scripts/ci.py",
            "docker/entrypoint.py",
            "gunicorn.conf.py",
            "k8s/a.py",
            "infra/terraform.py",
            "db/versions/a.py",
            "db/migrations/a.sql",
            "pkg/acl.py",
            "pkg/rbac.py",
            "pkg/wallet.py",
            "pkg/checkout.py",
            "pkg/keys.py",
            "Dockerfile",
            "scripts/run.sh",
            "LICENSE",
            "pkg.dist-info/entry_points.txt",
        )
    ),
    not_match=(
        RuleExample(**_SOME),
        RuleExample(path="app/author.py", **_SOME),
        RuleExample(path="pkg/keyset.py", **_SOME),
        RuleExample(path="pkg/versions/a.py", **_SOME),
        RuleExample(path="setup.py", before="setup(version='1.0')\n", after="setup(version='1.1')\n"),
        RuleExample(path="app/auth/tokens.py", before="f(1)\n", after="f(1)  # once\n"),
        RuleExample(path="app/auth/tokens.py", before="print('a')\n", after="print('b')\n"),
    ),
)
DEPENDENCY = question(
    id="dependency-edit",
    why="a dependency brings code that the patch does not show",
    remedy="have a person check what comes in, and from where",
    match=tuple(
        RuleExample(path=path, before="a==1\n", after=after)
        for path, after in (
            ("requirements.txt", "a==1\nb==2\n"),
            ("requirements/dev.txt", "a==1\nb==2\n"),
            ("poetry.lock", "a==1\nb==2\n"),
            ("constraints.txt", "a==1\nb==2\n"),
            ("deps/base.txt", "a==1\nevil\n"),
            ("lists/base.txt", "a==1\nevil\n"),
        )
    )
    + tuple(
        RuleExample(path="setup.py", before=f"X = {{{old}}}\n", after=f"X = {{{new}}}\n")
        for old, new in (
            ("'docs': ['a==7.0.1']", "'docs': ['a==6.9']"),
            ("'docs': ['a==7.0.1']", "'docs': ['a==8.0']"),
            ("'docs': ['a==7.0.1']", "'docs': ['aa==7.0.2']"),
            ("'docs': ['a==7.0.1']", "'docs': ['a']"),
            ("'docs': ['a==7.0.1']", "'docs': ['a==7.0.1', 'b==1']"),
            ("'web': ['a==7.0.1']", "'web': ['a==7.0.2']"),
        )
    )
    + (RuleExample(path="README.md", before="# A\n", after="# A\n\npip install aa\n"),),
    not_match=(
        RuleExample(path="docs/list.txt", **_SOME),
        RuleExample(path="docs/list.txt", before="apples\npears\n", after="apples\npears\nplums\n"),
        RuleExample(path="setup.py", before="X = {'docs': ['a==7.0.1']}\n", after="X = {'docs': ['a==7.1.0']}\n"),
        RuleExample(path="src/constraints/union.py", before="x = f(1)\n", after="x = f(2)\n"),
        RuleExample(path="src/requirements.py", before="x = f(1)\n", after="x = f(2)\n"),
    ),
)
CODE = question(
    id="critical-code",
    why="code that guards accounts, money, keys or data is changed, wherever it lies",
    remedy="have somebody who owns that code read the change",
    match=(
        became(_VERIFY, _VERIFY.replace("a == b", "a == b or not a")),
        became("def is_admin(user):\n    return user.old\n", "def is_admin(user):\n    return user\n"),
        became("import hmac\n\n\ndef f(a, b):\n    return hmac.new(a, b, 'sha256')\n", _MAC),
        became("PASSWORD_ROUNDS = 200_000\nx = 1\n", "PASSWORD_ROUNDS = 100_000\nx = 1\n"),
        became(
            "from alembic import op\n\n\ndef run():\n    op.add(1)\n",
            "from alembic import op\n\n\ndef run():\n    op.add(2)\n",
        ),
    ),
    not_match=(
        became(_VERIFY + "\n\ndef f(x):\n    return x\n", _VERIFY + "\n\ndef f(x):\n    return -x\n"),
        RuleExample(path="tests/test_it.py", before=_VERIFY, after=_VERIFY.replace("a == b", "b == a")),
        RuleExample(**_SOME),
    ),
)
RULES = (CRITICAL, CODE, DEPENDENCY)


_REQUIREMENT = re.compile(
    rb"(?m)^\s*[A-Za-z0-9][\w.-]*(?:\[[\w,. -]+\])?\s*(?:(?:===?|>=|~=|<=|!=)\s*\d|@\s*\w+[+:])"
    rb"|^-(?:r|e|-index-url|-extra-index-url|-find-links)\b"
)
_BARE = re.compile(rb"(?m)^\s*[A-Za-z0-9][\w.-]*(?:\[[\w,. -]+\])?[ \t]*(?:[;#].*)?\r?$")
_AMONG_DEPENDENCIES = re.compile(
    r"(?i)(?:^|/)(?:deps|dependencies|requires?|pip|packages)/[^/]+$|(?:^|/)(?:deps|dependencies|requires?)[\w.-]*\."
)
_SCRIPT = re.compile(rb"(?m)^#\s*///\s*script|^#\s*(?:dependencies|requires-python)\s*=|^\s*__requires__\s*=")


_INSTALL = re.compile(
    rb"(?im)(?:pip[x3]?|uv|uv pip|poetry|conda|npm|apt(?:-get)?|brew|gem|cargo)\s+(?:install|add)\s+\S+"
    rb"|(?:curl|wget)\b[^\n|]{0,200}\|\s*(?:sudo\s+)?(?:ba|z|da)?sh\b|--(?:extra-)?index-url\b|\bnpx\s+\S+"
)


def _lists_packages(file: FileChange) -> bool:
    """Whether a text is a list of requirements: by where it lies, or by the lines that name versions."""
    return _AMONG_DEPENDENCIES.search(file.path) is not None or _REQUIREMENT.search(file.before) is not None


def _as_named(path: RepoPath) -> set[str]:
    """The ways in which a pattern may know a path: in small letters, and as a person reads it."""
    plain = path.replace("\n", " ")
    return {plain.lower(), as_read(plain)}


def _installs(change: GateInput) -> Iterator[Finding]:
    """What texts for people newly tell them to install, or to run from elsewhere."""
    for file in change.changes:
        if file.path.is_python:
            continue
        for touched in change.touched[file.path]:
            for hit in _INSTALL.finditer(touched.new):
                if hit[0] not in file.before:
                    line = touched.line + touched.new.count(b"\n", 0, hit.start())
                    shown = hit[0][:60].decode("utf-8", "replace")
                    yield DEPENDENCY.finding(file.path, line, f"people are told: {shown!a}")


def _depends(change: GateInput) -> Iterator[Finding]:
    """Lines that name what is depended on, in whatever file; prose is told by its sentences."""
    for file in change.changes:
        kind = file.path.rpartition(".")[2].lower()
        wanted = _SCRIPT if file.path.is_python else _REQUIREMENT if kind in ("txt", "in", "pip", "list") else None
        for touched in change.touched[file.path] if wanted is not None else ():
            hit = wanted.search(touched.new) if wanted is not None else None
            if hit is None and wanted is _REQUIREMENT and _lists_packages(file):
                hit = _BARE.search(touched.new)
            if hit is not None:
                line = touched.line + touched.new.count(b"\n", 0, hit.start())
                yield DEPENDENCY.finding(file.path, line, f"a line that says what {file.path} depends on")
                break


class Critical:
    """Asks a person where the policy names files or code as critical, or a file as one of dependencies."""

    name = "critical"

    def __init__(self, policy: Policy) -> None:
        self._rules = tuple(
            (rule, pathspec.GitIgnoreSpec.from_lines([p.lower() for p in patterns]), key)
            for rule, patterns, key in (
                (CRITICAL, policy.patches.critical, "critical"),
                (DEPENDENCY, policy.patches.dependencies, "dependencies"),
            )
        )
        self._code = CriticalCode(policy.patches)
        self._routine = policy.patches.routine is Permission.ALLOW
        self._tests = pathspec.GitIgnoreSpec.from_lines([p.lower() for p in policy.patches.lenient])

    def review(self, change: GateInput) -> Decision:
        """Deny if any path, before or after, is named, or what changes is critical code; tests are none."""
        routine = {file.path for file in change.changes if self._is_routine(file, change)}
        moved = (path for entry in change.entries for path in (entry.path, entry.source))
        paths = dict.fromkeys((*moved, *(file.path for file in change.changes)))
        found = [
            rule.finding(path, 0, f"{path} is named by the policy's patches.{key}")
            for path in paths
            for rule, spec, key in self._rules
            if path not in routine
            and not (rule is CRITICAL and path.is_python and self._is_test(path))
            and any(spec.match_file(name) for name in _as_named(path))
        ]
        found += [*_depends(change), *_installs(change)]
        told = {finding.path for finding in found if finding.rule == CRITICAL.id}
        for file in change.sources_changed:
            if file.path not in told | routine and not self._tests.match_file(file.path.replace("\n", " ").lower()):
                found += [
                    CODE.finding(file.path, line, why)
                    for line, why in self._code.touched(file, change.spans[file.path])
                ]
        return decide(self.name, found)

    def _is_test(self, path: RepoPath) -> bool:
        return path.name.startswith("test_") and bool(self._tests.match_file(path.replace("\n", " ").lower()))

    def _is_routine(self, file: FileChange, change: GateInput) -> bool:
        """Whether the policy lets routine be, and a file that stays what it is changes by routine alone."""
        if not self._routine or not file.before or not file.after:
            return False
        entries = [entry for entry in change.entries if file.path in (entry.path, entry.source)]
        same = all(e.path == e.source and e.before_mode == e.after_mode for e in entries)
        return same and is_routine(file)
