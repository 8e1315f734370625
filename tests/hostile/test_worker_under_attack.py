"""Code under test that ends, floods, forges or lingers: what the worker says of it, and what is left for the next."""

import importlib.util
import marshal
import struct
from uuid import uuid4

import pytest
from support.house_builder import house

from localagent.domain.outcome import Outcome, TestResult
from localagent.verify.worker.worker_client import OpenRequest, RunRequest
from localagent.verify.worker.worker_messages import Collected
from localagent.verify.worker.worker_spec import WorkerUse

TARGET = "def f():\n    return 1\n"
FORGERY = """
import json, os, pytest
@pytest.hookimpl(hookwrapper=True, trylast=True)
def pytest_runtest_makereport(item, call):
    result = yield
    report = result.get_result()
    report.outcome = 'passed'
    report.longrepr = None
"""

# body of a test that misbehaves -> (outcome, exception) that must be told of it; none of these may ever be good
BAD = {
    "exit": ("import os; os._exit(0)", Outcome.ERROR, "InterpreterExit"),
    "segfault": ("import ctypes; ctypes.string_at(0)", Outcome.ERROR, "Crash"),
    "kill": ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", Outcome.ERROR, "Crash"),
    "atexit": ("import atexit, os; atexit.register(os._exit, 0); assert f() == 2", Outcome.FAILED, "AssertionError"),
    "close": ("import os; os.closerange(0, 4096)", Outcome.ERROR, "InterpreterExit"),
    "garbage": (
        "import os\n    for fd in range(3, 64):\n"
        "        try: os.write(fd, b'\\0\\0\\0\\2{}' * 9)\n        except OSError: pass",
        Outcome.ERROR,
        "Garbage",
    ),
    "loop": ("while True: pass", Outcome.TIMED_OUT, "TimeLimit"),
    "stubborn loop": (
        "while True:\n        try:\n            while True: pass\n        except BaseException: pass",
        Outcome.TIMED_OUT,
        "TimeLimit",
    ),
    "loop in C": ("import itertools; sum(itertools.repeat(1))", Outcome.TIMED_OUT, "TimeLimit"),
    "sleep": ("import time; time.sleep(600)", Outcome.TIMED_OUT, "TimeLimit"),
    "hungry": ("a = []\n    while True: a.append(bytearray(1 << 24))", Outcome.FAILED, "MemoryError"),
    "pytest.exit": ("import pytest; pytest.exit('done', returncode=0)", Outcome.ERROR, "Exit"),
    "child that returns": ("import os; os.fork(); assert f() == 2", None, None),
    "flood": ("while True: print('x' * 1000)", None, None),
    "flood that fills the memory": ("while True: print('x' * 50000)", None, None),
}


def _module() -> str:
    rows = ["from m import f"]
    for number, (body, _outcome, _exception) in enumerate(BAD.values()):
        rows += [f"def test_bad_{number}():", f"    {body}", f"def test_after_{number}():", "    assert f() == 2"]
    return "\n".join(rows) + "\n"


@pytest.fixture(scope="module")
def attacked() -> dict[str, TestResult]:
    """Results of all of them in one run, each followed by an ordinary failing test."""
    with house({"m.py": TARGET, "test_m.py": _module()}) as h, h.verifier._jails.start({}, WorkerUse.QUICK) as worker:
        got = worker.client.open(OpenRequest(options=("--tb=no",)))
        assert isinstance(got, Collected)
        ran = worker.client.run(
            RunRequest(items=got.items, cpu_seconds=0.5, wall_seconds=3.0, memory_bytes=256 << 20, budget_seconds=90.0)
        )
        return {r.id: r for r in ran.results.values()}


@pytest.mark.long
@pytest.mark.parametrize("name", BAD)
def test_misbehaving_tests_never_pass(name: str, attacked: dict[str, TestResult]) -> None:
    _body, outcome, exception = BAD[name]
    number = list(BAD).index(name)
    bad, after = attacked[f"test_m.py::test_bad_{number}"], attacked[f"test_m.py::test_after_{number}"]
    assert not bad.outcome.good
    assert bad.failure is not None
    if outcome is not None:
        assert (bad.outcome, bad.failure.exception) == (outcome, exception)
    if name in ("segfault", "sleep"):  # where it was is told, too
        assert [(f.path, f.function) for f in bad.failure.frames][-1] == ("test_m.py", f"test_bad_{number}")
    assert name != "sleep" or "wall time" in bad.failure.message
    assert after.outcome is Outcome.FAILED
    assert after.failure is not None
    assert (after.failure.left, after.failure.right) == ("1", "2")


@pytest.mark.long
def test_a_conftest_that_rewrites_reports_turns_nothing_green() -> None:
    files = {
        "m.py": TARGET,
        "conftest.py": FORGERY,
        "test_m.py": "from m import f\ndef test_f():\n    assert f() == 2\n",
    }
    with house(files) as h:
        baseline = h.verifier.baseline()
        assert baseline.failing == ("test_m.py::test_f",)
        quick = h.verifier.quick(baseline, jobs=1)
        assert not quick.check(h.candidate("m.py", "return 1", "return 1"), cpu_seconds=1.0).plausible
        assert quick.check(h.candidate("m.py", "return 1", "return 2"), cpu_seconds=1.0).plausible


@pytest.mark.long
def test_nothing_is_left_for_the_next_candidate() -> None:
    left = uuid4().hex  # no part of where the interpreter lies
    files = {
        "m.py": "LEFT = []\ndef f():\n    return 1\n",
        "test_m.py": (
            "import glob, os, subprocess, sys, tempfile, threading, time\n"
            "import m\n"
            "def test_f():\n"
            "    assert not m.LEFT\n"
            f"    assert not glob.glob('/tmp/{left}*') + glob.glob('/dev/shm/{left}*')\n"
            "    names = [open(f'/proc/{p}/cmdline').read() for p in os.listdir('/proc') if p.isdigit()]\n"
            "    assert not [n for n in names if 'sleep' in n]\n"
            "    m.LEFT.append(1)\n"
            f"    os.mkdir('/tmp/{left}'); os.chmod('/tmp/{left}', 0)\n"
            f"    open('/dev/shm/{left}', 'w').close()\n"
            f"    os.symlink('/usr', '/tmp/{left}-link')\n"
            "    subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
            "    threading.Thread(target=time.sleep, args=(600,)).start()\n"
            "    sys.settrace(lambda *a: None)\n"
            "    assert m.f() == 2\n"
        ),
    }
    with house(files) as h:
        baseline = h.verifier.baseline()
        failed = baseline.tests[0].failure
        assert failed is not None
        assert (failed.left, failed.right) == ("1", "2")
        quick = h.verifier.quick(baseline, jobs=1)
        for _ in range(3):
            good = quick.check(h.candidate("m.py", "return 1", "return 2"), cpu_seconds=1.0)
            assert good.plausible, good.failures
        assert h.verifier.notes == ()


@pytest.mark.long
def test_a_repository_with_names_of_ours_and_of_the_library() -> None:
    wicked = "raise SystemExit('shadowed')\n"
    files = {
        "json.py": wicked,
        "pytest.py": wicked,
        "select.py": wicked,
        "_la_worker/__init__.py": wicked,
        "_la_worker/json_frames.py": wicked,
        "localagent/__init__.py": "",
        "localagent/verify.py": "def f():\n    return 1\n",
        "sitecustomize.py": wicked,
        "resource.py": "NAME = 'of the repository'\n",
        "tests/test_m.py": (
            "from localagent.verify import f\nimport resource\n"
            "def test_f():\n    assert f() == 2\n"
            "def test_own_module():\n    assert resource.NAME == 'of the repository'\n"
        ),
    }
    with house(files) as h:
        baseline = h.verifier.baseline()
        assert baseline.failing == ("tests/test_m.py::test_f",)
        quick = h.verifier.quick(baseline, jobs=1)
        assert quick.check(h.candidate("localagent/verify.py", "return 1", "return 2"), cpu_seconds=1.0).plausible


@pytest.mark.long
def test_stale_bytecode_is_not_read() -> None:
    cached = importlib.util.cache_from_source("m.py")
    source = "def f():\n    return 1\n"
    code = compile("def f():\n    return 2\n", "m.py", "exec")
    unchecked = struct.pack("<I", 1)  # the flag of bytecode that is valid by hash, and whose hash nobody compares
    data = importlib.util.MAGIC_NUMBER + unchecked + b"\0" * 8 + marshal.dumps(code)
    test = "from m import f\ndef test_f():\n    assert f() == 2\n"
    files: dict[str, str | bytes] = {"m.py": source, cached: data, "test_m.py": test}
    with house(files) as h:
        assert h.verifier.baseline().failing == ("test_m.py::test_f",)
