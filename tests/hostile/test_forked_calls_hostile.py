"""Functions that would rather not be compared in forks of tests: they end, forge, or answer as before there alone."""

import textwrap

import pytest
from support.verify_builder import differ

from localagent.domain.outcome import Baseline
from localagent.domain.verification import FunctionReach

HEAD = """\
import json, os, signal, sys, threading, time

DEPTH = []
os.register_at_fork(after_in_child=lambda: DEPTH.append(1))


class Box:
    def __init__(self):
        self.lock, self.names = threading.Lock(), ['a', 'b']

    def twice(self, n):
"""
TESTS = """\
import pytest
from m import Box


@pytest.mark.parametrize('n', range(6))
def test_twice(n):
    try:
        Box().twice(n)
    except BaseException:
        pass
"""
RECORD = "{'run': {'k': 'ok', 't': '', 'd': 'x', 'r': 'x', 'p': {}, 'l': [], 'v': ''}, 'how': 'seen', 'own': 1}"
BODIES = {
    "answers as before in a fork alone": "return n + n + (len(DEPTH) < 3)",
    "ends every fork": "os._exit(0) if len(DEPTH) > 2 else None\nreturn n + n + 1",
    "forges a record": f"""
row = json.dumps({RECORD}).encode()
if len(DEPTH) > 2:
    for d in range(3, 64):
        try:
            os.write(d, len(row).to_bytes(4, 'big') + row)
        except OSError:
            pass
    os._exit(0)
return n + n + 1
""",
    "stops whoever waits for it": "os.kill(os.getppid(), signal.SIGKILL) if len(DEPTH) > 2 else None\nreturn n + n + 1",
    "never ends": "while len(DEPTH) > 2:\n    time.sleep(1)\nreturn n + n + 1",
}


def compared(body: str) -> FunctionReach:
    old, new = (HEAD + textwrap.indent(text.strip(), " " * 8) + "\n" for text in ("return n + n", body))
    names = [f"test_m.py::test_twice[{n}]" for n in range(6)]
    with differ({"m.py": old, "test_m.py": TESTS}, {"m.py": new, "test_m.py": TESTS}) as made:
        return made.compare(Baseline(tests=()), names, ()).functions[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", BODIES)
def test_nothing_agrees_because_of_what_it_does_in_a_fork(name: str) -> None:
    found = compared(BODIES[name])
    assert not (found.reached and found.agreed == found.compared), (name, found)


@pytest.mark.long
@pytest.mark.parametrize("name", ["answers as before in a fork alone"])
def test_a_sample_of_those_and_an_honest_one(name: str) -> None:
    test_nothing_agrees_because_of_what_it_does_in_a_fork(name)
    honest = compared("return 2 * n")
    assert honest.reached_by_inputs
    assert honest.agreed == honest.compared
