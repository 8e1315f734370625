"""Makes WORK/faults.jsonl: a fault drawn into the repaired tree of each learning fact, one edit, drawn at random.

  faults.py --repos DIR --work DIR [--only RE]

What people repair is often out of a search's reach; then nothing is learned about right patches of real code. A fault
of the edit space lies in reach. It is put on a line that few of the fact's tests run, and one is taken that makes one
to four of them fail. A line names the fact, the file and the splices (from, to, text) in bytes of the repaired file.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from zlib import crc32

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.real import judge, layout
from bench.right import projects
from localagent.app.settings import Settings
from localagent.domain.outcome import Baseline
from localagent.domain.paths import RepoPath
from localagent.domain.task import Budget, Task
from localagent.edit.space import open_edit_space
from localagent.errors import LocalagentError
from localagent.jail.api import open_jail, scratch_folder
from localagent.repair.search.code_equivalence import behaviour_key
from localagent.repair.search.event_fanout import combined
from localagent.repo.snapshot import take_snapshot
from localagent.verify.evidence.mutants import mutants_of
from localagent.verify.verifier import JailVerifier

MOST_FAILING = 4
MOST_TRIED = 15
_LEAST_LINES, _LINES = 2, 40
_SHARE = 0.15  # of the tests: a line that more of them run is not taken


def baseline_of(project: projects.Project, settings: Settings) -> Baseline:
    """The outcomes of the tree as it lies, with the lines that each test runs."""
    with scratch_folder(settings.scratch_dir) as scratch:
        task = Task(
            id="faults",
            repo=str(project.tree),
            tests=project.tests,
            python=str(project.python),
            budget=Budget(max_seconds=200.0),
        )
        verifier = JailVerifier(
            jail=open_jail(),
            task=task,
            snapshot=take_snapshot(project.tree, scratch / "store"),
            python=str(project.python),
            scratch=scratch,
            sandbox_dir=settings.sandbox_dir,
            policy=None,
            sink=combined(()),
        )
        try:
            return verifier.baseline()
        finally:
            verifier.cancel()


def lines_of(baseline: Baseline, tests: tuple[str, ...]) -> Mapping[RepoPath, list[int]]:
    """Lines of sources that some but few tests run, by file."""
    run: Counter[tuple[RepoPath, int]] = Counter()
    for result in baseline.tests:
        for path, lines in (result.lines or {}).items():
            run.update((path, line) for line in lines)
    most = max(3, int(_SHARE * len(baseline.tests)))
    found: dict[RepoPath, list[int]] = {}
    for (path, line), times in sorted(run.items()):
        at_import = line in baseline.import_lines.get(path, frozenset())
        of_tests = any(part in ("test", "tests", "testing") for part in path.split("/"))
        if times <= most and not at_import and not of_tests:
            found.setdefault(path, []).append(line)
    return {path: lines for path, lines in found.items() if len(lines) >= _LEAST_LINES}


def draw(project: projects.Project, baseline: Baseline) -> Iterator[dict[str, Any]]:
    """The first fault that makes one to four tests fail, if any."""
    assert project.fact is not None
    name = project.fact.name
    lines = lines_of(baseline, project.tests)
    order = sorted(((p, n) for p in lines for n in lines[p]), key=lambda at: crc32(f"{name} {at}".encode()))[:_LINES]
    wanted: dict[RepoPath, frozenset[int]] = {}
    for path, line in order:
        wanted[path] = wanted.get(path, frozenset()) | {line}
    sources = {path: (project.tree / path).read_bytes() for path in wanted if path.endswith(".py")}
    wanted = {path: found for path, found in wanted.items() if path in sources}
    drawn, _ = mutants_of(open_edit_space({}), sources, wanted, behaviour_key, seed=crc32(name.encode()), most=60)
    drawn.sort(key=lambda candidate: crc32(f"{name} {candidate.number}".encode()))
    good = judge.run_tests(project.tree, project.python, project.tests).good()
    for candidate in drawn[:MOST_TRIED]:
        (edit,) = candidate.edits
        place = project.tree / edit.path
        place.write_bytes(edit.apply(sources[edit.path]))
        told = judge.run_tests(project.tree, project.python, project.tests, wall_seconds=60.0)
        place.write_bytes(sources[edit.path])
        bad = good & told.bad()
        if told.tests and 1 <= len(bad) <= MOST_FAILING and good <= set(told.tests):
            splices = [[s.start, s.end, s.text.decode()] for s in edit.splices]
            yield {"name": f"{name}-fault", "fact": name, "path": edit.path, "splices": splices}
            return


def main() -> int:
    """0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    projects.add_arguments(parser)
    parser.add_argument("--part", default="0/1", help="K/N: each N-th fact, from the K-th")
    args = parser.parse_args()
    args.repos, args.work, args.half = args.repos.absolute(), args.work.absolute(), "learning"
    settings = replace(Settings.from_environ(), state_dir=args.work / "state")
    part, of = map(int, args.part.split("/"))
    out = args.work / projects.FAULTS
    known = out.read_text("utf-8") if out.exists() else ""
    with out.open("a", encoding="utf-8") as file:
        for number, name in enumerate(projects.names(args)):
            if number % of != part or f'"{name}-fault"' in known:
                continue
            try:
                project = projects.lay_out(name, args)
                for path, text in project.reference.items():
                    (project.tree / path).write_bytes(text)
                made = list(draw(project, baseline_of(project, settings)))
            except (LocalagentError, layout.LayoutError) as fault:
                print(f"{name:34} no fault: {fault}", flush=True)
                continue
            for fault_line in made:
                file.write(json.dumps(fault_line, sort_keys=True) + "\n")
                file.flush()
            print(f"{name:34} {len(made)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
