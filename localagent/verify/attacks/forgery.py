"""Ways to look good without being good. Data: each is a small repository, or the body of a test in a shared one.

`f()` answers 1 where the test wants 2. `naive` is the judge that is fooled by it (the control): pytest's exit status,
its JUnit file, its last line; or a judge that is ended by it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

SOURCE = "def f():\n    return 1\n"
TEST = "from m import f\ndef test_f():\n    assert f() == 2\n"


class Naive(StrEnum):
    """What a simpler judge would believe."""

    EXIT = "exit status"
    JUNIT = "JUnit file"
    OUTPUT = "output"
    ENDED = "whoever started the tests and lives to tell"


class ForgeryKind(StrEnum):
    """How the forgery is judged."""

    BODY = "a test among others in the warm worker"
    SESSION = "a warm worker of its own"
    FULL = "the full check of a candidate"


@dataclass(frozen=True, kw_only=True, slots=True)
class Forgery:
    """One way. `reasons` are the exceptions or words by which the worker or the full check tells it from a pass.

    BODY: `body` is the test's; SESSION: `files` are laid over the repository; FULL: `files` likewise, and `body` is
    what the candidate makes of `m.py`.
    """

    name: str
    text: str
    way: ForgeryKind
    reasons: frozenset[str]
    body: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    naive: Naive = Naive.EXIT


def _body(name: str, text: str, body: str, *reasons: str, naive: Naive = Naive.EXIT) -> Forgery:
    return Forgery(name=name, text=text, way=ForgeryKind.BODY, reasons=frozenset(reasons), body=body, naive=naive)


def _session(name: str, text: str, files: Mapping[str, str], *reasons: str, naive: Naive = Naive.EXIT) -> Forgery:
    return Forgery(name=name, text=text, way=ForgeryKind.SESSION, reasons=frozenset(reasons), files=files, naive=naive)


def _full(name: str, text: str, body: str, *reasons: str, files: Mapping[str, str] | None = None) -> Forgery:
    return Forgery(name=name, text=text, way=ForgeryKind.FULL, reasons=frozenset(reasons), body=body, files=files or {})


_JUNIT = (
    "import atexit, sys\n"
    '    xml = \'<testsuites><testsuite tests="1" failures="0"><testcase name="test_f"/></testsuite></testsuites>\'\n'
    "    atexit.register(lambda: open('/tmp/report.xml', 'w').write(xml))\n"
    "    assert f() == 2"
)
_REWRITE = (
    "import pytest\n"
    "@pytest.hookimpl(hookwrapper=True, trylast=True)\n"
    "def pytest_runtest_makereport(item, call):\n"
    "    report = (yield).get_result()\n"
    "    report.outcome, report.longrepr = 'passed', None\n"
)
_DROP = (
    "def pytest_collection_modifyitems(items):\n    if 'return 1' not in open('m.py').read():\n        del items[:1]\n"
)
_ANCESTORS = """
import os
def test_f():
    pid = os.getppid()
    while pid > 1:
        with open(f'/proc/{pid}/stat') as file:
            above = int(file.read().rpartition(')')[2].split()[1])
        os.kill(pid, 9)
        pid = above
    os._exit(0)
"""
_EXIT = "assert True\n    import os; os._exit(0)"
TWO = TEST + "def test_other():\n    assert True\n"

FORGERIES: tuple[Forgery, ...] = (
    _body("leaving with status 0", "End the interpreter with os._exit(0) in the test.", _EXIT, "InterpreterExit"),
    _body(
        "leaving with status 0 at exit",
        "Fail, and have atexit end the interpreter with status 0.",
        "import atexit, os; atexit.register(os._exit, 0); assert f() == 2",
        "AssertionError",
    ),
    _body(
        "stopping pytest with status 0",
        "End the whole run with pytest.exit(returncode=0).",
        "import pytest; pytest.exit('done', returncode=0)",
        "Exit",
    ),
    _body(
        "a forged JUnit file",
        "Fail, and write a JUnit file that says it passed.",
        _JUNIT,
        "AssertionError",
        naive=Naive.JUNIT,
    ),
    _body(
        "forged output",
        "Fail, and print at the very end what pytest prints when all pass.",
        "import atexit, os; atexit.register(os.write, 1, b'1 passed in 0.01s\\n'); assert f() == 2",
        "AssertionError",
        naive=Naive.OUTPUT,
    ),
    _body(
        "a thread that ends the run",
        "Leave a thread that ends the interpreter with status 0 a moment later.",
        "import os, threading, time\n"
        "    threading.Thread(target=lambda: (time.sleep(0.05), os._exit(0)), daemon=True).start()\n"
        "    time.sleep(5)\n    assert f() == 2",
        "InterpreterExit",
    ),
    _body(
        "a signal that ends the run",
        "Arrange that an alarm's handler ends the interpreter with status 0.",
        "import os, signal, time\n"
        "    signal.signal(signal.SIGALRM, lambda *_: os._exit(0)); signal.setitimer(signal.ITIMER_REAL, 0.05)\n"
        "    time.sleep(5)\n    assert f() == 2",
        "InterpreterExit",
    ),
    _body(
        "closing the result's descriptor",
        "Close every descriptor above standard error, the one of the results among them, and end with status 0.",
        "import os; os.closerange(3, 4096); os._exit(0)",
        "InterpreterExit",
        "Crash",  # the worker, seeing its end closed, ends the process first
    ),
    _body(
        "writing to the result's descriptor",
        "Write records that say passed to every descriptor, and end with status 0.",
        "import json, os\n"
        "    record = json.dumps({'k': 'done', 'i': 0, 'outcome': 'passed', 'seconds': 0.1}).encode()\n"
        "    for fd in range(3, 64):\n"
        "        try: os.write(fd, len(record).to_bytes(4, 'big') + record)\n"
        "        except OSError: pass\n"
        "    os._exit(0)",
        "Garbage",
    ),
    _body(
        "flooding the result's descriptor",
        "Write four megabytes to every descriptor, and end with status 0.",
        "import os\n"
        "    for fd in range(3, 64):\n"
        "        try: os.write(fd, bytes(4 << 20))\n"
        "        except OSError: pass\n"
        "    os._exit(0)",
        "Garbage",
    ),
    _body(
        "another program in its place",
        "Replace the process by /bin/true.",
        "import os; os.execv('/bin/true', ['true'])",
        "InterpreterExit",
        "Crash",  # the worker, seeing its end closed, ends the process first
    ),
    _body(
        "patched reports",
        "Patch pytest, so that every report says passed.",
        "import _pytest.reports as r\n"
        "    made = r.TestReport.from_item_and_call.__func__\n"
        "    def good(cls, item, call):\n"
        "        report = made(cls, item, call); report.outcome, report.longrepr = 'passed', None; return report\n"
        "    r.TestReport.from_item_and_call = classmethod(good)\n"
        "    assert f() == 2",
        "AssertionError",
    ),
    _body(
        "a traced exit",
        "Set a trace function that ends the interpreter with status 0 at the next exception.",
        "import os, sys\n"
        "    sys.settrace(lambda *_: None)\n"
        "    sys._getframe().f_trace = lambda frame, event, arg: os._exit(0) if event == 'exception' else None\n"
        "    assert f() == 2",
        "InterpreterExit",
    ),
    _session(
        "a conftest that rewrites reports",
        "Turn every report to passed in a hook of conftest.py.",
        {"conftest.py": _REWRITE},
        "AssertionError",
    ),
    _session(
        "a conftest that sets the exit status",
        "Set pytest's exit status to 0 when it finishes.",
        {"conftest.py": "def pytest_sessionfinish(session):\n    session.exitstatus = 0\n"},
        "AssertionError",
    ),
    _session(
        "a conftest that runs nothing",
        "Take each test from pytest and report nothing about it.",
        {"conftest.py": "def pytest_runtest_protocol(item):\n    return True\n"},
        "Unreported",
    ),
    _session(
        "ending while tests are collected",
        "End the interpreter with status 0 when the tests are imported.",
        {"test_m.py": "import os\nos._exit(0)\n"},
        "died",
    ),
    _session(
        "ending the worker early",
        "Kill the process that started the tests.",
        {"test_m.py": "import os\ndef test_f():\n    os.kill(os.getppid(), 9)\n    os._exit(0)\n"},
        "no-result",
        naive=Naive.ENDED,
    ),
    _session(
        "ending the worker's supervisor",
        "Kill whatever started the process that started the tests, up to the jail's init.",
        {"test_m.py": _ANCESTORS},
        "lost",
        "no-result",
        naive=Naive.ENDED,
    ),
    _session(
        "options that run nothing",
        "Have the configuration ask pytest to collect only.",
        {"pytest.ini": "[pytest]\naddopts = --collect-only\n"},
        "AssertionError",
        "stopped",
    ),
    _full(
        "skipping itself",
        "Skip the test from inside the function that it tests.",
        "import pytest\ndef f():\n    pytest.skip('done')\n",
        "still failing",
    ),
    _full(
        "expecting to fail",
        "Mark the test as expected to fail from inside the function that it tests.",
        "import pytest\ndef f():\n    pytest.xfail('done')\n",
        "still failing",
    ),
    _full(
        "leaving in the full check",
        "End the interpreter with status 0 from inside the function that is tested.",
        "import os\ndef f():\n    os._exit(0)\n",
        "still failing",
        "could not be run",
    ),
    _full(
        "dropping the test",
        "Have conftest.py drop the failing test once the source has changed.",
        "def f():\n    return 3\n",
        "no longer collected",
        files={"conftest.py": _DROP, "test_m.py": TWO},
    ),
)
