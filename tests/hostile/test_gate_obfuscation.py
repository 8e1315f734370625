"""Candidates that hide what they do, or try to fell the gates. Each is refused, and for the reason that is named."""

import sys
from pathlib import Path

import pytest

from localagent.domain.edit import Candidate, Edit, FileChange, Patch, Splice
from localagent.domain.gate import Allow
from localagent.domain.outcome import Baseline, Outcome, TestResult
from localagent.domain.paths import RepoPath
from localagent.gate.repair_gates import open_gate_chain
from localagent.policy.load import load_policy
from localagent.ports import GateChain
from localagent.text.byte_diff import changed_span

# ruff: noqa: E501, RUF001 - sources as they are; the look-alike letters are the point

PATH = RepoPath("pkg/mod.py")
POLICY = load_policy(Path(__file__).parents[2] / "policies" / "default.toml")


@pytest.fixture(scope="module")
def chain() -> GateChain:
    return open_gate_chain(POLICY, ())


def refusal(chain: GateChain, before: str | bytes, after: str | bytes, test: bytes = b"") -> str:
    old, new = (s.encode("utf-8", "surrogateescape") if isinstance(s, str) else s for s in (before, after))
    start, end, new_end = changed_span(old, new)
    edit = Edit(
        path=PATH,
        splices=(Splice(start=start, end=end, text=new[start:new_end]),),
        operator="t",
        line=1,
        end_line=1,
        prior=0.0,
    )
    patch = Patch(changes=(FileChange(path=PATH, before=old, after=new),))
    tests = RepoPath("tests/test_a.py")
    baseline = Baseline(tests=(TestResult(id="t::test_f", outcome=Outcome.FAILED, path=tests),), failing=("t::test_f",))
    made = Candidate(number=1, patch=patch, edits=(edit,), cost=0.0)
    last = list(chain.review(made, baseline, {PATH: old, tests: test}))[-1]
    assert last.answer is not Allow.ERROR, last
    return last.findings[0].rule if last.findings else ""


BODY = "import os, sys, operator, functools, builtins\nRUN = os.system\nNAME = 'system'\ndef f(x):\n    y = x\n    return y\n"


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("y = RUN(x)", "run-process"),
        ("y = (lambda: RUN)()(x)", "run-process"),
        ("y = [os.system for _ in x][0](x)", "run-process"),
        ("y = (o := os).system(x)", "run-process"),
        ("y = (x and os).system(x)", "run-process"),
        ("y = (os if x else sys).system(x)", "run-process"),
        ("y = (os,)[0].system(x)", "run-process"),
        ("y = functools.partial(os.system, x)()", "run-process"),
        ("y = getattr(os, 'sys' + 'tem')(x)", "run-process"),
        ("y = getattr(os, f'{\"system\"}')(x)", "run-process"),
        ("y = getattr(os, NAME)(x)", "run-process"),
        ("y = getattr(os, NAME[:])(x)", "run-process"),
        ("y = getattr(os, x)(x)", "dynamic-access"),
        ("y = getattr(*(os, 'system'))(x)", "dynamic-access"),
        ("y = os.__getattribute__('system')(x)", "run-process"),
        ("y = os.__dict__.get('system')(x)", "run-process"),
        ("y = vars(os).get('system')(x)", "run-process"),
        ("y = sys.modules['o' + 's'].system(x)", "run-process"),
        ("y = sys.modules.get('os').popen(x)", "run-process"),
        ("y = sys.modules[x].system(x)", "dynamic-access"),
        ("y = globals()['o' + 's'].system(x)", "run-process"),
        ("y = globals()['__buil' + 'tins__']", "run-text"),
        ("y = globals()[x](x)", "dynamic-access"),
        ("y = __builtins__['eval'](x)", "run-text"),
        ("y = __builtins__.eval(x)", "run-text"),
        ("y = builtins.__dict__['exec'](x)", "run-text"),
        ("y = ｅｖａｌ(x)", "run-text"),
        ("y = 𝐞xec(x)", "run-text"),
        ("y = os.ｓystem(x)", "run-process"),
        ("y = operator.attrgetter('system')(os)(x)", "run-process"),
        ("y = operator.methodcaller('system', x)(os)", "run-process"),
        ("y = operator.attrgetter(x)(os)", "dynamic-access"),
        ("y = list(map(eval, x))", "run-text"),
        ("y = x.__class__.__base__.__subclasses__()", "interpreter-inside"),
        ("y = f.__globals__", "interpreter-inside"),
        ("y = getattr(f, '__code__')", "interpreter-inside"),
        ("f.__code__ = x.__code__", "interpreter-inside"),
        ("y = f'{open(x, \"w\")}'", "write-files"),
        ("y = [open(x, m) for m in ('r', 'w')]", "write-files"),
        ("y = open(file=x, mode='a')", "write-files"),
        ("for os.environ['A'] in x: y = 1", "process-state"),
        ("with x as os.environ['A']: y = 1", "process-state"),
        ("[os.environ['A']] = [y]", "process-state"),
        ("y = x; import pty as o", "run-process"),
        ("from os import (system as y)", "run-process"),
        ("y = __import__('os').system(x)", "run-process"),
        ("assert exec(x)", "run-text"),
        ("y: eval(x) = 1", "run-text"),
        ("y = lambda a=eval: a(x)", "run-text"),
        ("raise SystemExit(0)", "process-state"),
        ("y = 'PYTEST_CURRENT_' + 'TEST' in os.environ or 'PYTEST_CURRENT_TEST'", "test-framework"),
    ],
)
def test_a_hidden_danger_is_refused_by_its_rule(chain: GateChain, line: str, rule: str) -> None:
    got = refusal(chain, BODY, BODY.replace("y = x", line, 1))
    # what leads to a danger may be refused before the danger itself
    assert got in {rule, "run-text", "interpreter-inside", "dynamic-access"}
    if rule != "run-process":
        assert got in {rule, "run-text", "interpreter-inside"}


@pytest.mark.parametrize(
    ("before", "after", "rule"),
    [
        # the danger is spread over the change and what stood there
        ("import os as o\ndef f(x):\n    return o.path(x)\n", "import os as o\ndef f(x):\n    return o.popen(x)\n", "run-process"),
        ("from os import *\ndef f(x):\n    return g(x)\n", "from os import *\ndef f(x):\n    return system(x)\n", "run-process"),
        ("from os import *\ndef f(x):\n    return g(x)\n", "from os import *\ndef f(x, system=system):\n    return system(x)\n", "run-process"),
        ("from os import system\ndef f(x):\n    return g(x)\n", "from os import system\ndef f(x, system=system):\n    return system(x)\n", "run-process"),
        ("from os import system\ndef f(x):\n    return g(x)\n", "from os import system\n@system\ndef f(system):\n    return g(system)\n", "run-process"),
        ("from os import *\nx = 1\n", "from os import *\nsystem = system\nx = system(1)\n", "run-process"),
        ("from math import *\ndef f(x):\n    def g(self): return 1\n", "from math import *\ndef f(x):\n    def g(self): self.a = 1\n", ""),
        ("import os\ndef f(x):\n    g = len\n    return g(x)\n", "import os\ndef f(x):\n    g = os.system\n    return g(x)\n", "run-process"),
        ("import os\ndef f(x):\n    n = 'stat'\n    return getattr(os, n)(x)\n", "import os\ndef f(x):\n    n = 'system'\n    return getattr(os, n)(x)\n", "run-process"),
        ("def f(x):\n    m = 'r'\n    return open(x, m)\n", "def f(x):\n    m = 'w'\n    return open(x, m)\n", "write-files"),
        ("def f(open, x):\n    return open(x, 'w')\n", "def f(opens, x):\n    return open(x, 'w')\n", "write-files"),
        ("def f(x):\n    return x\n\n\ndef g(x):\n    return x\n", "import os as o\ndef f(x):\n    return x\n\n\ndef g(x):\n    return o.system(x)\n", "run-process"),
        ("def f(x):\n    '''\n    os.system(x)\n    '''\n    return x\n", "import os\ndef f(x):\n    os.system(x)\n    return x\n", "run-process"),
        ("def f(x):\n    # eval(x)\n    return x\n", "def f(x):\n    eval(x)\n    return x\n", "run-text"),
        # a file that does not parse is no cover
        ("def f(x:\n    return x\n", "def f(x):\n    return eval(x)\n", "run-text"),
        ("def f(x:\n    # os.system(x)\n    return x\n", "def f(x):\n    os.system(x)\n    return x\n", "bandit"),
        ("import os\ndef f(x:\n    # os.system(x)\n    return x\n", "import os\ndef f(x):\n    os.system(x)\n    return x\n", "run-process"),
        ("import os\ndef f(x:\n    'os.system(x)'\n    return x\n", "import os\ndef f(x):\n    os.system(x)\n    return x\n", "run-process"),
        # decorators, defaults, class bodies, module level
        ("def f(x):\n    return x\n", "@eval\ndef f(x):\n    return x\n", "run-text"),
        ("class A:\n    x = 1\n", "class A:\n    x = eval('1')\n", "run-text"),
        ("x = 1\n", "import pty\nx = 1\n", "run-process"),
        ("x = 1\n", "import subprocess\nx = 1\n", ""),
        ("x = 1\n", "import subprocess\nx = subprocess.PIPE\n", ""),
        ("x = 1\n", "import subprocess\nx = subprocess.Popen\n", "run-process"),
        ("x = 1\n", "import subprocess as o\nx = vars(o)\n", "run-process"),
        ("def f(x):\n    return subprocess.run(x)\n", "import subprocess\ndef f(x):\n    return subprocess.run(x)\n", "run-process"),
        ("class A:\n    def f(self):\n        return 1\n", "class A(metaclass=exec):\n    def f(self):\n        return 1\n", "run-text"),
    ],
)  # fmt: skip
def test_a_danger_spread_over_old_and_new_is_refused(chain: GateChain, before: str, after: str, rule: str) -> None:
    assert refusal(chain, before, after) == rule


@pytest.mark.long
@pytest.mark.parametrize(
    ("after", "rules"),
    [
        ("x = " + "(" * 150 + "1" + ")" * 150 + "\n", {"", "too-deep", "does-not-parse"}),
        ("x = " + "[" * 5000 + "1" + "]" * 2000 + "\n", {"too-deep"}),
        ("x = " + "-" * 7000 + "1\n", {"too-deep"}),
        ("x = " + "not " * 1500 + "1\n", {"too-deep"}),
        ("x = " + "a." * 3000 + "b\n", {"too-deep"}),
        ("x = " + "lambda: " * 900 + "1\n", {"too-deep"}),
        ("x = " + "+".join("1" * 3000) + "\n", {"too-deep"}),
        ("x = 1\0\n", {"does-not-parse"}),
        ("x = '\udcff'\n", {"does-not-parse"}),
        ("x = 1 \\\n", {"does-not-parse"}),
        ("".join(" " * n + "if x:\n" for n in range(95)) + " " * 95 + "x = 1\n", {"too-deep", "size-lines"}),
    ],
)
def test_what_fells_parsers_is_refused_and_never_an_error_of_ours(
    chain: GateChain, after: str, rules: set[str]
) -> None:
    assert refusal(chain, "x = 1\n", after) in rules


def test_a_base_that_fells_parsers_does_not_fell_the_gate(chain: GateChain) -> None:
    deep = "y = " + "(" * 5000 + "1" + ")" * 5000 + "\n"
    assert refusal(chain, "x = 1\n" + deep, "x = 2\n" + deep) == "too-deep"


def test_a_test_file_that_fells_parsers_hides_no_literal_of_others(chain: GateChain) -> None:
    for test in (b"\xff", b"def test_f(:\n", b"x = " + b"[" * 5000, b"\0"):
        assert refusal(chain, "def f(x):\n    return x\n", "def f(x):\n    return -x\n", test) == ""


@pytest.mark.long
def test_huge_tables_of_a_test_are_read_within_bounds(chain: GateChain) -> None:
    rows = ", ".join(f"({n}, {n + 1})" for n in range(20_000))
    test = f"ROWS = [{rows}]\ndef test_f():\n    for a, b in ROWS: assert f(a) == b\n".encode()
    after = "def f(x):\n    if x == 7:\n        return 8\n    return x\n"
    assert refusal(chain, "def f(x):\n    return x\n", after, test) == "special-cases-test"


def test_the_recursion_limit_is_left_alone(chain: GateChain) -> None:
    before = sys.getrecursionlimit()
    refusal(chain, "x = 1\n", "x = " + "-" * 7000 + "1\n")
    assert sys.getrecursionlimit() == before
