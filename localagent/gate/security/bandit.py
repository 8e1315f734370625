"""Gate: bandit's new findings, at or above the policy's severity, on the changed unit with its file's imports in front.

Bandit runs in this process over syntax trees; nothing is executed. `# nosec` comments are not heeded: a candidate may
not excuse itself. An edit that adds nothing bandit looks at is not shown to it. An address of all interfaces that is
only compared with binds nothing.
"""

import ast
import importlib
import io
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from localagent.code.regions import SourceFile, UnitSource
from localagent.domain.gate import Decision, Finding, Severity
from localagent.domain.policy import Policy
from localagent.errors import CannotEnforce
from localagent.gate.core.gate_input import ChangedRegion, GateInput, RegionPair
from localagent.gate.core.rule import Rule, became, decide

_WHOLE = (ast.Import, ast.ImportFrom, ast.JoinedStr, ast.Assert, ast.ExceptHandler, ast.arguments)
_WITH_TEXT = (ast.BinOp, ast.Assign, ast.Compare, ast.keyword)
_ORDER = list(Severity)
_BINDS = "B104"  # bandit's test for an address of all interfaces, wherever it stands
_EVERYWHERE = ("0.0.0.0", "::", "[::]")  # noqa: S104 - what is looked for
_RANK = {"UNDEFINED": Severity.INFO, "LOW": Severity.LOW, "MEDIUM": Severity.MEDIUM, "HIGH": Severity.HIGH}

WEAKNESS = Rule(
    id="bandit",
    severity=Severity.MEDIUM,
    why="bandit finds a weakness that was not there",
    remedy="use the safe way that bandit's page of the test names",
    match=(
        became(
            "import hashlib\ndef f(x):\n    return hashlib.sha256(x)\n",
            "import hashlib\ndef f(x):\n    return hashlib.md5(x)\n",
        ),
        became(
            "import tarfile\ndef f(c, x):\n    c.execute('select a from t where b = ?', x)\n",
            "import tarfile\ndef f(c, x):\n    c.execute('select a from t where b = %s' % x)\n",
        ),
        became(
            "import hashlib as h\nclass A:\n    def f(self, x):\n        return h.sha256(x)\n",
            "import hashlib as h\nclass A:\n    def f(self, x):\n        return h.md5(x)  # nosec\n",
        ),
        became("def f():\n    return '127.0.0.1'\n", "def f():\n    return '0.0.0.0'\n"),
        became(
            "def f(x):\n    return x\n", "def f(x):\n    if x == '0.0.0.0':\n        x = g('0.0.0.0')\n    return x\n"
        ),
        became("def f(x):\n    return x\n", "def f(x):\n    return x == g('0.0.0.0') or x in h['0.0.0.0']\n"),
    ),
    not_match=(
        became(
            "import hashlib\ndef f(x):\n    return hashlib.md5(x)\n",
            "import hashlib\ndef f(x, y):\n    return hashlib.md5(x + y)\n",
        ),
        became("def f(x):\n    return x\n", "def f(x):\n    return sorted(x)\n"),
        became(
            "def f(x):\n    return x\n",
            "def f(x):\n    if x not in {'0.0.0.0', '[::]'}:\n        x = g(x)\n    return x == '0.0.0.0' or x\n",
        ),
    ),
)
RULES = (WEAKNESS,)


class _Found(NamedTuple):
    what: str
    rank: int
    line: int


class Weakness:
    """Refuses what adds a finding of bandit. CannotEnforce on creation if bandit is not there or finds nothing."""

    name = "weakness"

    def __init__(self, policy: Policy) -> None:
        self._bar = _ORDER.index(policy.bandit_deny_at)
        self._linter = _Linter()
        if not any(
            found.rank >= self._bar
            for found in self._linter.findings(SourceFile(b""), "import os\nos.chmod('a', 0o777)\n")
        ):
            raise CannotEnforce("bandit does not find what it must find", remedy="reinstall: `make setup`")

    def review(self, change: GateInput) -> Decision:
        """Deny if bandit finds more of something after than before."""
        return decide(self.name, [finding for region in change.regions for finding in self._review(region)])

    def _review(self, region: ChangedRegion) -> Iterator[Finding]:
        before, after = region.near
        if before is not None and (
            not (_looked_at(after) - _looked_at(before)) or not self._new(region.file, region.near)
        ):
            return
        for test, rank, line in self._new(region.file, region.whole):
            yield Finding(
                rule=WEAKNESS.id,
                severity=_ORDER[rank],
                path=region.path,
                line=region.whole.after.line + line - 1 - region.whole.after.wrapped,
                message=f"{WEAKNESS.why}: {test}",
            )

    def _new(self, file: SourceFile, pair: RegionPair) -> list[_Found]:
        """What bandit finds more often after than before, at or above the policy's severity."""
        spare = Counter(found.what for found in self._before(file, pair.before))
        new = []
        for found in self._linter.findings(file, _text(pair.after)):
            spare[found.what] -= 1
            if spare[found.what] < 0 and found.rank >= self._bar:
                new.append(found)
        return new

    def _before(self, file: SourceFile, snippet: UnitSource | None) -> list[_Found]:
        if snippet is None:
            return []
        if "bandit" not in snippet.memo:
            snippet.memo["bandit"] = self._linter.findings(file, _text(snippet))
        kept: list[_Found] = snippet.memo["bandit"]
        return kept


class _Linter:
    """bandit's tests, loaded once."""

    def __init__(self) -> None:
        shown = warnings.formatwarning  # bandit puts its own in place when it is imported
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._load()
        except Exception as error:
            raise CannotEnforce(
                f"the gate needs bandit, which does not load: {error}", remedy="reinstall: `make setup`"
            ) from error
        finally:
            warnings.formatwarning = shown
        self._metrics.begin("candidate.py")

    def _load(self) -> None:
        self._visitor = importlib.import_module("bandit.core.node_visitor").BanditNodeVisitor
        config = importlib.import_module("bandit.core.config").BanditConfig()
        self._tests = importlib.import_module("bandit.core.test_set").BanditTestSet(config)
        self._metrics = importlib.import_module("bandit.core.metrics").Metrics()

    def findings(self, file: SourceFile, text: str) -> list[_Found]:
        """Everything bandit finds in `text`, read as a part of `file`.

        A test of bandit that fails counts as a finding of its own, so that it is never taken for a clean answer.
        """
        if "bandit-imports" not in file.memo:
            imports = self._visit(_imports(file), None)[0]
            file.memo["bandit-imports"] = (imports.imports, imports.import_aliases)
        visitor, broken = self._visit(text, file.memo["bandit-imports"])
        found = [
            _Found(f"{issue.test_id} {issue.text.strip()}", _ORDER.index(_RANK[issue.severity]), issue.lineno)
            for issue in visitor.tester.results
            if issue.test_id != _BINDS or issue.lineno in _given_lines(text)
        ]
        return found + [_Found(what, len(_ORDER) - 1, 1) for what in broken]

    def _visit(self, text: str, imports: tuple[set[str], dict[str, str]] | None) -> tuple[Any, list[str]]:
        data = io.BytesIO(text.encode("utf-8", "replace"))
        visitor: Any = self._visitor("./candidate.py", data, None, self._tests, False, {}, self._metrics)
        if imports is not None:
            visitor.imports, visitor.import_aliases = set(imports[0]), dict(imports[1])
        broken: list[str] = []
        visitor.tester.report_error = lambda name, _context, _error: broken.append(f"{name} could not answer")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            visitor.process(text)
        return visitor, broken


def _given_lines(text: str) -> frozenset[int]:
    """Lines with a constant that is not an operand of a comparison, itself or in a display."""
    nodes = list(ast.walk(ast.parse(text)))
    compared: set[int] = set()
    for node in nodes:
        for side in (node.left, *node.comparators) if isinstance(node, ast.Compare) else ():
            compared.update(map(id, side.elts if isinstance(side, ast.Tuple | ast.List | ast.Set) else [side]))
    constants = (n for n in nodes if isinstance(n, ast.Constant) and n.value in _EVERYWHERE)
    return frozenset(n.lineno for n in constants if id(n) not in compared)


def _text(snippet: UnitSource) -> str:
    return f"class _:\n{snippet.text}" if snippet.wrapped else snippet.text


def _imports(file: SourceFile) -> str:
    """The file's imports, a line each; kept with the file. `from __future__` must come first and says nothing here."""
    if "imports" not in file.memo:
        lines = [
            ast.unparse(node)
            for node in file.bindings
            if isinstance(node, ast.Import) or (isinstance(node, ast.ImportFrom) and node.module != "__future__")
        ]
        file.memo["imports"] = "".join(f"{line}\n" for line in lines)
    kept: str = file.memo["imports"]
    return kept


def _looked_at(snippet: UnitSource) -> Counter[str]:
    """Everything in a snippet that a test of bandit may look at, as counted keys; kept with the snippet."""
    if "looked-at" not in snippet.memo:
        snippet.memo["looked-at"] = Counter(key for node in snippet.nodes for key in _keys(node))
    kept: Counter[str] = snippet.memo["looked-at"]
    return kept


def _keys(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Call):
        arguments = [_argument(a) for a in node.args] + [f"{k.arg}={_argument(k.value)}" for k in node.keywords]
        yield f"call {ast.dump(node.func)} {arguments}"
    elif isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
        yield f"text {node.value!r}"
    elif isinstance(node, _WHOLE) or (isinstance(node, _WITH_TEXT) and _holds_text(node)):
        yield ast.dump(node)


def _holds_text(node: ast.AST) -> bool:
    return any(isinstance(n, ast.Constant) and isinstance(n.value, str) for n in ast.iter_child_nodes(node))


def _argument(node: ast.expr) -> str:
    """Constants by value, names by themselves, the rest by kind: more no test of bandit asks of an argument."""
    if isinstance(node, ast.Constant | ast.Name | ast.Attribute):
        return ast.dump(node)
    if isinstance(node, ast.List | ast.Tuple | ast.Dict | ast.Set | ast.BinOp | ast.JoinedStr):
        return ast.dump(node)
    return type(node).__name__
