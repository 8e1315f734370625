"""Which failing test a dossier is about: the one that is named, the first, or one that fails as a traceback does."""

import contextlib
import shlex
from collections.abc import Sequence

from localagent.app.reproduce.request import test_in_trace
from localagent.code.source_text import parse_or_none
from localagent.code.spans import functions, lines_of
from localagent.debug.frame_mapping import FrameMapper
from localagent.debug.tracebacks import parse_tracebacks
from localagent.domain.outcome import Baseline, Failure
from localagent.errors import AnswerIsNo, UsageFault
from localagent.ports import Sources
from localagent.report.repair_reasons import causes_remedy

NAME_ONE = (
    "name a test that fails (`localagent debug tests/test_it.py::test_one`), a command with --check, or a traceback "
    "(`localagent debug FILE`, or `-` for standard input)"
)


def chosen_failure(baseline: Baseline, wanted: str) -> tuple[str, Failure]:
    """The failing test that is meant, else the first. AnswerIsNo where it does not fail."""
    failures: dict[str, Failure] = {t.id: t.failure for t in baseline.tests if t.failure is not None}
    failures |= dict(baseline.collect_failures)
    failures |= {f"check:{c.command}": c.failure for c in baseline.checks if c.failure is not None}
    every = {t.id for t in baseline.tests} | set(failures)
    if "::" in wanted and not baseline.collect_failures and not any(_selects(wanted, name) for name in every):
        raise UsageFault(f"{wanted}: no such test is collected", remedy="name it as `pytest --collect-only -q` does")
    known = [name for name in baseline.failing if name in failures]
    named = [name for name in known if "::" not in wanted or _selects(wanted, name)]
    if not named:
        if baseline.causes:
            raise AnswerIsNo(
                "; ".join(cause.sentence for cause in baseline.causes), remedy=causes_remedy(baseline.causes)
            )
        if flaky := [name for name in baseline.flaky if "::" not in wanted or _selects(wanted, name)]:
            raise AnswerIsNo(
                f"{_shown(flaky)} {'fails' if len(flaky) == 1 else 'fail'} only sometimes; nothing else fails",
                remedy=f"`localagent reproduce {shlex.quote(flaky[0])} --flaky` tells what that depends on: "
                "order, time, randomness, files left behind",
            )
        flaky_form = f"localagent reproduce {shlex.quote(wanted)} --flaky"
        remedy = f"if it fails sometimes: `{flaky_form}`; else {NAME_ONE}" if wanted else NAME_ONE
        raise AnswerIsNo(f"{wanted or 'every test'} passes here", remedy=remedy)
    return named[0], failures[named[0]]


def _shown(names: Sequence[str], most: int = 3) -> str:
    """The first of some names, and how many there are more."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def traced_test(trace: bytes, baseline: Baseline, sources: Sources) -> str:
    """The failing test that a traceback passes through, else the first that fails as its last exception did.

    That is: with the same type of exception, innermost in the same function here. AnswerIsNo where there is none.
    """
    tracebacks = parse_tracebacks(trace)
    if not tracebacks:
        raise AnswerIsNo("no traceback is in the text", remedy=NAME_ONE)
    mapper = FrameMapper(sources)
    with contextlib.suppress(AnswerIsNo):
        named = test_in_trace(trace.decode("utf-8", "replace"), sources)
        if any(_selects(named, name) for name in baseline.failing):
            return named
    surfaced = tracebacks[-1].surfaced
    here = [f for f in mapper.map(surfaced.frames) if f.path is not None]
    if not here or here[-1].path is None:
        raise AnswerIsNo("no frame of the traceback lies in this repository", remedy=NAME_ONE)
    path, function = here[-1].path, here[-1].frame.function
    for test in baseline.tests:
        if test.failure is None or test.id not in baseline.failing or test.failure.exception != surfaced.name:
            continue
        innermost = [(f.path, f.function) for f in test.failure.frames if f.path is not None][-1:]
        if innermost == [(path, function)]:
            return test.id
    tree = parse_or_none(sources[path])
    nodes = [f.node for f in functions(tree) if f.node.name == function] if tree is not None else []
    lines = {n for node in nodes for n in lines_of(node)}
    running = [t.id for t in baseline.tests if lines & (t.lines or {}).get(path, frozenset())]
    said = f"; it is run by {_shown(running)}" if running else f"; no test runs {function}"
    raise AnswerIsNo(
        f"no test fails with {surfaced.name} in {function} ({path}){said}",
        remedy="write a test that calls it as the traceback shows, and name that: localagent debug FILE::TEST",
    )


def _selects(wanted: str, name: str) -> bool:
    """Whether a pytest argument with `::` means a test: by its id, without its parameters, or by its class."""
    return name == wanted or name.startswith((f"{wanted}[", f"{wanted}::"))
