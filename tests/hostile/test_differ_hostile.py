"""Functions that would rather not be compared: they end, flood, hang or rewrite what asks them. None agrees by that."""

import textwrap

import pytest
from support.verify_builder import differ

from localagent.domain.verification import Differential

HEAD = "import atexit, copy, gc, json, os, signal, sys, threading, time\n\n\n"
OLD = HEAD + "def f(n: int) -> int:\n    return n\n"
WRITING = """
for d in range(3, 64):
    try:
        os.write(d, {what})
    except OSError:
        pass
os._exit(0)
"""
ROW = "(lambda r: len(r).to_bytes(4, 'big') + r)(json.dumps({'row': [{'k': 'ok', 'd': 'x', 'p': {}}]}).encode())"
BODIES = {
    "ends the interpreter": "os._exit(0)",
    "ends it by an exception": "raise SystemExit(0)",
    "kills whoever asks": "os.kill(os.getppid(), signal.SIGKILL)\nreturn n",
    "kills itself": "os.kill(os.getpid(), signal.SIGKILL)",
    "never ends": "while True:\n    pass",
    "catches everything and never ends": """
while True:
    try:
        time.sleep(0)
    except BaseException:
        continue
""",
    "takes all memory": "return [0] * (1 << 34)",
    "closes every descriptor": "os.closerange(3, 256)\nreturn n",
    "writes into every descriptor": WRITING.replace("{what}", "b'\\0\\0\\0\\2{}'"),
    "forges a row": WRITING.replace("{what}", ROW),
    "answers with what equals everything": """
class Any:
    def __eq__(self, other):
        return True
    def __hash__(self):
        return 0
return Any()
""",
    "answers with what cannot be shown": """
class Odd:
    def __repr__(self):
        os._exit(0)
return [Odd()]
""",
    "answers without end": """
class Long:
    def __next__(self):
        return 1
    def __iter__(self):
        return self
return Long()
""",
    "answers with terminal controls": "return '\\x1b]0;owned\\x07' * 50",
    "answers hugely": "return 'x' * 50_000_000",
    "nests without end": "x = []\nx.append(x)\nreturn x",
    "turns hashing off": "import hashlib\nhashlib.sha256 = None\nreturn -n",
    "turns copying off": "copy.deepcopy = None\nreturn -n",
    "turns the clock off": "signal.setitimer = lambda *a: None\nreturn -n",
    "takes the signal": "signal.signal(signal.SIGPROF, signal.SIG_IGN)\nwhile True:\n    pass",
    "forks": "os.fork()\nreturn n + 1",
    "starts threads that end it": """
threading.Thread(target=lambda: (time.sleep(0.01), os._exit(0))).start()
return n + 1
""",
}


def compare(body: str) -> Differential:
    with differ(
        {"m.py": OLD}, {"m.py": HEAD + "def f(n: int) -> int:\n" + textwrap.indent(body.strip(), "    ") + "\n"}
    ) as made:
        return made.compare(None, (), ())


@pytest.mark.slow
@pytest.mark.parametrize("name", BODIES)
def test_nothing_agrees_by_force(name: str) -> None:
    found = compare(BODIES[name])
    function = found.functions[0]
    assert not (function.reached and function.agreed == function.compared), (name, function)
    for difference in found.differences:
        assert not any(c < " " or c == "\x7f" for c in difference.new)
        assert len(difference.new) < 1000


@pytest.mark.long
def test_an_honest_function_agrees() -> None:
    function = compare("return +n").functions[0]
    assert function.reached
    assert function.agreed == function.compared


@pytest.mark.long
@pytest.mark.parametrize("name", ["ends the interpreter"])
def test_a_sample_of_those(name: str) -> None:
    test_nothing_agrees_by_force(name)
