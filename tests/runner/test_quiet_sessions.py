"""What pytest makes for readers of its output is put off where nobody reads; a hook of the repository still gets it."""

import pytest
from support.house_builder import house

from localagent.domain.outcome import Outcome
from localagent.runner.quiet_reporter import LaterText
from localagent.verify.worker.worker_client import OpenRequest, RunRequest
from localagent.verify.worker.worker_messages import Collected
from localagent.verify.worker.worker_spec import WorkerUse

CONFTEST = """
import pytest
from _pytest._code.code import TerminalRepr


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if call.when == "call" and report.failed:
        assert isinstance(report.longrepr, TerminalRepr), type(report.longrepr)
        assert report.longrepr.reprcrash.lineno == 2
        assert "assert 1 == 2" in report.longreprtext
        if "test_known" in str(report.longrepr):
            report.outcome = "skipped"
            report.wasxfail = "known"


@pytest.fixture(autouse=True)
def terminal(request):
    request.config.pluginmanager.get_plugin("terminalreporter").write_line("here")
"""
TESTS = "def test_known():\n    assert 1 == 2, 'test_known'\n\n\ndef test_passes():\n    pass\n"


@pytest.mark.long
@pytest.mark.parametrize("swap", [False, True])
def test_a_hook_that_reads_the_failure_decides_alike_in_both_kinds_of_session(swap: bool) -> None:
    with (
        house({"conftest.py": CONFTEST, "test_m.py": TESTS}) as h,
        h.verifier._jails.start({}, WorkerUse.QUICK) as worker,
    ):
        got = worker.client.open(OpenRequest(options=("--tb=no",), swap=swap))
        assert isinstance(got, Collected)
        ran = worker.client.run(RunRequest(items=got.items, cpu_seconds=2.0, wall_seconds=10.0))
    assert [ran.results[i.index].outcome for i in got.items] == [Outcome.SKIPPED, Outcome.PASSED]


WATCHED = "import faulthandler\n\n\ndef pytest_configure():\n    faulthandler.dump_traceback_later(1800, exit=True)\n"


@pytest.mark.long
def test_a_watchdog_that_a_conftest_arms_does_not_stop_the_tests_that_fail() -> None:
    with (
        house({"conftest.py": WATCHED, "test_m.py": TESTS}) as h,
        h.verifier._jails.start({}, WorkerUse.QUICK) as worker,
    ):
        got = worker.client.open(OpenRequest(options=("--tb=no",)))
        assert isinstance(got, Collected)
        assert got.unforkable == ""
        ran = worker.client.run(RunRequest(items=got.items, cpu_seconds=2.0, wall_seconds=10.0))
    assert [ran.results[i.index].outcome for i in got.items] == [Outcome.FAILED, Outcome.PASSED]


def test_it_is_made_once_and_only_for_who_looks() -> None:
    made: list[str] = []

    def make() -> str:
        made.append("x")
        return "text"

    later = LaterText(make)
    assert not made
    assert str(later) == "text"
    assert isinstance(later, str)
    assert later == "text"
    assert later.upper() == "TEXT"  # type: ignore[unreachable,unused-ignore]
    assert made == ["x"]
