"""Edits that the model writes, beside the enumerated ones: when to ask for more, and what they may cost the others.

The writer works on a thread of its own. While cheap enumerated steps are open it gets at most a fifth of the seconds,
and no turn before the likeliest of them had theirs unless it is cheaper; once they are used up, or the task's last
candidates are kept for it (`loop`), it may go on alone for a while.
As soon as a candidate is plausible nothing more is written.
"""

import concurrent.futures as cf
from collections.abc import Mapping, Sequence

from localagent.domain.edit import Written
from localagent.domain.paths import RepoPath
from localagent.repair.search.run_context import RunContext
from localagent.repair.search.search_node import Lineage, SearchStep
from localagent.repair.search.syntax_only import unparsed

SECONDS_SHARE = 0.2  # of the search's seconds while cheap enumerated steps are open (cheaper than a span's price),
DEAR_SHARE = 0.5  # and when they are not; the writer works beside the checks
STEP_SECONDS = 20.0
ALONE_SECONDS = 60.0  # at most, and at most half of what is left
WAITING = 8  # written steps not yet tried: then there is no need for more


class Writing:
    """The written part of one task's search. Close it with `close`."""

    def __init__(self, run: RunContext, lines: Mapping[RepoPath, Mapping[int, float]], root: Lineage) -> None:
        self._run, self._lines, self._root = run, lines, root
        self._pool = cf.ThreadPoolExecutor(1, thread_name_prefix="write")
        self._job: cf.Future[Sequence[Written]] | None = None
        self._began = run.clock()
        self._job_began = self._spent = 0.0
        self._alone_until: float | None = None
        self._planned = False
        self._broken = bool(unparsed(root.failures, run.parts.sources))

    def close(self) -> None:
        """Give up what has not begun."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def turn(self) -> None:
        """Take what was written, and ask for more where that is worth it now. Costs no time."""
        run = self._run
        self._take()
        cheap = run.frontier.next_cost < run.parts.weights.written
        allowed = (SECONDS_SHARE if cheap else DEAR_SHARE) * (run.clock() - self._began)
        busy = run.state.awaits_order or run.state.reading_on
        if self._may_ask() and not busy and self._worth() and self._spent <= allowed:
            self._ask()

    def alone(self) -> bool:
        """Wait a moment for the writer when nothing else is left to do; False when that is not worth it (any more)."""
        run = self._run
        if self._alone_until is None:
            self._alone_until = run.clock() + min(ALONE_SECONDS, 0.5 * max(0.0, run.left()))
        self._take()
        if run.frontier.written:
            return True
        if run.clock() > self._alone_until or (self._job is None and not self._may_ask()):
            return False
        if self._job is None:
            self._ask()
        if self._job is not None:
            cf.wait([self._job], timeout=0.1)
            self._take()
        return True

    def _may_ask(self) -> bool:
        """Whether the writer is free, may be asked, and has something to go on with."""
        run, writer = self._run, self._run.parts.writer
        if writer is None or self._job is not None or run.left() <= 0 or settled(run):
            return False
        if self._broken:
            return False  # where a file does not parse there are no lines to write upon
        return not self._planned or writer.next_cost < float("inf")

    def _worth(self) -> bool:
        """Whether a written edit may be cheaper than the enumerated ones, or the likeliest of those are through."""
        run, writer = self._run, self._run.parts.writer
        assert writer is not None
        if run.frontier.written >= WAITING:
            return False
        next_written = writer.next_cost if self._planned else run.parts.weights.written
        return run.frontier.seasoned or next_written < run.frontier.next_cost

    def _ask(self) -> None:
        self._job_began = self._run.clock()
        self._job = self._pool.submit(self._more)

    def _more(self) -> Sequence[Written]:
        """Runs on the writer's thread."""
        run, writer = self._run, self._run.parts.writer
        assert writer is not None
        if not self._planned:
            writer.begin(run.parts.sources, run.suspicions, run.baseline)
            self._planned = True
        return writer.more(timeout_seconds=max(1.0, min(STEP_SECONDS, run.left())))

    def _take(self) -> None:
        if self._job is None or not self._job.done():
            return
        found, self._job = self._job.result(), None
        self._spent += self._run.clock() - self._job_began
        for written in found:
            self._push(written)
        self._run.emit("written", edits=len(found))

    def _push(self, written: Written) -> None:
        run, edit = self._run, written.edit
        best = run.suspicions[0].score or 1.0
        scores = self._lines.get(edit.path, {})
        cost = run.order.cost(self._root, edit, scores, best, None) - written.score
        run.state.written += 1
        run.frontier.push_written(SearchStep(parent=self._root, edit=edit, cost=cost, model_score=written.score))


def settled(run: RunContext) -> bool:
    """Whether a candidate is plausible and was not rejected: then there is no call for inventions."""
    return any(c.number not in run.state.rejected for c in run.state.plausible)
