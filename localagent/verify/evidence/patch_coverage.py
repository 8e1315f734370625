"""Which changed statements the tests that count ran on the patched tree. Pure: reads results, runs nothing."""

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from localagent.code.source_text import parse_or_none
from localagent.domain.outcome import Outcome, TestResult
from localagent.domain.paths import RepoPath
from localagent.domain.strength import Share
from localagent.domain.verification import UnrunCode
from localagent.verify.evidence.changed_lines import ChangedFile
from localagent.verify.worker.function_regions import FunctionRegion

_MISSING = 10
_CALLERS_SECONDS = 5.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Covered:
    """Changed statements that tests which count ran, by file; the share; those tests, quickest first.

    `callers`: tests that run a touched function, those of `tests` first; others as long as they take little time.
    `unknown` says why it could not be measured: the share is then no finding.
    """

    lines: Mapping[RepoPath, frozenset[int]]
    share: Share
    tests: tuple[str, ...] = ()
    callers: tuple[str, ...] = ()
    unknown: str = ""

    @property
    def measured(self) -> Share | None:
        """The share, or None where nothing was measured."""
        return None if self.unknown else self.share


def changed_lines(files: Sequence[ChangedFile], seen: Covered) -> Mapping[RepoPath, frozenset[int]]:
    """The changed lines of the statements that tests ran: of a table of many lines not its first, but those in it."""
    return {f.path: f.changed_in(seen.lines[f.path]) for f in files if f.path in seen.lines}


def nothing_covered(files: Sequence[ChangedFile], why: str) -> Covered:
    """Where no test ran, and why."""
    whole = sum(len(f.executable()) for f in files)
    return Covered(lines={}, share=Share(part=0, whole=whole, note=why))


def not_measured(files: Sequence[ChangedFile], why: str) -> Covered:
    """Where tests may have run changed lines and it could not be seen, and why."""
    return replace(nothing_covered(files, why), unknown=why)


def unrun(
    files: Sequence[ChangedFile], counting: Iterable[TestResult], import_lines: Mapping[RepoPath, frozenset[int]]
) -> tuple[UnrunCode, ...]:
    """Changed code that no test of `counting` ran which passed.

    A function counts as run where any of its statements was: which of its changed lines no test ran, `covered` tells.
    Code outside functions counts where importing ran it, and a test came into the file or there is no function to come
    into; a field of a class also where no function of the file names it, for then it is used by others, and by what
    Python makes of the class (dataclasses, enumerations), which no test is seen to come into.
    """
    passed = [t.lines for t in counting if t.lines is not None and t.outcome is Outcome.PASSED]
    found = []
    for file in files:
        ran = frozenset[int]().union(*(lines.get(file.path, frozenset()) for lines in passed))
        changed, functions = file.executable(), file.functions()
        entered = bool(ran) or (functions == () and bool(passed))
        loaded = ran | import_lines.get(file.path, frozenset()) if entered else ran
        if functions is None:  # nobody can tell what is a function
            functions, loaded = (), ran
        for function, new in file.differing():
            body = frozenset(range(function.body_line, function.last_line + 1))
            if not body & ran:
                name = f"{function.class_name}.{function.name}" if function.class_name else function.name
                found.append(UnrunCode(path=file.path, name=name, new=new))
        outside = changed - {n for f in functions for n in range(f.line, f.last_line + 1)}
        if passed and functions:
            outside -= import_lines.get(file.path, frozenset()) & _fields_for_others(file.after)
        if outside and not outside & loaded:
            found.append(UnrunCode(path=file.path, name=f"line {min(outside)}", new=not file.before))
    return tuple(found)


def _fields_for_others(source: bytes) -> frozenset[int]:
    """Lines of the fields of classes that no function of the file names."""
    tree = parse_or_none(source)
    nodes = list(ast.walk(tree)) if tree is not None else []
    functions = [n for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)]
    named = {
        name
        for function in functions
        for n in ast.walk(function)
        for name in (getattr(n, "id", None), getattr(n, "attr", None), getattr(n, "value", None))
        if isinstance(name, str)
    }
    fields = [
        n for c in nodes if isinstance(c, ast.ClassDef) for n in c.body if isinstance(n, ast.Assign | ast.AnnAssign)
    ]
    found = set()
    for node in fields:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if all(isinstance(t, ast.Name) and t.id not in named for t in targets):
            found.add(node.lineno)
    return frozenset(found)


def covered(
    files: Sequence[ChangedFile], counting: Iterable[TestResult], import_lines: Mapping[RepoPath, frozenset[int]]
) -> Covered:
    """What the traced tests of `counting` that passed ran. Lines run while importing count where one is there.

    A test that runs a function under its new name runs the change, although nothing of the body differs.
    """
    wanted = {f.path: f.executable() for f in files}
    named = {f.path: frozenset(_lines_of(f.fresh())) for f in files}
    ran: dict[RepoPath, set[int]] = {path: set() for path in wanted}
    touched = {f.path: frozenset(_lines_of(new for _, new in f.touched())) for f in files}
    entered: set[RepoPath] = set()
    tests: list[tuple[float, str]] = []
    callers: list[tuple[float, str]] = []
    for test in counting:
        if test.lines is None:
            continue
        entered |= {path for path in wanted if test.lines.get(path)}
        if test.outcome is not Outcome.PASSED:
            continue
        hits = {path: test.lines.get(path, frozenset()) & lines for path, lines in wanted.items()}
        for path, lines in hits.items():
            ran[path] |= lines
        if any(hits.values()) or any(not lines.isdisjoint(test.lines.get(path, ())) for path, lines in named.items()):
            tests.append((test.seconds, test.id))
        elif any(not lines.isdisjoint(test.lines.get(path, ())) for path, lines in touched.items()):
            callers.append((test.seconds, test.id))
    for path in entered:
        ran[path] |= import_lines.get(path, frozenset()) & wanted[path]
    missing = [f"{path}:{n}" for path in sorted(wanted) for n in sorted(wanted[path] - ran[path])]
    whole = sum(len(lines) for lines in wanted.values())
    return Covered(
        lines={path: frozenset(lines) for path, lines in ran.items() if lines},
        share=Share(part=whole - len(missing), whole=whole, missing=tuple(missing[:_MISSING])),
        tests=tuple(i for _, i in sorted(tests)),
        callers=(*(i for _, i in sorted(tests)), *_quick(callers)),
    )


def _lines_of(functions: Iterable[FunctionRegion]) -> Iterator[int]:
    """The lines of functions without their heads, which run where the file is imported."""
    for function in functions:
        yield from range(function.body_line, function.last_line + 1)


def _quick(tests: Iterable[tuple[float, str]]) -> Iterator[str]:
    """The quickest, as many as their time allows."""
    left = _CALLERS_SECONDS
    for seconds, name in sorted(tests):
        left -= seconds
        if left < 0:
            return
        yield name
