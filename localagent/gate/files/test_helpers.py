"""Which modules and functions of a repository only its tests use: found by names and imports, nothing is run.

A name must say that something helps tests before anybody looks for who uses it: in many small repositories the module
under test is imported by tests alone. Where a bound is reached, whether others use it cannot be told, and it counts as
a helper. Limitations: uses by computed names are not seen; a text that equals the name counts as one.
"""

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from localagent.code.regions import DoesNotParse, decode_source, parse, walk
from localagent.code.spans import Definition, all_lines_of
from localagent.domain.paths import RepoPath
from localagent.domain.test_support_names import is_test_helper_name

if TYPE_CHECKING:
    from localagent.ports import Sources

MOST_FILES = 5_000
MOST_BYTES = 64 << 20
MOST_PARSED = 300
_TESTS_READ = 60  # files of tests that are read for what they import
_OTHERS_READ = 30  # names of a module that are looked for elsewhere
_ASSERTION = re.compile(
    r"_*(?:assert_\w+|assert[A-Z]\w*|raises(?:_\w+)?|expects?_\w+|should_(?:raise|fail)\w*|must_(?:raise|fail)\w*"
    r"|(?:check|verify|ensure)_\w*raises?\w*|\w+_raises)"
)
_ASSERTING_CLASS = re.compile(r"\w*(?:TestCase|TestMixin|Assertions|AssertionsMixin)")
_ENTRY = frozenset({"__main__.py", "setup.py"})
_Parts = tuple[str, ...]


class _TooMuch(Exception):  # noqa: N818 - an answer about the repository, not an error of ours
    """More files than are read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Imports:
    """What a file imports: modules as dotted parts, and names by the module they come from."""

    modules: tuple[_Parts, ...]
    names: tuple[tuple[_Parts, str], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class _File:
    """A file that parses. `words` are the names, attributes and texts that stand in it."""

    imports: _Imports
    attributes: frozenset[str]
    loaded: frozenset[str]
    texts: frozenset[str]


class HelperScan:
    """Asks one tree; `is_test` says of a path whether it is a file of tests. Answers are kept."""

    def __init__(self, sources: "Sources", is_test: Callable[[RepoPath], bool]) -> None:
        self._sources, self._is_test = sources, is_test
        self._files: dict[RepoPath, _File | None] = {}
        self._modules: dict[RepoPath, bool] = {}
        self._functions: dict[tuple[RepoPath, str], bool] = {}
        self._top: dict[RepoPath, tuple[Definition, ...]] = {}

    def only_tests_import(self, path: RepoPath) -> bool:
        """Whether a file is named like a helper of tests, and tests import it, and no other code does."""
        if path not in self._modules:
            self._modules[path] = False  # while it is asked about: helpers may import each other
            self._modules[path] = self._module(path)
        return self._modules[path]

    def asserting_function(self, path: RepoPath, line: int) -> str:
        """The name of the function or class around a line, where it asserts and only tests use it; else ""."""
        for node in self._definitions(path):
            if line in all_lines_of(node) and _asserts(node):
                key = (path, node.name)
                if key not in self._functions:
                    self._functions[key] = self._function(path, node.name)
                return node.name if self._functions[key] else ""
        return ""

    def _module(self, path: RepoPath) -> bool:
        if self._is_test(path) or path.name in _ENTRY or not is_test_helper_name(path):
            return False
        module = _module_parts(path)
        try:
            users = [p for p in self._mentioning(module[-1]) if p != path and self._imports(p, module)]
        except _TooMuch:
            return True
        by_tests = [p for p in users if self._of_tests(p)]
        return bool(by_tests) and len(by_tests) == len(users) and self._tests_import_code()

    def _function(self, path: RepoPath, name: str) -> bool:
        if self._is_test(path) or path.name in _ENTRY:
            return False
        module = _module_parts(path)
        try:
            users = [p for p in self._mentioning(name) if p != path and self._uses(p, module, name)]
            by_tests = [p for p in users if self._of_tests(p)]
            if not by_tests or len(by_tests) < len(users) or self._used_at_home(path, name):
                return False
            others = self._other_names(path)
            if not others:
                return self._tests_import_code(besides=path)
            return any(
                self._uses(p, module, other)
                for other in others[:_OTHERS_READ]
                for p in self._mentioning(other)
                if p != path and not self._of_tests(p)
            )
        except _TooMuch:
            return True

    def _of_tests(self, path: RepoPath) -> bool:
        return self._is_test(path) or (is_test_helper_name(path) and self.only_tests_import(path))

    def _mentioning(self, word: str) -> list[RepoPath]:
        """Files in whose text a word stands. _TooMuch where the repository, or what mentions it, is too large."""
        if len(self._sources) > MOST_FILES:
            raise _TooMuch
        wanted, found, size = word.encode(), [], 0
        for path in self._sources:
            source = self._sources[path]
            size += len(source)
            if size > MOST_BYTES:
                raise _TooMuch
            if wanted in source:
                found.append(path)
        own = [p for p in found if not self._is_test(p)]
        if len(own) > MOST_PARSED:
            raise _TooMuch
        return [*own, *[p for p in found if self._is_test(p)][:_TESTS_READ]]

    def _imports(self, path: RepoPath, module: _Parts) -> bool:
        """Whether a file imports a module; a file that does not parse does what its text mentions."""
        file = self._file(path)
        return file is None or any(_means(told, module) for told in file.imports.modules)

    def _uses(self, path: RepoPath, module: _Parts, name: str) -> bool:
        """Whether a file may use a name of a module."""
        file = self._file(path)
        if file is None:
            return True
        for told, imported in file.imports.names:
            if _means(told, module) and (imported == name or (imported == "*" and name in file.loaded)):
                return True
        reached = any(_means(told, module) for told in file.imports.modules)
        return reached and (name in file.attributes or name in file.texts)

    def _used_at_home(self, path: RepoPath, name: str) -> bool:
        """Whether the module itself uses a name, or tells others of it in a text (`__all__`)."""
        tree = self._tree(path)
        if tree is None:
            return True
        for node in tree.body:
            if isinstance(node, Definition) and _asserts(node):
                continue
            for inner in walk(node):
                if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load) and inner.id == name:
                    return True
                if isinstance(inner, ast.Constant) and inner.value == name:
                    return True
        return False

    def _other_names(self, path: RepoPath) -> tuple[str, ...]:
        """What a module defines beside assertions."""
        tree = self._tree(path)
        names: list[str] = []
        for node in () if tree is None else tree.body:
            if isinstance(node, Definition):
                names += [] if _asserts(node) else [node.name]
            elif isinstance(node, ast.Assign):
                names += [t.id for t in node.targets if isinstance(t, ast.Name)]
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                names.append(node.target.id)
        return tuple(n for n in dict.fromkeys(names) if not (n.startswith("__") and n.endswith("__")))

    def _tests_import_code(self, *, besides: RepoPath | None = None) -> bool:
        """Whether tests import a module of the repository that does not help tests: what they are there for."""
        code = [
            _module_parts(p)
            for p in self._sources
            if p != besides and not self._is_test(p) and not is_test_helper_name(p) and p.name not in _ENTRY
        ]
        ends: dict[str, list[_Parts]] = {}
        for parts in code:
            ends.setdefault(parts[-1], []).append(parts)
        tests = [p for p in self._sources if self._is_test(p)][:_TESTS_READ]
        return any(
            _means(told, parts)
            for p in tests
            if (file := self._file(p)) is not None
            for told in file.imports.modules
            for end in told
            for parts in ends.get(end, ())
        )

    def _definitions(self, path: RepoPath) -> tuple[Definition, ...]:
        if path not in self._top:
            tree = self._tree(path) if path in self._sources else None
            self._top[path] = () if tree is None else tuple(n for n in tree.body if isinstance(n, Definition))
        return self._top[path]

    def _tree(self, path: RepoPath) -> ast.Module | None:
        try:
            return parse(decode_source(self._sources[path]))
        except DoesNotParse:
            return None

    def _file(self, path: RepoPath) -> _File | None:
        if path not in self._files:
            tree = self._tree(path)
            self._files[path] = None if tree is None else _read(tree, path)
        return self._files[path]


def _read(tree: ast.Module, path: RepoPath) -> _File:
    nodes = walk(tree)
    return _File(
        imports=_imported(nodes, path),
        attributes=frozenset(n.attr for n in nodes if isinstance(n, ast.Attribute)),
        loaded=frozenset(n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)),
        texts=frozenset(n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)),
    )


def _imported(nodes: list[ast.AST], path: RepoPath) -> _Imports:
    modules: list[_Parts] = []
    names: list[tuple[_Parts, str]] = []
    for node in nodes:
        if isinstance(node, ast.Import):
            modules += [tuple(alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = (*_package(path, node.level), *(node.module.split(".") if node.module else ()))
            names += [(base, alias.name) for alias in node.names]
            modules += [base, *((*base, alias.name) for alias in node.names)]
    return _Imports(modules=tuple(m for m in modules if m), names=tuple(names))


def _package(path: RepoPath, level: int) -> _Parts:
    """The package that a relative import of a level counts from; () for an absolute one."""
    if not level:
        return ()
    folders = path.parts[:-1]
    return folders[: len(folders) - (level - 1)] if level - 1 <= len(folders) else ()


def _module_parts(path: RepoPath) -> _Parts:
    """The dotted name of a file, as long as its path is: who imports it may know only the end."""
    *folders, name = path.parts
    stem = name.partition(".")[0]
    return tuple(folders) if stem == "__init__" and folders else (*folders, stem)


def _means(told: _Parts, module: _Parts) -> bool:
    """Whether an import may load a module: a package is loaded with what lies in it."""
    return any(module[-n:] == told[:n] for n in range(1, min(len(told), len(module)) + 1))


def _asserts(node: Definition) -> bool:
    if isinstance(node, ast.ClassDef):
        return _ASSERTING_CLASS.fullmatch(node.name) is not None
    return _ASSERTION.fullmatch(node.name) is not None
