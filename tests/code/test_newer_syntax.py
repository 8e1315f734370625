"""Syntax that our Python does not parse: what a newer one takes is told from what none takes."""

import shutil
import subprocess
import sys

import pytest

from localagent.code.newer_syntax import needed_python, newer_file, newer_python

NEWER = {
    "def f[T](x: T) -> T: return x\nclass A[T: (int, str), *Ts, **P](B): pass\n": (3, 12),
    "type X[T] = list[T]\ntype Y = int\nif 1: type = 3\ntype(X)\n": (3, 12),
    "def f[T = int, *Ts = *tuple[int, ...]](x: T): return x\n": (3, 13),
    'x = f"{"a" if "b" else f"{"c"}"}"\n': (3, 12),
    "x = f'{\na  # it's\n}'\n": (3, 12),
    "x = f'{\"\\n\".join(a)}'\n": (3, 12),
    "x = f'{a['b']=} {c!r:{'>'}10} {d != e['f']} {{}} {(lambda: 3)():^3} {x[1:2]} {({'a': 1})}'\n": (3, 12),
    "try:\n  pass\nexcept A, b.C:\n  pass\n": (3, 14),
    "try:\n  pass\nexcept* A, B:\n  pass\n": (3, 14),
    "x = t'{a}' + rt'{b!r:>{n}}'\n": (3, 14),
}
NO_PYTHON = (
    "print 'a'\n",
    "def f[T](x: T) return x\n",
    "def f[T](x):\n  return (\n",
    "x = f'{a b['c']}'\n",
    "x = f'{a!z} {b['c']}'\n",
    "x = f'{a['b'}'\n",
    "class A[T+1]: pass\n",
    "def f[]: pass\n",
    "type X = \n",
    "try: pass\nexcept A, B as c: pass\n",
    "x = t'{}'\n",
    "x = 'abc\n",
    "def f(x):\n    aise NotImplementedError\n",
    "def f[T](): pass\n<<<<<<< HEAD\n",
)


@pytest.mark.parametrize("text", NEWER)
def test_the_python_that_newer_syntax_needs_is_known(text: str) -> None:
    needed = NEWER[text]
    assert needed_python(text) == (needed if needed > sys.version_info[:2] else None)


@pytest.mark.parametrize("text", NO_PYTHON)
def test_what_no_python_takes_is_not_newer(text: str) -> None:
    assert needed_python(text) is None


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="this Python knows it all")
def test_the_sentence_names_both_versions_and_the_remedy() -> None:
    have = ".".join(map(str, sys.version_info[:2]))
    told = f"needs Python ≥ 3.14; localagent runs on {have}: `make setup PYTHON=python3.14`"
    assert newer_python("x = t'{a}'\n") == newer_file(b"# -*- coding: latin-1 -*-\n# \xe9\nx = t'{a}'\n") == told
    assert newer_python("x = 1\n") == newer_file(b"# -*- coding: nothing -*-\nx = t'{a}'\n") == ""


@pytest.mark.parametrize(
    "text",
    [
        "f'{" * 5000,
        "t'" + "{" * 100_000,
        "class A" + "[" * 100_000 + "]" * 100_000 + ": pass",
        "x = f'{" + "(" * 100_000 + "}'",
        "x = t'{a}' + " + "-" * 100_000 + "1",
        "except a," * 30_000 + ":",
    ],
)
def test_text_made_to_fell_a_parser_is_no_python(text: str) -> None:
    assert needed_python(text) is None


@pytest.mark.parametrize("version", [(3, 12), (3, 13), (3, 14)])
def test_newer_pythons_agree(version: tuple[int, int]) -> None:
    python = shutil.which(f"python{version[0]}.{version[1]}")
    if python is None or subprocess.run([python, "-V"], capture_output=True, check=False).returncode:
        pytest.skip("no such Python on the path")
    takes = "import ast, sys\ntry: ast.parse(sys.stdin.read())\nexcept SyntaxError: sys.exit(1)"
    for text in (*NEWER, *NO_PYTHON):
        done = subprocess.run([python, "-c", takes], input=text, text=True, capture_output=True, check=False)
        assert (done.returncode == 0) == (NEWER.get(text, (9, 9)) <= version), text
