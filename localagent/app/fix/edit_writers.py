"""Who writes edits for a task: the span search, and whoever asks the model for whole answers in ways it understands."""

from collections.abc import Sequence

from localagent.domain.edit import SPAN
from localagent.domain.outcome import Baseline
from localagent.domain.paths import RepoPath
from localagent.domain.task import Task
from localagent.errors import UsageFault
from localagent.llm.process.model_client import Served
from localagent.llm.scoring.test_context import FAILING_BYTES, build_failing
from localagent.llm.writing.combined_writer import Several
from localagent.llm.writing.completion_writer import SampleWriter
from localagent.llm.writing.reply_parser import ReplyFormat
from localagent.llm.writing.span_writer import SpanWriter
from localagent.ports import EditWriter, Sources
from localagent.repair.ordering.weights import Weights
from localagent.repair.search.partial_progress import baseline_failures

NAMES = (SPAN, *(way.value for way in ReplyFormat))
_REMOVED = {  # what was a way of writing, and what is one instead
    "continue": SPAN,
    "fim": SPAN,
    "choice": SPAN,
    "line": ReplyFormat.SEARCH.value,
    "skeleton": ReplyFormat.FUNCTION.value,
    "chat": f"{ReplyFormat.SEARCH.value}` and `{ReplyFormat.FUNCTION.value}",
}


def known_ways(names: Sequence[str]) -> tuple[str, ...]:
    """The names of ways, each once; UsageFault for those that are none, or not any more."""
    faults = [
        f"the way of writing {name!r} was removed: use `{_REMOVED[name]}`"
        if name in _REMOVED
        else f"no way of writing is called {name!r} (known: {', '.join(NAMES)})"
        for name in names
        if name not in NAMES
    ]
    if faults:
        raise UsageFault(faults)
    return tuple(dict.fromkeys(names))


def measured_ways(names: Sequence[str]) -> tuple[str, ...]:
    """The ways that a model's manifest names; where it was measured before they were removed, span search."""
    return tuple(name for name in names if name not in _REMOVED) or (SPAN,)


def open_writer(
    served: Served,
    ways: Sequence[str],
    weights: Weights,
    sources: Sources,
    task: Task,
    *,
    tests: str = "",
) -> EditWriter:
    """The same model in the same child, writing what the edit space lacks, in the ways that were named.

    `tests` stands for the failing tests' text where no baseline knows them.
    """

    def context(_path: RepoPath, baseline: Baseline) -> str:
        if tests:
            return tests[:FAILING_BYTES].rpartition("\n")[0] + "\n"
        failing = set(baseline.failing)
        names: dict[RepoPath, list[str]] = {}
        for test in baseline.tests:
            if test.id in failing and test.path is not None and test.path in sources:
                names.setdefault(test.path, []).append(test.id)
        texts = [(path, sources[path], ids) for path, ids in names.items()]
        return build_failing(texts, baseline_failures(baseline), task=task.text)

    names = known_ways(ways)
    asked = [ReplyFormat(name) for name in names if name != SPAN]
    writers: list[EditWriter] = []
    if SPAN in names:
        writers.append(SpanWriter(served, context, localization=weights.localization, malus=weights.written))
    if asked:
        writers.append(
            SampleWriter(
                served,
                context,
                ways=asked,
                task=task.text,
                seed=task.seed,
                localization=weights.localization,
                malus=weights.written,
            )
        )
    return writers[0] if len(writers) == 1 else Several(writers)
