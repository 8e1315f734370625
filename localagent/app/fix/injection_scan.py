"""What the repository says to machines in the texts that the model may be shown: reported with the task, never obeyed.

The files are those that the model was asked about, those of the suspected places, and those of the failing tests with
what they said. The rule is that of the gates (`prompt-injection`). Not promised: that the model read each of these
texts, or that other words for the same are seen.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from localagent.domain.outcome import Baseline
from localagent.domain.paths import RepoPath
from localagent.domain.task import Suspicion, TextFinding
from localagent.gate.content.prompt_injection import INJECTION, first_line, spoken_in

MOST_PLACES = 20
MOST_FILES = 50
MOST_BYTES = 1 << 20  # of one file
_MOST_LINES = 40  # of one piece
_SHOWN = 60

Context = Callable[[RepoPath, Baseline], str]


@dataclass(slots=True)
class ShownFiles:
    """Which files the model was asked about. `noting` wraps what is put in front of them, which is asked for first."""

    paths: dict[RepoPath, None] = field(default_factory=dict)

    def noting(self, context: Context) -> Context:
        """The same context, noted."""

        def noted(path: RepoPath, baseline: Baseline) -> str:
            self.paths[path] = None
            return context(path, baseline)

        return noted


def injection_warnings(
    shown: ShownFiles, places: tuple[Suspicion, ...], baseline: Baseline | None, sources: Mapping[RepoPath, bytes]
) -> tuple[TextFinding, ...]:
    """One for each place; as many as there are."""
    tests = [] if baseline is None else [t for t in baseline.tests if t.id in set(baseline.failing)]
    files = dict.fromkeys((*shown.paths, *(p.path for p in places), *(t.path for t in tests if t.path is not None)))
    found: list[TextFinding] = []
    for path in [p for p in files if p in sources][:MOST_FILES]:
        found += [_finding(path, line, said) for line, said in injection_lines(sources[path][:MOST_BYTES])]
    for test in tests[:MOST_FILES]:
        said = spoken_in(test.failure.message.encode("utf-8", "replace")) if test.failure is not None else []
        found += [_finding(test.path, None, said[0], test=test.id)] if said else []
    return tuple(found)


def reported_injections(found: Sequence[TextFinding]) -> tuple[TextFinding, ...]:
    """Those that a report holds."""
    return tuple(found[:MOST_PLACES])


def warnings_of(found: Sequence[TextFinding]) -> tuple[str, ...]:
    """One line for each that a report holds: the rule, where it is, its first words; and how many more there are."""
    left = len(found) - MOST_PLACES
    more = (f"{INJECTION.id}: {left} more places may speak to a machine",) if left > 0 else ()
    return (*(_line(one) for one in reported_injections(found)), *more)


def injection_lines(data: bytes) -> Iterator[tuple[int, str]]:
    """The line, from 1, where each piece of a source begins to speak to a machine, and its first words."""
    if not spoken_in(data):
        return
    lines = data.split(b"\n")
    start = 0
    for at in range(len(lines) + 1):
        if at < len(lines) and lines[at].strip() and at - start < _MOST_LINES:
            continue
        piece = lines[start:at]
        if piece and (said := spoken_in(b"\n".join(piece))):
            yield start + 1 + first_line(piece, said[0]), said[0]
        start = at if at < len(lines) and lines[at].strip() else at + 1


def _finding(path: RepoPath | None, line: int | None, said: str, test: str | None = None) -> TextFinding:
    return TextFinding(rule=INJECTION.id, path=path, line=line, text=said[:_SHOWN], test=test)


def _line(found: TextFinding) -> str:
    where = f"{found.path}:{found.line}" if found.test is None else f"the message of {found.test}"
    what = f"may speak to a machine: {found.text!a}"
    return f"{found.rule}: {where}: {what}; the model may have been shown it, as data, and nobody obeys it"
