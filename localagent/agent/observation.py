"""What a run of an analysis script came to: what it printed, which files it left; and in what two runs of it differ.

Kept in the session's log as JSON, so that a session that was killed or taken back a step knows what it showed.
"""

import ast
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from localagent.code.names import imports_of
from localagent.code.source_text import parse_or_none
from localagent.text.strict_json import dump, load
from localagent.text.visible_text import one_line

_MOST_TEXT = 20_000
_SHOWN = 5
_TIME_CALLS = frozenset(
    {"now", "today", "utcnow", "time", "time_ns", "perf_counter", "monotonic", "ctime", "localtime"}
)
_TIMED_FORMATS = (".svg", ".pdf", ".xlsx", ".zip", ".gz", ".pkl", ".pickle")


@dataclass(frozen=True, kw_only=True, slots=True)
class Observation:
    """One run. `printed`: digest of the first `length` bytes of standard output; `text`: its beginning, to be read.

    `files`: digest by escaped name.
    """

    printed: str
    length: int
    text: str
    files: Mapping[str, str]

    @classmethod
    def of(cls, stdout: bytes, text: str, files: Mapping[str, str]) -> "Observation":
        """Of what a run printed, as bytes and as it may be read, and of its files."""
        return cls(printed=_digest(stdout), length=len(stdout), text=text[:_MOST_TEXT], files=dict(files))

    def begins(self, stdout: bytes) -> bool:
        """Whether another run's output begins with all that this one printed."""
        return _digest(stdout[: self.length]) == self.printed

    def json(self) -> str:
        """To be kept."""
        data = {"printed": self.printed, "length": self.length, "text": self.text, "files": dict(self.files)}
        return dump(data).decode("utf-8", "surrogateescape")


def parse_observation(text: str) -> Observation:
    """An observation that was kept. ValueError for anything else."""
    try:
        found = load(text.encode("utf-8", "surrogateescape"))
        return Observation(
            printed=str(found["printed"]),
            length=int(found["length"]),
            text=str(found["text"]),
            files={str(name): str(digest) for name, digest in found["files"].items()},
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"not an observation: {error}") from error


def differences(before: Observation, after: Observation) -> tuple[str, ...]:
    """In what a second run differs from the first; empty where it printed the same and left the same files."""
    found = []
    for why, names in (
        ("not there any more", [n for n in before.files if n not in after.files]),
        ("was not there before", [n for n in after.files if n not in before.files]),
        ("has other bytes", [n for n, d in before.files.items() if after.files.get(n, d) != d]),
    ):
        found += [f"{name} {why}" for name in names[:_SHOWN]]
        found += [f"{len(names) - _SHOWN} more files: {why}"] if len(names) > _SHOWN else []
    if (before.printed, before.length) != (after.printed, after.length):
        found.append(_first_difference(before.text, after.text))
    return tuple(found)


def _first_difference(before: str, after: str) -> str:
    lines = zip(before.split("\n"), after.split("\n"), strict=False)
    for number, (was, now) in enumerate(lines, 1):
        if was != now:
            return f"it prints in line {number} {one_line(now, 120)!r}, and printed {one_line(was, 120)!r}"
    return "it prints another text"


def likely_causes(script: str, differing: Sequence[str]) -> tuple[str, ...]:
    """What in a script can make two runs of it differ: chance, the clock, formats that hold the time. Signs only."""
    tree = parse_or_none(script)
    found = list(dict.fromkeys(_causes(tree))) if tree is not None else []
    if any(text.partition(" ")[0].lower().endswith(_TIMED_FORMATS) for text in differing):
        found.append("formats that hold the time or random names (SVG, PDF, XLSX, archives): write PNG or CSV")
    return tuple(found)


def _causes(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        for name in imports_of(node):
            if name.origin.partition(".")[0] in ("random", "secrets", "uuid"):
                yield "random numbers: seed them (random.seed(0))"
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        if ".random." in f"{called.removeprefix('random.')}." or called.endswith(
            (".sample", ".shuffle", "default_rng")
        ):
            yield "random numbers of numpy or pandas: give a seed (default_rng(0), random_state=0)"
        if called.rpartition(".")[2] in _TIME_CALLS and called != "time":
            yield "the time of day: leave it out"
        if called in ("set", "frozenset", "hash", "id"):
            yield "the order of sets, hashes of texts, addresses: sort"


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"
