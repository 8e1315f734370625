"""A warning that was given while a task ran is not given once more at its end."""

import io

from localagent.app.fix.request import FixOutcome
from localagent.cli.fix import show_outcome
from localagent.cli.progress import PlainSink
from localagent.cli.render import Render
from localagent.domain.task import Event


def test_a_warning_is_given_once_and_at_the_end_only_where_it_was_not_before() -> None:
    for quiet, shown in ((False, ["early", "late"]), (True, [])):
        err = io.StringIO()
        render = Render(out=io.StringIO(), err=err, quiet=quiet)
        sink = PlainSink(render, quiet=quiet)
        sink.emit(Event(kind="warning", at_seconds=0.0, data={"text": "early"}))
        show_outcome(FixOutcome(exit=1, reason="no", warnings=("early", "late")), render, warned=sink.warned)
        assert [line.split("warning: ")[1] for line in err.getvalue().splitlines() if "warning: " in line] == shown
