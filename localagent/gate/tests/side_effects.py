"""What tests newly reach for that is not theirs: the home, their own files, the environment, the end of their run.

Tests may write and delete, in folders of their own. A person is asked where what is deleted is the home, the root, the
working tree as a whole or files of tests; where the whole environment is sent; and where the run is ended early. Names
are followed to what the same function sets them to. Not seen: what other functions make of it.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator

from localagent.code.bindings import assignments, target_name
from localagent.code.names import callee_name, imports_of
from localagent.gate.core.rule import Rule, RuleExample, question

_PATH = "tests/test_it.py"
_T = "import os\nfrom pkg import f\n\n\ndef test_f():\n    assert f(1) == 2\n"


def _become(code: str, head: str = "") -> RuleExample:
    return RuleExample(path=_PATH, before=_T, after=f"{head}{_T}\n\ndef test_g():\n    {code}\n    assert f(5) == 6\n")


DESTROYS = question(
    id="test-destroys",
    why="a test that deletes what is not its own harms whoever runs it, or takes away what judges",
    remedy="let it work in a folder of its own (`tmp_path`), or have a person confirm what is deleted",
    match=tuple(
        map(
            _become,
            (
                "shutil.rmtree(os.path.expanduser('~'))",
                "shutil.rmtree(Path.home() / 'x')",
                "shutil.rmtree(os.environ['HOME'])",
                "shutil.rmtree('/')",
                "shutil.rmtree('.')",
                "shutil.rmtree(Path(__file__).parent)",
                "home = Path.home()\n    shutil.rmtree(home)",
                "os.unlink(__file__)",
                "Path(__file__).resolve().unlink()",
                "os.remove('tests/test_other.py')",
                "os.rename('tests/test_other.py', 'x')",
                "(Path(__file__).parent / 'conftest.py').unlink()",
                "for p in Path('tests').glob('test_*.py'):\n        p.unlink()",
                "for p in glob.glob('tests/*.py'):\n        os.remove(p)",
            ),
        )
    ),
    not_match=tuple(
        map(
            _become,
            (
                "shutil.rmtree(tmp_path)",
                "d = tempfile.mkdtemp()\n    shutil.rmtree(d)",
                "shutil.rmtree('build', ignore_errors=True)",
                "os.remove(os.path.join(os.path.dirname(__file__), 'out.txt'))",
                "(tmp_path / 'test_x.py').unlink()",
                "p = tmpdir.join('conftest.py')\n    p.remove()",
                "for p in tmp_path.glob('*.py'):\n        p.unlink()",
                "os.chdir(tmp_path)\n    os.remove('test_x.py')",
                "items.remove('test_x.py')",
                "text.replace('test_a.py', 'test_b.py')",
                "shutil.rmtree(os.path.expanduser('~/.cache/x'))",
                "shutil.copy(__file__, tmp_path)",
            ),
        )
    ),
)
TELLS = question(
    id="test-tells",
    why="the environment of whoever runs the tests holds their keys, and this sends all of it",
    remedy="send the one setting that is meant, or none",
    match=tuple(
        map(
            _become,
            (
                "requests.post(url, json=dict(os.environ))",
                "client.post('/x', data=os.environ)",
                "urlopen(url, data=str(os.environ).encode())",
                "s.sendall(json.dumps(dict(os.environ)).encode())",
                "e = dict(os.environ)\n    client.put('/x', json=e)",
            ),
        )
    ),
    not_match=tuple(
        map(
            _become,
            (
                "client.post(os.environ['URL'], data='x')",
                "client.post(os.environ.get('URL'))",
                "subprocess.run(['x'], env=dict(os.environ))",
                "assert client.post('/x').status_code == 200",
                "monkeypatch.setattr(os, 'environ', {})",
            ),
        )
    ),
)
ENDED = question(
    id="test-run-ended",
    why="a run that is ended early, maybe with a good answer, leaves the tests behind it unasked",
    remedy="let the test fail, or skip that one test",
    match=(
        _become("pytest.exit('done', returncode=0)"),
        _become("exit('done')", "from pytest import exit\n"),
        _become("end('done')", "from pytest import exit as end\n"),
        _become("raise pytest.exit.Exception('done')"),
        _become("raise _pytest.outcomes.Exit('done')"),
        _become("request.session.shouldstop = 'done'"),
    ),
    not_match=(
        _become("pytest.fail('no')"),
        _become("server.exit()"),
        _become("with pytest.raises(SystemExit):\n        f(5)"),
        _become("pytester.exit('x')"),
    ),
)
RULES = (DESTROYS, TELLS, ENDED)
_DELETES = frozenset(
    {"rmtree", "unlink", "rmdir", "removedirs", "remove", "rename", "replace", "renames", "truncate", "move"}
)
_BY_METHOD = frozenset({"unlink", "rmdir", "rename", "rmtree"})  # of a path itself
_OF_MODULES = frozenset({"os", "shutil"})
_SENDS = frozenset(
    {"post", "put", "patch", "request", "urlopen", "Request", "send", "sendall", "sendto", "send_message", "sendmail",
     "upload", "publish", "emit", "fetch", "write_message", "send_json", "send_text"}
)  # fmt: skip
_OWN = re.compile(r"(?i)t(?:e)?mp|temp|isolated|sandbox|scratch|testdir|pytester|fs\b|mkd")
_HOMES = frozenset({"home", "expanduser"})
_WHOLE = frozenset({"/", "~", "~/", ".", "./", "..", "../", "tests", "tests/", "test", "test/"})
_TEST_FILE = re.compile(r"(?:^|/)(?:test_[^/]*|\*|[^/]*_tests?|conftest)\.py$")
_ROUNDS = 3


def reaches(before: ast.Module | None, after: ast.Module) -> Iterator[tuple[Rule, ast.AST, str]]:
    """What stands more often after than before."""
    spare = Counter(what for _, _, what in _found(before)) if before is not None else Counter[str]()
    for rule, node, what in _found(after):
        spare[what] -= 1
        if spare[what] < 0:
            yield rule, node, what


def _found(tree: ast.Module) -> Iterator[tuple[Rule, ast.AST, str]]:
    ends = {
        name.bound
        for node in ast.walk(tree)
        for name in imports_of(node)
        if (name.module, name.item) == ("pytest", "exit")
    }
    inner = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    seen: set[int] = set()
    for scope in [*reversed(inner), tree]:  # the innermost first: each node is looked at with its own names
        nodes = [n for n in ast.walk(scope) if id(n) not in seen]
        seen.update(map(id, nodes))
        made = _made(nodes)
        own_folder = any(callee_name(n) == "chdir" for n in nodes if isinstance(n, ast.Call))
        for node in nodes:
            if isinstance(node, ast.Call):
                if not own_folder and (what := _destroyed(node, made)):
                    yield DESTROYS, node, f"deletes {what}"
                if callee_name(node) in _SENDS and any(_is_environment(a, made) for a in _given(node)):
                    yield TELLS, node, f"sends the whole environment by {callee_name(node)}"
            if what := _ended(node, ends):
                yield ENDED, node, f"ends the run by {what}"


def _made(nodes: list[ast.AST]) -> dict[str, ast.expr]:
    """What the names of a function are set to, where that is one thing; what a loop goes over."""
    found: dict[str, list[ast.expr]] = {}
    for node in nodes:
        for target, value in assignments(node) if not isinstance(node, ast.arguments) else ():
            found.setdefault(target_name(target), []).append(value)
        if isinstance(node, ast.For) and isinstance(node.target, ast.Name):
            found.setdefault(node.target.id, []).append(node.iter)
    return {name: values[0] for name, values in found.items() if name and len({ast.dump(v) for v in values}) == 1}


def _whole(node: ast.expr, made: dict[str, ast.expr]) -> list[ast.AST]:
    """Everything in an expression, and in what its names are set to."""
    found = list(ast.walk(node))
    known: set[str] = set()
    for _ in range(_ROUNDS):
        names = {n.id for n in found if isinstance(n, ast.Name) and n.id in made} - known
        known |= names
        found += [inner for name in sorted(names) for inner in ast.walk(made[name])]
    return found


def _given(node: ast.Call) -> list[ast.expr]:
    return [*node.args, *(k.value for k in node.keywords)]


def _destroyed(node: ast.Call, made: dict[str, ast.expr]) -> str:
    """What a call deletes or moves that is not the test's, "" if nothing is seen."""
    name, func = callee_name(node), node.func
    if name not in _DELETES:
        return ""
    of_module = isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id in _OF_MODULES
    if (of_module or isinstance(func, ast.Name)) and node.args:
        target = node.args[0]
    elif isinstance(func, ast.Attribute) and not of_module and name in _BY_METHOD:
        target = func.value
    else:
        return ""
    parts = _whole(target, made)
    if any(_OWN.search(word) for word in _identifiers(parts)):
        return ""
    return _external_target(parts)


def _identifiers(parts: list[ast.AST]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, ast.Name):
            yield part.id
        elif isinstance(part, ast.Attribute):
            yield part.attr


def _external_target(parts: list[ast.AST]) -> str:
    """Which place that is not the test's own an expression names."""
    texts = [p.value for p in parts if isinstance(p, ast.Constant) and isinstance(p.value, str)]
    below = [text for text in texts if text.strip("~/.") and text != "HOME"]
    named = {callee_name(p) for p in parts if isinstance(p, ast.Call)}
    asks_home = bool(named & _HOMES) or "HOME" in texts
    if asks_home and not any("/." in text or text.startswith(".") for text in below):
        return "something of the home"
    if any(text.startswith("~") and not text.startswith("~/.") for text in texts):
        return "something of the home"
    if any(_TEST_FILE.search(text) for text in texts):
        return "files of tests"
    if texts and not below and not asks_home and all(text in _WHOLE for text in texts):
        return f"all of {texts[0]!r}"
    if any(text in ("tests", "tests/", "test", "test/") for text in below) and len(below) == 1 and len(parts) < 4:
        return f"all of {below[0]!r}"
    own = any(isinstance(p, ast.Name) and p.id == "__file__" for p in parts)
    return "its own file, or the folder it lies in" if own and not below else ""


def _is_environment(node: ast.expr, made: dict[str, ast.expr]) -> bool:
    """`os.environ` as a whole; no single setting of it."""
    parts = _whole(node, made)
    single = {
        id(p.value)
        for p in parts
        if isinstance(p, ast.Subscript) or (isinstance(p, ast.Attribute) and p.attr in ("get", "pop", "setdefault"))
    }
    return any(
        isinstance(p, ast.Attribute) and p.attr in ("environ", "environb") and id(p) not in single for p in parts
    )


def _ended(node: ast.AST, ends: set[str]) -> str:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ends:
        return "pytest.exit"
    if isinstance(node, ast.Attribute):
        if node.attr == "exit" and isinstance(node.value, ast.Name) and node.value.id == "pytest":
            return "pytest.exit"
        if node.attr == "Exit" and "outcomes" in ast.unparse(node.value):
            return "pytest.exit"
        if node.attr in ("shouldstop", "shouldfail") and not isinstance(node.ctx, ast.Load):
            return node.attr
    return ""
