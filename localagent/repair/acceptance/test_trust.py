"""Whether the tests can be believed: the controls are run before any candidate is."""

import concurrent.futures as cf

from localagent.domain.edit import Candidate, FileChange, Patch
from localagent.ports import QuickCheck
from localagent.repair.acceptance.control_edits import breaking, no_op
from localagent.repair.search.candidate_timeouts import cpu_seconds
from localagent.repair.search.run_context import RunContext


def distrust(run: RunContext, quick: QuickCheck, pool: cf.Executor) -> str:
    """The reason not to believe the tests, or ""."""
    top = run.suspicions[0]
    source = run.parts.sources[top.path]
    scope = run.frontier.scope_at(top.path, top.line)
    edits = (no_op(top.path, source, scope), *breaking(top.path, source, top.line, scope))
    cpu = cpu_seconds(run.baseline)
    jobs = [
        pool.submit(
            quick.check,
            Candidate(
                number=0,
                patch=Patch(changes=(FileChange(path=top.path, before=source, after=e.apply(source)),)),
                edits=(e,),
                cost=0.0,
            ),
            cpu_seconds=cpu,
            stop_early=True,
        )
        for e in edits
    ]
    answers = [j.result() for j in jobs]
    run.emit("controls", plausible=[a.plausible for a in answers])
    if answers[0].plausible:
        return (
            "the failing tests pass after an edit that changes nothing: they depend on chance or on state, "
            "and no patch could be believed"
        )
    if all(a.plausible for a in answers[1:]):
        return (
            f"the failing tests pass even when {top.path}:{top.line} is broken on purpose: they do not check it, "
            "and no patch could be believed"
        )
    return ""
