"""What `reproduce` is asked for, and which test or script that means.

Not promised: that a test named in a traceback is the one that was meant; it is run, and has to fail.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from localagent.domain.paths import RepoPath
from localagent.errors import AnswerIsNo, UsageFault
from localagent.jail.api import BackendKind

_FRAME = re.compile(r'File "([^"\n]{1,1000})", line (\d+), in (test\w*)')
_NODE = re.compile(r"\b([\w./-]{1,300}\.py)((?:::\w+)+(?:\[[^\]\n]*\])?)")
_SHORT = re.compile(r"^([\w./-]{1,300}\.py):(\d+): in (test\w*)", re.MULTILINE)


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


def test_in_trace(text: str, files: Collection[RepoPath]) -> str:
    """The pytest argument of the test that a traceback passes through. AnswerIsNo where it names none of here."""
    for found in _NODE.finditer(text):
        path = _mapped(found[1], files)
        if path is not None:
            return f"{path}{found[2]}"
    frames = [(m.start(), m[1], m[3]) for pattern in (_FRAME, _SHORT) for m in pattern.finditer(text)]
    for _at, name, function in sorted(frames):
        path = _mapped(name, files)
        if path is not None:
            return f"{path}::{function}"
    raise AnswerIsNo(
        "the traceback passes through no test of this repository",
        remedy="name a test or a script that shows it: localagent reproduce tests/test_x.py::test_y",
    )


def _mapped(name: str, files: Collection[RepoPath]) -> RepoPath | None:
    """The file here whose path has most components in common with the end of `name`; None where none has its name."""
    parts = [part for part in name.split("/") if part not in ("", ".", "..")]
    best: tuple[int, RepoPath] | None = None
    for path in files:
        common = 0
        while common < min(len(parts), len(path.parts)) and parts[-1 - common] == path.parts[-1 - common]:
            common += 1
        mapped = common == len(path.parts) or common > 1 or (common == 1 and len(parts) == 1)
        if mapped and (best is None or common > best[0]):
            best = (common, path)
    return best[1] if best is not None else None


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
