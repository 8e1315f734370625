"""A program that is run under the tracer of the jail, here."""

import runpy
import sys
from pathlib import Path

from localagent.debug.dynamic_slice import accesses, written_names
from localagent.domain.failure_run import FailureRun
from localagent.domain.paths import RepoPath
from localagent.runner.failure_trace import FailureTrace
from localagent.verify.baseline.traced_failure import run_of

PATH = RepoPath("program.py")


def traced(folder: Path, source: str) -> FailureRun:
    (folder / PATH).write_text(source)
    tracer = FailureTrace(
        str(folder), {PATH: {str(n): list(w) for n, w in written_names(accesses(source.encode())).items()}}
    )
    raised = None
    before = sys.gettrace()
    tracer.start()
    try:
        runpy.run_path(str(folder / PATH))
    except Exception as error:  # noqa: BLE001
        raised = error
    finally:
        tracer.stop()
        sys.settrace(before)
    return run_of(tracer.record(raised))
