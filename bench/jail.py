"""The jail in figures: what its start costs, whether its backends agree, what it leaves behind.

`python bench/jail.py [--only start,same,leaks,kills] [--pairs 60] [--runs 10000] [--jobs 2] [--kills 200] [--json]`
Ends with 1 when a bar is missed: a start above 1.5 times the bare program's, a difference, anything left.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from jail_leaks import kill_parents, run_many  # noqa: E402
from jail_programs import compare, programs  # noqa: E402
from jail_start import measure  # noqa: E402

from localagent.errors import CannotEnforce  # noqa: E402
from localagent.jail.api import BackendKind, NamespaceJail, open_jail  # noqa: E402

RATIO_BAR = 1.5


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One line of the table."""

    what: str
    figure: str
    holds: bool
    facts: dict[str, object]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PARTS), help=f"parts, of {', '.join(PARTS)}")
    parser.add_argument("--pairs", type=int, default=60, help="pairs of starts for each backend")
    parser.add_argument("--runs", type=int, default=10_000, help="jails whose leavings are counted")
    parser.add_argument("--jobs", type=int, default=2, help="of them at once")
    parser.add_argument("--kills", type=int, default=200, help="parents that are killed")
    parser.add_argument("--seed", type=int, default=0, help="of the moments of the kills")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    args = parser.parse_args()
    wanted = args.only.split(",")
    unknown = sorted(set(wanted) - set(PARTS))
    if unknown:
        parser.error(f"--only: no such part: {', '.join(unknown)}")
    jails = list(_jails())
    holds = True
    with tempfile.TemporaryDirectory(prefix="localagent-bench-") as name:
        Path(name).chmod(0o755)
        for part in wanted:
            for row in PARTS[part](jails, args, Path(name)):
                holds = holds and row.holds
                print(json.dumps(asdict(row)) if args.json else _line(row), flush=True)
    if not args.json:
        print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    return 0 if holds else 1


def _tell(text: str) -> None:
    """Progress of the long parts."""
    print(f"  {text}", file=sys.stderr, flush=True)


def _line(row: Row) -> str:
    return f"{row.what:<34} {row.figure:<58} {'holds' if row.holds else 'MISSED'}"


def _jails() -> Iterator[NamespaceJail]:
    for kind in BackendKind:
        try:
            yield open_jail(backend=kind)
        except CannotEnforce as fault:
            print(f"{kind} left out: {fault}", file=sys.stderr)


def _start(jails: list[NamespaceJail], args: argparse.Namespace, folder: Path) -> Iterator[Row]:
    for jail in jails:
        alike = NamespaceJail(replace(jail._backend, landlock=None))  # the bare program puts up no second wall
        for what, measured, bar in (("start", jail, RATIO_BAR), ("without Landlock", alike, float("inf"))):
            seen = measure(measured, args.pairs)
            figure = f"{seen.ours_ms} ms, bare {seen.bare_ms} ms, {seen.ratio} times ({seen.pairs} pairs)"
            yield Row(what=f"{what}, {seen.backend}", figure=figure, holds=seen.ratio <= bar, facts={**asdict(seen)})


def _same(jails: list[NamespaceJail], args: argparse.Namespace, folder: Path) -> Iterator[Row]:
    if len(jails) < 2:
        yield Row(what="same answers", figure="not compared: one backend alone", holds=True, facts={})
        return
    differences = compare(jails[0], jails[1], folder)
    figure = f"{len(differences)} differences over {len(programs())} programs"
    yield Row(what="same answers", figure=figure, holds=not differences, facts={"differences": differences})
    for difference in differences:
        print(f"  {difference}", file=sys.stderr)


def _leaks(jails: list[NamespaceJail], args: argparse.Namespace, folder: Path) -> Iterator[Row]:
    began = time.monotonic()
    left = run_many(jails, args.runs, folder, jobs=args.jobs, tell=_tell)
    words = ", ".join(f"{number} {name}" for name, number in asdict(left).items())
    figure = f"{words} ({args.runs} runs, {args.jobs} at once, {time.monotonic() - began:.0f} s)"
    yield Row(what="left after many runs", figure=figure, holds=not left, facts={"runs": args.runs, **asdict(left)})


def _kills(jails: list[NamespaceJail], args: argparse.Namespace, folder: Path) -> Iterator[Row]:
    left = kill_parents(jails, args.kills, args.seed, tell=_tell)
    figure = f"{sum(left)} orphans after 2 s ({len(left)} kills, seed {args.seed})"
    yield Row(what="left by killed parents", figure=figure, holds=not any(left), facts={"orphans": left})


PARTS: dict[str, Callable[[list[NamespaceJail], argparse.Namespace, Path], Iterator[Row]]] = {
    "start": _start,
    "same": _same,
    "leaks": _leaks,
    "kills": _kills,
}

if __name__ == "__main__":
    sys.exit(main())
