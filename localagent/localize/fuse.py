"""Fusion of the evidence into one ranked list of statements over all files.

A covered statement: 0.33 spectrum + 0.17 frame + 0.18 nearness + 0.15 words + 0.17 test names, each in [0, 1], less in
large functions:
spectrum: Ochiai of the best line, relative to the best of all files (the share of failing tests where few passing
tests were traced); frame: 1 for the innermost source frame of a failure, falling by a third per frame outwards, with
half of it for the rest of that function; nearness: by names from the failing tests' own bodies, falling per call;
words: how telling the words are that the statement shares with the failures' messages, the failing tests' own bodies
and the task; test names: how far its function is about what the failing tests are named after (`words_of_test_names`).
What only `__repr__` leads to counts less: the report of a failure runs it.
Then, relative to what is covered: the statement where an exception left a source file comes first; headers and
decorators get a share of their function's best; what ran at import time in the files that failing tests cover or
mention follows low, constants that suspicious statements mention higher.
Without any trace (a test that hung or died) every statement of the files that were imported stays in.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from localagent.code.newer_syntax import newer_file
from localagent.code.statements import Body, Statement, StatementKind, identifiers_in, statements_of
from localagent.domain.outcome import Baseline
from localagent.domain.paths import RepoPath
from localagent.domain.task import Suspicion
from localagent.localize.evidence import (
    failing_tests,
    failures_of,
    frames_of,
    message_identifiers,
    rarity,
    runs_of,
    spectrum_of,
)
from localagent.localize.nearness import (
    Function,
    Mentioned,
    imported_by,
    mentioned_by,
    nearness,
    only_for_display,
)
from localagent.localize.words_of_test_names import scores_by_test_names
from localagent.ports import Sources

_SPECTRUM, _FRAME, _NEAR, _WORDS, _TEST_NAMES = 0.333, 0.167, 0.183, 0.15, 0.167
_SAME_FUNCTION = 0.5
_STORED, _OWN_NAME = 2.0, 0.8
_HEADER, _CLASS_HEADER = 0.35, 0.2
_CONSTANT, _IMPORT_TIME, _IMPORT_NEAR, _IMPORT_WORDS = 0.5, 0.08, 0.3, 0.4
_MODULE_LEVEL = 0.25
_DISPLAY = 0.4
_LARGE_STATEMENTS, _LARGE_POWER = 15, 0.1
_CRASH_MARGIN = 1.02
_SURE, _TELLING = 0.99, 0.5
_SOURCE_LIMIT_BYTES = 2 << 20
_TEXT_LIMIT = 20_000
_SYNTAX_ERRORS = ("SyntaxError", "IndentationError", "TabError")

Files = Mapping[RepoPath, tuple[Statement, ...]]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Scored:
    path: RepoPath
    statement: Statement
    score: float
    near: float
    why: str


class SpectrumLocalizer:
    """Ranks statements from a traced baseline. Pure: reads only what it is given. `text` is the task in words."""

    def __init__(self, *, text: str = "") -> None:
        self._text = text

    def localize(self, baseline: Baseline, sources: Sources) -> tuple[Suspicion, ...]:
        """Most suspicious first. Never names a test file; empty when nothing of the sources can be blamed."""
        return _Ranking(baseline, sources, self._text).ranked()


class _Ranking:
    """One call's evidence and what follows from it."""

    def __init__(self, baseline: Baseline, sources: Sources, text: str) -> None:
        failures = failures_of(baseline)
        self.baseline = baseline
        self.runs = runs_of(baseline)
        self.spectrum = spectrum_of(self.runs, baseline.test_files)
        self.traced = bool(self.spectrum)
        self.frames = frames_of(failures, baseline.test_files)
        self.mentioned = mentioned_by(failing_tests(baseline), baseline, sources)
        self.early = False  # the failing tests ended before they reached what they are about
        self.files, self.unparsed = self._read(sources)
        told = message_identifiers(failures) | identifiers_in(text[:_TEXT_LIMIT])
        rare = rarity(s for statements in self.files.values() for s in statements)
        self.told = {w: rare[w] * (1.0 if w in told else _OWN_NAME) for w in told | self.mentioned.own if w in rare}
        functions = self._functions()
        self.near = nearness(functions, self.mentioned)
        self.named = scores_by_test_names(failing_tests(baseline), self.files, sources)
        self.display = only_for_display(functions, self.mentioned)
        self.best = self._best_value()
        self.size = Counter((p, s.function) for p, s in self._all() if self._covered(p, s))
        self.framed: dict[Function, float] = {}
        for path, s in self._all():
            if s.place is StatementKind.STATEMENT and (weight := self._frame(path, s)):
                self.framed[(path, s.function)] = max(weight, self.framed.get((path, s.function), 0.0))

    def ranked(self) -> tuple[Suspicion, ...]:
        """Everything that can be blamed, most suspicious first; the nearer first among equals."""
        covered = self._crashed_first([self._score(p, s) for p, s in self._all() if self._blamed(p, s)])
        found = [*covered, *self._headers(covered), *self._import_time(covered)]
        found.sort(key=lambda x: (-x.score, -x.near, x.path, x.statement.line))
        seen: set[tuple[RepoPath, int, int]] = set()
        out = list(self.unparsed)
        for x in found:
            key = (x.path, x.statement.line, x.statement.end_line)
            if key not in seen:
                seen.add(key)
                score = min(x.score, 1.0)
                out.append(Suspicion(path=x.path, line=key[1], end_line=key[2], score=score, why=x.why))
        return tuple(out)

    def _read(self, sources: Sources) -> tuple[Files, list[Suspicion]]:
        framed = {path for path, _ in self.frames.weights}
        broken = {f.frames[-1].path for f in failures_of(self.baseline) if f.frames and f.exception in _SYNTAX_ERRORS}
        ran = {*self.spectrum, *self.baseline.import_lines} - broken  # the project's Python parses it
        paths = set(self.spectrum) | framed
        if self.traced:
            unreached = self._unreached(paths, sources)
            self.early = bool(unreached)
            paths |= unreached | {p for p in self.baseline.import_lines if _module_name(p) in self.mentioned.all}
        else:
            paths = _reachable_files(sources, self.baseline, self.mentioned, framed)
        files: dict[RepoPath, tuple[Statement, ...]] = {}
        unparsed: list[Suspicion] = []
        for path in sorted(paths - self.baseline.test_files):
            if path not in sources or len(sources[path]) > _SOURCE_LIMIT_BYTES:
                continue
            files[path] = statements_of(sources[path])
            if not files[path] and path not in ran and not newer_file(sources[path]):
                unparsed.extend(_unparsed(path, sources[path], [k for p, k in self.frames.weights if p == path]))
        return files, unparsed

    def _unreached(self, ran: set[RepoPath], sources: Sources) -> set[RepoPath]:
        """What the failing tests' files import, where they ended in helpers below the tests' folders; else nothing."""
        folders = {p.parts[:-1] for p in self.baseline.test_files if p.parts[:-1]}

        def below(path: RepoPath) -> bool:
            return any(path.parts[: len(folder)] == folder for folder in folders)

        if not all(below(p) for p in ran):
            return set()
        files = {t.path for t in failing_tests(self.baseline) if t.path in sources} or self.baseline.test_files
        imported = {name for p in files if p is not None and p in sources for name in imported_by(sources[p])}
        return {p for p in self.baseline.import_lines if not below(p) and _module_name(p) in imported}

    def _best_value(self) -> float:
        values = [self._value(p, s) for p, s in self._all() if (p, s.function) not in self.display]
        return max(values, default=0.0) or 1.0

    def _all(self) -> Iterator[tuple[RepoPath, Statement]]:
        return ((path, s) for path, statements in self.files.items() for s in statements)

    def _functions(self) -> dict[Function, frozenset[str]]:
        """Functions that ran (all, without a trace), with the names they mention."""
        names: dict[Function, set[str]] = defaultdict(set)
        for path, s in self._all():
            if not self.traced or self._covered(path, s) or self._imported(path, s):
                names[(path, s.function)] |= s.names
        return {key: frozenset(found) for key, found in names.items() if key[1]}

    def _covered(self, path: RepoPath, s: Statement) -> bool:
        return s.place is StatementKind.STATEMENT and (not self.traced or self._value(path, s) > 0)

    def _imported(self, path: RepoPath, s: Statement) -> bool:
        lines = self.baseline.import_lines.get(path, frozenset())
        return s.place is StatementKind.STATEMENT and any(k in lines for k in range(s.line, s.end_line + 1))

    def _blamed(self, path: RepoPath, s: Statement) -> bool:
        return s.place is StatementKind.STATEMENT and (self._covered(path, s) or self._frame(path, s) > 0)

    def _value(self, path: RepoPath, s: Statement) -> float:
        lines = self.spectrum.get(path, {})
        if s.silent and s.body is Body.FUNCTION:
            return lines.get(s.function_line, 0.0)
        return max((lines.get(k, 0.0) for k in range(s.line, s.end_line + 1)), default=0.0)

    def _frame(self, path: RepoPath, s: Statement) -> float:
        return max((self.frames.weights.get((path, k), 0.0) for k in range(s.line, s.end_line + 1)), default=0.0)

    def _score(self, path: RepoPath, s: Statement) -> _Scored:
        key = (path, s.function)
        value = min(1.0, self._value(path, s) / self.best)
        frame = max(self._frame(path, s), _SAME_FUNCTION * self.framed.get(key, 0.0))
        near = self.near.get(key, 0.0)
        words = self._identifier_match(s)
        named = self._named(path, s.line)
        score = _SPECTRUM * value + _FRAME * frame + _NEAR * near + _WORDS * words + _TEST_NAMES * named
        score *= min(1.0, (_LARGE_STATEMENTS / max(1, self.size[key])) ** _LARGE_POWER)
        if s.body is not Body.FUNCTION and not frame and self._imported(path, s):
            score *= _MODULE_LEVEL  # runs whatever the test does, rarely to blame
        if key in self.display and not frame:
            score *= _DISPLAY
        said = [
            (self._counted(path, s), True),
            ("in the traceback" if self._frame(path, s) else "its function is in the traceback", frame),
            ("the test names its function", near >= _SURE),
            ("the failure or the test has words of it", words >= _TELLING),
            ("the test's name speaks of its function", named >= _TELLING),
        ]
        why = "; ".join(sentence for sentence, holds in said if sentence and holds)
        return _Scored(path=path, statement=s, score=score, near=near, why=why)

    def _counted(self, path: RepoPath, s: Statement) -> str:
        """How many failing and passing tests ran a statement, by its most suspicious line; "" without a trace."""
        lines = self.spectrum.get(path, {})
        line = max((k for k in range(s.line, s.end_line + 1) if k in lines), key=lambda k: lines[k], default=0)
        if not line:
            return ""
        runs = self.runs
        failed = f"{runs.failed[path, line]} of {runs.failing} failing"
        passed = runs.passed.get((path, line), 0)
        return (
            f"run by {failed} and {passed} of {runs.passing} passing tests"
            if runs.passing
            else f"run by {failed} tests"
        )

    def _named(self, path: RepoPath, line: int) -> float:
        scores = self.named.get(path, ())
        return scores[line] if line < len(scores) else 0.0

    def _identifier_match(self, s: Statement) -> float:
        own = s.function.rsplit(".", 1)[-1]
        told = max((self.told.get(w, 0.0) for w in (*s.names, *s.words, own)), default=0.0)
        return min(1.0, max(told, max((_STORED * self.told.get(w, 0.0) for w in s.stores), default=0.0)))

    def _crashed_first(self, covered: list[_Scored]) -> list[_Scored]:
        best = max((x.score for x in covered), default=0.0)
        return [
            replace(x, score=_CRASH_MARGIN * best, why=f"{x.why}; the exception left the code here")
            if self._crashed(x)
            else x
            for x in covered
        ]

    def _crashed(self, x: _Scored) -> bool:
        return any((x.path, k) in self.frames.crashes for k in range(x.statement.line, x.statement.end_line + 1))

    def _headers(self, covered: list[_Scored]) -> Iterator[_Scored]:
        """Headers and decorators run beforehand: a share of the best of what they define."""
        best: dict[Function, _Scored] = {}
        for x in covered:
            name = x.statement.function
            while name:
                held = best.get((x.path, name))
                if held is None or held.score < x.score:
                    best[(x.path, name)] = x
                name = name.rpartition(".")[0]
        for path, s in self._all():
            inside = best.get((path, s.function))
            if s.place is not StatementKind.STATEMENT and inside is not None:
                share = _HEADER if s.body is Body.FUNCTION else _CLASS_HEADER
                why = f"{s.place.value} of `{s.function}`, in which line {inside.statement.line} is suspicious"
                yield _Scored(path=path, statement=s, score=share * inside.score, near=inside.near, why=why)

    def _import_time(self, covered: list[_Scored]) -> Iterator[_Scored]:
        """What ran while collecting and not in the failing tests themselves."""
        best = max((x.score for x in covered), default=1.0)
        known = {(x.path, x.statement.line) for x in covered}
        bound = Counter(name for _, s in self._all() for name in s.binds if s.body is not Body.FUNCTION)
        users: dict[str, float] = {}
        for x in covered:
            for name in x.statement.names:
                users[name] = max(users.get(name, 0.0), x.score)
        for path, s in self._all():
            ran = self._imported(path, s) or (self.early and s.line in self.baseline.import_lines.get(path, ()))
            if self.traced and ran and (path, s.line) not in known:
                near = self.near.get((path, s.function), 0.0)
                words = self._identifier_match(s)
                score = best * (_IMPORT_TIME + _IMPORT_NEAR * near + _IMPORT_WORDS * words)
                why = "ran when its module was imported"
                used = max((users.get(n, 0.0) / math.sqrt(max(1, bound[n])) for n in s.binds), default=0.0)
                if used and s.body is not Body.FUNCTION:
                    score = max(score, _CONSTANT * used)
                    why = "set when its module was imported, and used by suspicious statements"
                yield _Scored(path=path, statement=s, score=score, near=near, why=why)


def _module_name(path: RepoPath) -> str:
    parts = path.removesuffix(".py").split("/")
    return parts[-2] if parts[-1] == "__init__" and len(parts) > 1 else parts[-1]


def _reachable_files(
    sources: Sources, baseline: Baseline, mentioned: Mentioned, framed: set[RepoPath]
) -> set[RepoPath]:
    """Without a trace: files imported while collecting, else files whose module name the tests mention, else all."""
    imported = {p for p in baseline.import_lines if p not in baseline.test_files}
    if imported or framed:
        return imported | framed
    named = {p for p in sources if p.is_python and p.name.removesuffix(".py") in mentioned.all}
    return (named or {p for p in sources if p.is_python}) - baseline.test_files


def _unparsed(path: RepoPath, source: bytes, framed: list[int]) -> list[Suspicion]:
    """A file that does not parse: the line the parser names, or its first."""
    lines = framed
    if not lines:
        try:
            compile(source, str(path), "exec", dont_inherit=True)
        except SyntaxError as error:
            lines = [error.lineno or 1]
        except (ValueError, RecursionError, MemoryError):
            lines = [1]
    return [Suspicion(path=path, line=n, end_line=n, score=1.0, why="does not parse") for n in sorted(set(lines))[:3]]
