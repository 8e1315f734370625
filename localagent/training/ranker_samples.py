"""From a fix to a sample: the edits that the search would have open around it, and which of them mends.

Not promised: that the sample looks as it would in a task: nothing runs, so no line is more suspicious than another,
and no message steers the operators.
"""

import ast
import gzip
import hashlib
import json
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from localagent.code.source_text import parse_or_none
from localagent.code.spans import Function, functions, last_line
from localagent.domain.edit import Edit, Reading, Scope, Splice
from localagent.domain.paths import RepoPath
from localagent.ports import EditSpace
from localagent.training.ranker_history import HistoryFix

Read = Callable[[bytes, str, Sequence[Edit]], Sequence[Reading | None]]

LINES = 40  # of a function that are open at once
MOST = 3_000
_CHANGED_TOKENS = 14
_TOKEN = re.compile(rb"\w+|[^\w\s]")
_BLANK = re.compile(rb"\s+")
_CONFIRMED = 40
READ_AS = 1  # what the model is shown and asked; another number where that changes


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """A program, the edits open in it, what the model read at each, and the places of those that mend.

    `truth` is empty where the mending edit lies beyond the edits that a search enumerates. `reader` says whose readings
    they are, "" where nobody read it.
    """

    origin: str
    kind: str
    path: str
    source: bytes
    edits: tuple[Edit, ...]
    readings: tuple[Reading | None, ...]
    truth: tuple[int, ...]
    reader: str = ""


def reader_of(sha256: str) -> str:
    """What readings are known by: the weights that made them, and how they were asked."""
    return f"{sha256}/{READ_AS}"


def worth_a_look(fix: HistoryFix) -> bool:
    """Cheaply, whether the change is small enough to be one edit."""
    old, new = _TOKEN.findall(_hunk(fix, fix.before)), _TOKEN.findall(_hunk(fix, fix.after))
    while old and new and old[0] == new[0]:
        old, new = old[1:], new[1:]
    while old and new and old[-1] == new[-1]:
        old, new = old[:-1], new[:-1]
    names = {t for t in new if t[:1].isalpha() and t not in fix.before}
    return 0 < len(old) + len(new) <= _CHANGED_TOKENS and not names


def _borders(fix: HistoryFix) -> tuple[int, int]:
    """Bytes at the front and at the back that the change leaves alone, a line less on either side."""
    lines = fix.before.splitlines(keepends=True)
    front = sum(map(len, lines[: max(0, fix.first - 2)]))
    back = sum(map(len, lines[fix.last + 1 :]))
    return front, back


def _hunk(fix: HistoryFix, text: bytes) -> bytes:
    front, back = _borders(fix)
    return text[front : len(text) - back]


def mending(fix: HistoryFix, edits: Sequence[Edit]) -> list[int]:
    """Places of the edits that make the fix, formatting aside."""
    front, back = _borders(fix)
    wanted = _BLANK.sub(b"", _hunk(fix, fix.after))
    found: list[int] = []
    tried = 0
    tree = ""
    for at, edit in enumerate(edits):
        if edit.splices[0].start < front or edit.splices[-1].end > len(fix.before) - back:
            continue
        made = edit.apply(fix.before)
        if _BLANK.sub(b"", made[front : len(made) - back]) != wanted:
            continue
        tree = tree or _dump(fix.after)
        if _dump(made) == tree:
            found.append(at)
        tried += 1
        if tried >= _CONFIRMED:
            break
    return found


def _dump(source: bytes) -> str:
    tree = parse_or_none(source)
    try:
        return ast.dump(tree) if tree is not None else ""
    except RecursionError:  # parses, and is nested deeper than a tree can be written down
        return ""


def open_lines(fix: HistoryFix) -> frozenset[int]:
    """The lines that a search would have open: the function around the fix, or a stretch of it that holds the fix."""
    first, last = 1, fix.before.count(b"\n") + 1
    tree = parse_or_none(fix.before)
    if tree is None:
        return frozenset(range(fix.first, fix.last + 1))
    outer = next((n for f in functions(tree) if _holds(n := f.node, fix)), None)
    if outer is not None:
        first, last = outer.lineno, last_line(outer)
    if last - first + 1 > LINES:
        seed = int.from_bytes(hashlib.sha256(fix.origin.encode()).digest()[:4], "big")
        low, high = max(first, fix.last - LINES + 1), max(first, min(fix.first, last - LINES + 1))
        first = random.Random(seed).randint(min(low, high), high)  # noqa: S311 - a draw, not a secret
        last = first + LINES - 1
    return frozenset(range(first, last + 1)) | frozenset(range(fix.first, fix.last + 1))


def _holds(function: Function, fix: HistoryFix) -> bool:
    return function.lineno <= fix.first and fix.last <= last_line(function) + 1


def sample_of(
    fix: HistoryFix, kind: str, space: EditSpace, read: Read, *, most: int = MOST, reader: str = ""
) -> Sample | None:
    """The sample of a fix, None where no edit makes it."""
    path = RepoPath(fix.path)
    sources = {path: fix.before}
    here = frozenset(range(fix.first, fix.last + 1))
    if not mending(fix, list(space.edits(path, sources, lines=here, failures=()))):
        return None
    edits = list(islice(space.edits(path, sources, lines=open_lines(fix), failures=()), most))
    if len(edits) < 20:
        return None
    readings = read(fix.before, fix.path, edits)
    return Sample(
        origin=fix.origin,
        kind=kind,
        path=fix.path,
        source=fix.before,
        edits=tuple(edits),
        readings=tuple(readings),
        truth=tuple(mending(fix, edits)),
        reader=reader if any(r is not None for r in readings) else "",
    )


def save(sample: Sample, folder: Path) -> Path:
    """Written whole or not at all, under a name that says what is in it; a second one replaces nothing."""
    scopes: list[Scope | None] = list(dict.fromkeys(e.scope for e in sample.edits))
    places = {scope: k for k, scope in enumerate(scopes)}
    data = {
        "origin": sample.origin,
        "kind": sample.kind,
        "reader": sample.reader,
        "path": sample.path,
        "source": sample.source.decode("latin-1"),
        "truth": list(sample.truth),
        "scopes": [_scope_row(s) for s in scopes],
        "edits": [
            [
                [[s.start, s.end, s.text.decode("latin-1")] for s in e.splices],
                e.operator,
                e.line,
                e.end_line,
                e.prior,
                places[e.scope],
                [] if r is None else [r.ratio, r.stood],
            ]
            for e, r in zip(sample.edits, sample.readings, strict=True)
        ],
    }
    packed = gzip.compress(json.dumps(data).encode(), 3, mtime=0)
    origin = hashlib.sha256(f"{sample.origin} {sample.path}".encode()).hexdigest()[:16]
    file = folder / f"{sample.kind}-{origin}-{hashlib.sha256(packed).hexdigest()[:16]}.json.gz"
    fresh = file.with_suffix(".part")
    fresh.write_bytes(packed)
    fresh.replace(file)
    return file


def _scope_row(s: Scope | None) -> list[object] | None:
    if s is None:
        return None
    return [s.name, s.qualname, s.class_name, s.first_line, s.last_line, s.start, s.body_start, s.end]


def load(file: Path) -> Sample:
    """A sample that `save` wrote."""
    data: dict[str, Any] = json.loads(gzip.decompress(file.read_bytes()))
    scopes = [
        None
        if row is None
        else Scope(
            name=row[0], qualname=row[1], class_name=row[2], first_line=row[3],
            last_line=row[4], start=row[5], body_start=row[6], end=row[7],
        )
        for row in data["scopes"]
    ]  # fmt: skip
    path = RepoPath(data["path"])
    return Sample(
        origin=data["origin"],
        kind=data["kind"],
        reader=data.get("reader", ""),  # those of before it was kept are read anew
        path=data["path"],
        source=data["source"].encode("latin-1"),
        truth=tuple(data["truth"]),
        edits=tuple(
            Edit(
                path=path,
                splices=tuple(Splice(start=a, end=b, text=t.encode("latin-1")) for a, b, t in splices),
                operator=operator,
                line=line,
                end_line=end_line,
                prior=prior,
                scope=scopes[scope],
            )
            for splices, operator, line, end_line, prior, scope, _ in data["edits"]
        ),
        readings=tuple(Reading(ratio=row[6][0], stood=row[6][1]) if row[6] else None for row in data["edits"]),
    )
