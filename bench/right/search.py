"""Finds the plausible patches that `localagent fix` would choose from, and keeps them in the work folder.

  search.py --repos DIR --work DIR [--only RE] [--every N] [--max-candidates 500] [--max-seconds 120]
  search.py --half judging|small ...            other projects than the learning facts

A fact that has its file already is left alone. Needs the environments that `bench/real/run.py` makes.
"""

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.real import facts, layout
from bench.right import projects
from bench.right.candidates import Found, save
from localagent.app.cancellation import Stop
from localagent.app.fix.pipeline import FixWork, WorkScope, work
from localagent.app.fix.request import FixRequest
from localagent.app.policies import open_policy
from localagent.app.settings import Settings
from localagent.domain.guard import Guard, GuardScope
from localagent.domain.task import Budget, Choosing, Task
from localagent.errors import LocalagentError
from localagent.repair.search.event_fanout import combined


def search(project: projects.Project, args: argparse.Namespace, settings: Settings) -> Found:
    """One task, nothing of it recorded; no strength is measured."""
    budget = Budget(max_candidates=args.max_candidates, max_seconds=args.max_seconds, jobs=1)
    task = Task(
        id="bench",
        repo=str(project.tree),
        tests=project.tests,
        python=str(project.python),
        budget=budget,
        choosing=Choosing.ASSUME,
        guard=Guard(scope=GuardScope.NONE),
    )
    asked = FixWork(
        request=FixRequest(repo=project.tree, use_model=not args.no_model, threads=1, budget=budget),
        task=task,
        settings=settings,
        policy=open_policy(settings).policy,
        sink=combined(()),
        stop=Stop(),
        seen=lambda _: None,
        scope=WorkScope.SEARCH,
    )
    begin = time.monotonic()
    result = work(asked)
    return Found(
        name=project.name,
        candidates=result.plausible_candidates,
        verified=result.verified,
        outcome=result.verdict.value,
        chosen=result.chosen.number if result.chosen is not None else None,
        seconds=round(time.monotonic() - begin, 1),
    )


def main() -> int:
    """0 unless nothing could be searched."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    projects.add_arguments(parser)
    parser.add_argument("--max-candidates", type=int, default=500)
    parser.add_argument("--max-seconds", type=float, default=120.0)
    parser.add_argument("--no-model", action="store_true")
    parser.add_argument("--part", default="0/1", help="K/N: each N-th fact, from the K-th")
    args = parser.parse_args()
    args.repos, args.work = args.repos.absolute() if args.repos else None, args.work.absolute()
    settings = replace(Settings.from_environ(), state_dir=args.work / "state")
    part, of = map(int, args.part.split("/"))
    done = 0
    for number, named in enumerate(projects.names(args)):
        out = args.work / "candidates" / f"{named}.json"
        if number % of != part or out.exists():
            continue
        try:
            project = projects.lay_out(named, args)
            found = search(project, args, settings)
        except (LocalagentError, layout.LayoutError, facts.FactsError) as fault:
            print(f"{named:34} not searched: {fault}", flush=True)
            continue
        save(out, found)
        done += 1
        print(
            f"{named:34} {found.outcome:16} {len(found.candidates):3} plausible of {found.verified:4}"
            f" in {found.seconds:5.1f} s",
            flush=True,
        )
    return 0 if done else 1


if __name__ == "__main__":
    sys.exit(main())
