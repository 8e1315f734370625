"""What `reproduce` is asked for, and which test or script that means.

Not promised: that a test named in a traceback is the one that was meant; it is run, and has to fail.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from localagent.code.source_text import parse_or_none
from localagent.code.spans import all_lines_of, functions
from localagent.debug.frame_mapping import FrameMapper
from localagent.debug.tracebacks import parse_tracebacks
from localagent.domain.paths import RepoPath
from localagent.domain.traceback import MappedFrame, TraceFrame
from localagent.errors import AnswerIsNo, UsageFault
from localagent.jail.api import BackendKind

_NODE = re.compile(r"\b([\w./-]{1,300}\.py)((?:::\w+)+(?:\[[^\]\n]*\])?)")

_FAILED = re.compile(r"\b(?:FAILED|ERROR)\b")
_NO_FAILURE = re.compile(r"\b(?:PASSED|SKIPPED|XFAIL|DESELECTED)\b|^\s*[\d.]+s (?:setup|call|teardown)\b")


@dataclass(frozen=True, kw_only=True, slots=True)
class ReproduceRequest:
    """`target` is a pytest argument, a script, or "" for the first failing test; `trace` is the text of a traceback.

    `inputs` are data files that a script is given, by name; `place` is where in the repository the result is to lie.
    """

    repo: Path
    target: str = ""
    trace: str = ""
    inputs: tuple[tuple[str, bytes], ...] = field(default=())
    flaky: bool = False
    runs: int = 0
    max_seconds: float = 300.0
    python: str = ""
    policy: Path | None = None
    backend: BackendKind | None = None
    place: RepoPath | None = None


def test_in_trace(text: str, sources: Mapping[RepoPath, bytes]) -> str:
    """The pytest argument of the test that a traceback passes through. AnswerIsNo where it names none of here."""
    mapper = FrameMapper(sources)
    for found in _named_nodes(text):
        (named,) = mapper.map((TraceFrame(file=found[1], line=0),))
        if named.path is not None:
            return f"{named.path}{found[2]}"
    for trace in parse_tracebacks(text.encode("utf-8", "replace")):
        for mapped in mapper.map(frame for exception in trace.exceptions for frame in exception.frames):
            if mapped.path is not None and mapped.frame.function.startswith("test"):
                return f"{mapped.path}::{_qualified(mapped, sources[mapped.path])}"
    raise AnswerIsNo(
        "the traceback passes through no test of this repository",
        remedy="name a test or a script that shows it: localagent reproduce tests/test_x.py::test_y "
        "(`localagent debug FILE --run` looks for one)",
    )


def _named_nodes(text: str) -> Iterator[re.Match[str]]:
    """The tests that a text names, those that it says failed first; not those that passed or only took their time."""
    lines = [line for line in text.splitlines() if not _NO_FAILURE.search(line)]
    for line in sorted(lines, key=lambda line: _FAILED.search(line) is None):
        yield from _NODE.finditer(line)


def _qualified(mapped: MappedFrame, source: bytes) -> str:
    """The function of a frame with the classes around it, as pytest writes it."""
    tree = parse_or_none(source)
    named = [f for f in functions(tree) if f.node.name == mapped.frame.function and f.outermost] if tree else []
    there = [f for f in named if mapped.line in all_lines_of(f.node)] or named
    return there[0].qualname.replace(".", "::") if there else mapped.frame.function


def path_of(target: str, repo: Path) -> RepoPath:
    """The file part of a target, inside the repository. UsageFault where it lies outside or is not there."""
    name = target.split("::", 1)[0]
    full = (repo / name).resolve()
    root = repo.resolve()
    if not full.is_relative_to(root) or full == root:
        raise UsageFault(f"{name}: not inside the repository {root}", remedy="name the repository with --repo")
    if not full.exists():
        raise UsageFault(f"{name}: no such file in {root}", remedy="paths are relative to --repo")
    return RepoPath(full.relative_to(root).as_posix())


test_in_trace.__test__ = False  # type: ignore[attr-defined]  # pytest would take it for a test
