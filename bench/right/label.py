"""Labels plausible patches against the fix that people made: same, equal, differs (with an input), or unclear.

  label.py --repos DIR --work DIR [--half judging|learning|small|mutated|syntax] [--only RE] [--part K/N]

`same`: equal syntax trees, docstrings and layout aside. `equal`: every function that the two differ in was compared and
gave equal answers, on at least LEAST_INPUTS inputs of tests, near these, and made up. `differs`: an input on which they
answer otherwise is named; so is a hidden test of a small case that fails. `unclear`: anything else; a reader decides,
with both diffs beside each other (`review.py`). Limitations: equal answers are no proof of equality, and inputs that no
caller makes may be what tells two right programs apart; a reader's word, kept in `labels.json`, wins.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench import judge as cases
from bench.real import layout
from bench.real.judge import same_code
from bench.right import projects
from bench.right.candidates import Found, load
from localagent.app.settings import Settings
from localagent.domain.edit import Candidate
from localagent.domain.paths import RepoPath
from localagent.domain.task import Budget, Task
from localagent.domain.verification import Differential
from localagent.errors import LocalagentError
from localagent.jail.api import open_jail, scratch_folder
from localagent.repair.search.event_fanout import combined
from localagent.repo.snapshot import take_snapshot
from localagent.verify.evidence.changed_lines import ChangedFile
from localagent.verify.evidence.differential import Differ
from localagent.verify.verifier import JailVerifier

LEAST_INPUTS = 30
SECONDS = 20.0


def labels(project: projects.Project, found: Found, settings: Settings) -> dict[str, Any]:
    """By the digest of a patch: the label and why."""
    out: dict[str, Any] = {}
    rest = []
    for candidate in found.candidates:
        if _same(candidate, project.reference):
            out[candidate.patch.digest] = {"label": "same", "why": ""}
        else:
            rest.append(candidate)
    if rest and project.hidden:
        out.update(_by_hidden_tests(project, rest))
        if project.half in ("mutated", "syntax"):  # the hidden tests were written for another fault
            rest = [candidate for candidate in rest if out[candidate.patch.digest]["label"] == "equal"]
            out.update(_by_answers(project, rest, settings) if rest else {})
    elif rest:
        out.update(_by_answers(project, rest, settings))
    return out


def _same(candidate: Candidate, reference: Mapping[str, bytes]) -> bool:
    after = {str(c.path): c.after for c in candidate.patch.changes}
    before = {str(c.path): c.before for c in candidate.patch.changes}
    return all(path in after and same_code(after[path], text) for path, text in reference.items()) and all(
        path in reference or same_code(text, before[path]) for path, text in after.items()
    )


_EACH = """
import os, resource, sys
import pytest
for name in sorted(os.listdir("/case")):
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_CPU, (10, 10))
        out = os.open("/dev/null", os.O_WRONLY)
        os.dup2(out, 1)
        os.dup2(out, 2)
        os.chdir("/case/" + name)
        sys.path.insert(0, os.getcwd())
        os._exit(int(pytest.main(["-q", "-x", "-p", "no:cacheprovider", "--rootdir", ".", "tests"])))
    open("/out/" + name, "w").write(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))
"""


def _by_hidden_tests(project: projects.Project, rest: Sequence[Candidate]) -> dict[str, Any]:
    """Every candidate of a small case in one jail, each in a process of its own, after the reference."""
    case = next(case for case in projects.cases(project.half) if case.id == project.name)
    everything = {**case.project, **case.hidden}
    trees = {"reference": case.oracle}
    trees |= {str(c.number): {str(x.path): x.after.decode() for x in c.patch.changes} for c in rest}
    with tempfile.TemporaryDirectory(prefix="label-") as folder:
        tree, out = Path(folder, "trees"), Path(folder, "out")
        out.mkdir()
        for name, files in trees.items():
            cases.write(tree / name, {**everything, **files})
        argv = cases.jail_argv(tree, out, Path(sys.executable).absolute())
        at = argv.index("-I")
        subprocess.run([*argv[:at], "-I", "-B", "-c", _EACH], capture_output=True, check=False, timeout=600)
        passed = {path.name: path.read_text() == "0" for path in out.iterdir()}
    if not passed.get("reference"):
        raise cases.JudgeError(f"{project.name}: the reference does not pass its tests")
    right, wrong = {"label": "equal", "why": "every test passes"}, {"label": "differs", "why": "a hidden test fails"}
    return {c.patch.digest: right if passed.get(str(c.number)) else wrong for c in rest}


def _by_answers(project: projects.Project, rest: list[Candidate], settings: Settings) -> dict[str, Any]:
    """The reference's tree and each candidate's, asked side by side."""
    for path, text in project.reference.items():
        (project.tree / path).write_bytes(text)
    out = {}
    with scratch_folder(settings.scratch_dir) as scratch, tempfile.TemporaryDirectory() as home:
        snapshot = take_snapshot(project.tree, scratch / "store")
        task = Task(
            id="label",
            repo=str(project.tree),
            tests=project.tests,
            python=str(project.python),
            budget=Budget(max_seconds=200.0),
        )
        verifier = JailVerifier(
            jail=open_jail(),
            task=task,
            snapshot=snapshot,
            python=str(project.python),
            scratch=scratch,
            sandbox_dir=settings.sandbox_dir,
            policy=None,
            sink=combined(()),
        )
        try:
            baseline = verifier.baseline()
            for candidate in rest:
                files = list(_files(candidate, project.reference))
                reached = [
                    t.id
                    for t in baseline.tests
                    if t.outcome.good and (t.lines is None or any(t.lines.get(f.source) for f in files))
                ]
                differ = Differ(
                    verifier.worker_pool,
                    verifier.worker_pool,
                    verifier.request,
                    files,
                    seed=0,
                    home=Path(home),
                    share=True,
                )
                near = differ.compare(baseline, reached, ())
                out[candidate.patch.digest] = _label(near)
        finally:
            verifier.cancel()
    return out


def _files(candidate: Candidate, reference: Mapping[str, bytes]) -> Iterator[ChangedFile]:
    """From the reference's text to the candidate's, for each file that either changes."""
    after = {c.path: c for c in candidate.patch.changes}
    for path in sorted({*after, *map(RepoPath, reference)}):
        change = after.get(path)
        if change is None:
            continue  # the candidate leaves the file as it was; what the reference makes of it is the difference
        before = reference.get(str(path), change.before)
        file = ChangedFile(path=path, source=path, before=before, after=change.after)
        if not file.alike():
            yield file


def _label(near: Differential) -> dict[str, Any]:
    if near.differences:
        first = near.differences[0]
        many = len(near.differences) + near.differences_left_out
        why = f"{many} of {near.inputs} inputs, as {first.call}: {first.old} (people's) and {first.new}"
        return {"label": "differs", "why": why[:600], "differences": many, "inputs": near.inputs}
    reached = [f for f in near.functions if f.reached]
    if near.functions and len(reached) == len(near.functions) and near.inputs >= LEAST_INPUTS:
        return {"label": "equal", "why": f"on {near.inputs} inputs", "inputs": near.inputs}
    why = "; ".join((*near.notes, *(f"{f.function}: {f.why}" for f in near.functions if f.why))) or "nothing to compare"
    return {"label": "unclear", "why": why[:600], "inputs": near.inputs}


def main() -> int:
    """0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    projects.add_arguments(parser)
    parser.add_argument("--part", default="0/1", help="K/N: each N-th project, from the K-th")
    args = parser.parse_args()
    args.repos, args.work = args.repos.absolute() if args.repos else None, args.work.absolute()
    settings = replace(Settings.from_environ(), state_dir=args.work / "state")
    part, of = map(int, args.part.split("/"))
    for number, name in enumerate(projects.names(args)):
        source, out = args.work / "candidates" / f"{name}.json", args.work / "labels" / f"{name}.json"
        if number % of != part or out.exists() or not source.exists():
            continue
        try:
            made = labels(projects.lay_out(name, args), load(source), settings)
        except (LocalagentError, layout.LayoutError, cases.JudgeError) as fault:
            print(f"{name:34} not labelled: {fault}", flush=True)
            continue
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(made, indent=1), encoding="utf-8")
        counts = {k: sum(x["label"] == k for x in made.values()) for k in ("same", "equal", "differs", "unclear")}
        print(f"{name:34} {counts}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
