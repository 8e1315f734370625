"""Lines that ran, told without the project noticing that somebody traces it."""

import inspect
import sys
from pathlib import Path

from localagent.runner.line_trace import LineTracer


def test_the_project_is_not_told_of_the_tracer_and_everybody_else_is() -> None:
    before = sys.gettrace()

    def other(frame: object, event: str, argument: object) -> None:
        del frame, event, argument

    for root, hidden in ((Path(__file__).parent, True), (Path(inspect.__file__).parent, False)):
        tracer = LineTracer(str(root))
        tracer.start()
        seen = sys.gettrace()
        sys.settrace(other)
        own = sys.gettrace()
        tracer.stop()
        assert (seen is None) is hidden
        assert own is other
    sys.settrace(before)
    assert sys.gettrace() is before
