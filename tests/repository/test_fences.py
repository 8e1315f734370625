"""What may be used where, read from the syntax of every module. The samples show that each fence can fail."""

import ast
import sys
from pathlib import Path

import pytest

from localagent.edit.operator_registry import operators

PACKAGE = Path(__file__).resolve().parents[2] / "localagent"
NOWHERE: frozenset[str] = frozenset()
MODULES = {  # top-level module -> rooms where it may be imported
    "libcst": {"edit", "code", "gate", "lint", "training"},
    "subprocess": {"jail", "repo", "llm", "training", "batch", "daemon", "jail_sessions", "runner"},
    "multiprocessing": {"training"},
    "pty": NOWHERE,
    "llama_cpp": {"llm"},
    "jinja2": {"llm", "report"},
    "torch": {"training"},
    "bandit": {"gate"},
    "hypothesis": {"verify"},
    "ctypes": {"jail", "llm", "runner"},
    "socket": {"jail", "llm", "verify", "runner", "jail_sessions", "protocol", "daemon", "ports", "training"},
    "sqlite3": {"daemon", "code"},
    "starlette": {"daemon"},
    "uvicorn": {"daemon"},
    "h11": {"daemon", "protocol", "llm"},
    "pickle": NOWHERE,
    "marshal": NOWHERE,
    "shelve": NOWHERE,
    "urllib": NOWHERE,
    "http": NOWHERE,
    "requests": NOWHERE,
    "ssl": NOWHERE,
    "dask": {"batch"},
    "distributed": {"batch"},
}
STARTING = {"system", "popen", "fork", "forkpty", "posix_spawn", "posix_spawnp"}
STARTING |= {f"exec{end}" for end in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")}
STARTING |= {f"spawn{end}" for end in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")}
WORKER = "runner"
# Attacks reach for what a jail must not: listeners on the host's own loopback, and programs that run inside alone.
INSIDE = {("jail", "attacks", name) for name in ("information", "inside", "standin")}
# `localagent ui` opens a loopback port for a browser of its user, on request.
REACHING = (("jail", "attacks", "stage"), ("jail", "attacks", "network"), ("daemon", "client", "ui_loopback"))
# Waits for a fork of itself, so that nothing which the fork does can keep a commit waiting.
# Where text meets the terminal. Programs that run apart from localagent say what they say to who started them.
SHOWING = {
    ("cli", "render"),
    ("cli", "safe_console"),
    ("cli", "line_history"),
    ("llm", "model", "llama_build"),
    ("jail", "attacks", "inside"),
}
# What these put together is read by models or learners, never by people: a cut there is theirs.
NOT_FOR_PEOPLE = {"llm", "localize", "training", "runner"}
FORKING = (("cli", "timeboxed_child"),)
MOST_LINES = 60  # of a function, its docstring included
# Walls can be opened where jails are built; what opens them are tests. These modules may name what is open.
OPENING = {("jail", "boundaries"), ("jail", "launcher", "start"), ("jail", "limits", "rlimits")}
OPENING |= {("jail", "backends", name) for name in ("backend", "bubblewrap", "handoff")}


def breaches(source: str, parts: tuple[str, ...]) -> list[str]:
    """Everything in a module that its place forbids. `parts` is its path below the package, without `.py`."""
    room = parts[0]
    found = []
    for node in ast.walk(ast.parse(source)):
        for module in imported(node):
            if room not in MODULES.get(module, {room}):
                found.append(f"imports {module}")
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
            found += ["prints"] if parts != ("cli", "render") else []
        if parts not in SHOWING and room != WORKER and (writing := shows_text(node)):
            found.append(f"writes to the terminal past its border ({writing})")
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os":
            at_home = room in ("app", "cli") or room == WORKER or parts in INSIDE
            if node.attr in ("environ", "environb", "getenv", "putenv") and not at_home:
                found.append(f"reads the environment (os.{node.attr})")
            forks = node.attr == "fork" and parts in FORKING
            if node.attr in STARTING and room not in MODULES["subprocess"] and not forks:
                found.append(f"starts a process (os.{node.attr})")
        if isinstance(node, ast.ImportFrom) and node.module == "os":
            for name in node.names:
                if name.name in STARTING | {"environ", "environb", "getenv"}:
                    found.append(f"takes {name.name} out of os")
        if isinstance(node, ast.Attribute) and node.attr in ("O_CREAT", "O_EXCL") and not makes_files(parts):
            found.append(f"makes files by itself (os.{node.attr})")
        if names_open_walls(node) and parts not in OPENING:
            found.append("names open walls")
        if (
            parts not in REACHING
            and isinstance(node, ast.Attribute)
            and node.attr in ("AF_INET", "AF_INET6", "create_connection")
        ):
            found.append(f"reaches for a network (socket.{node.attr})")
    return found


def shows_text(node: ast.AST) -> str:
    """How a node would write to a standard stream, or "". argparse's own help is written by argparse."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute):
        stream = f"{ast.unparse(node.value)}.{node.attr}"
        if stream in ("sys.stdout.write", "sys.stderr.write", "sys.stdout.buffer", "sys.stderr.buffer"):
            return stream
    if isinstance(node, ast.Call) and ast.unparse(node.func).rsplit(".", 1)[-1] in ("Console", "input"):
        return f"{ast.unparse(node.func)}()"
    if isinstance(node, ast.ImportFrom) and node.module == "rich.console" and "Console" in {n.name for n in node.names}:
        return "rich.console.Console"
    return ""


def cut_texts(tree: ast.AST) -> list[int]:
    """Lines where a text is put into a message with its end cut off, which `shortened` does between words."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.FormattedValue)
        and isinstance(node.value, ast.Subscript)
        and isinstance(node.value.slice, ast.Slice)
        and node.value.slice.lower is None
        and isinstance(most := node.value.slice.upper, ast.Constant)
        and isinstance(most.value, int)
        and most.value >= 20
        and "hexdigest" not in ast.unparse(node.value)
    ]


def makes_files(parts: tuple[str, ...]) -> bool:
    """Where descriptors of new files are opened; all others take them from `fs`."""
    return parts[0] in ("fs", WORKER) or parts[:2] in (("jail", "launcher"), ("jail", "attacks"))


def names_open_walls(node: ast.AST) -> bool:
    """True for any use of `open_walls`, as a name, attribute, keyword, parameter or text."""
    words = {getattr(node, field, None) for field in ("id", "attr", "arg", "value") if not isinstance(node, ast.Expr)}
    return "open_walls" in {word for word in words if isinstance(word, str)}


def imported(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Import):
        return {alias.name.split(".")[0] for alias in node.names}
    if isinstance(node, ast.ImportFrom) and not node.level and node.module:
        return {node.module.split(".")[0]}
    return set()


@pytest.mark.long
def test_no_module_crosses_a_fence() -> None:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if parts[0] != "_data" and (crossed := breaches(path.read_text(encoding="utf-8"), parts)):
            found["/".join(parts)] = crossed
    assert found == {}


def test_walls_are_closed_unless_spelled_out() -> None:
    """No jail spec, profile or policy can name a wall, and the default everywhere is none."""
    from dataclasses import fields

    from localagent.domain.jailspec import JailLimits, JailSpec
    from localagent.jail.backends.backend import Backend, BackendKind

    names = {field.name for kind in (JailSpec, JailLimits) for field in fields(kind)}
    assert not [name for name in names if "wall" in name and name != "wall_seconds"]
    assert Backend(kind=BackendKind.BUBBLEWRAP, program="", version="").open_walls == frozenset()


def test_attack_programs_need_nothing_of_ours() -> None:
    """They run inside the jail, where neither localagent nor its dependencies exist."""
    host_side = {"attack_catalogue", "row", "stage", "suite"}
    for path in sorted((PACKAGE / "jail" / "attacks").glob("*.py")):
        names = set().union(*(imported(node) for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))))
        assert path.stem in host_side or names <= set(sys.stdlib_module_names), path.name


def test_the_worker_needs_nothing_of_ours() -> None:
    """It runs on the project's Python, where neither localagent nor its dependencies exist."""
    foreign = {}
    for path in sorted((PACKAGE / "runner").glob("*.py")):
        names = set().union(*(imported(node) for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))))
        extra = names - set(sys.stdlib_module_names) - {"pytest", "_pytest", "_la_worker"}
        extra -= {"matplotlib"} if path.name == "matplotlib_png.py" else set()  # imports it last
        if extra:
            foreign[path.name] = extra
    assert foreign == {}


@pytest.mark.parametrize(
    ("source", "parts", "reason"),
    [
        ("import libcst as cst", ("repair", "search", "search_loop"), "imports libcst"),
        ("from subprocess import run", ("gate", "security", "bandit"), "imports subprocess"),
        ("def f():\n    import pickle", ("record", "store"), "imports pickle"),
        ("import llama_cpp", ("app", "fix", "run"), "imports llama_cpp"),
        ("import http.client", ("llm", "scoring", "scorer"), "imports http"),
        ("print(1)", ("cli", "fix"), "prints"),
        (
            "import sys\nsys.stderr.write(x)",
            ("app", "fix", "run"),
            "writes to the terminal past its border (sys.stderr.write)",
        ),
        (
            "from rich import console\nconsole.Console()",
            ("cli", "top"),
            "writes to the terminal past its border (console.Console())",
        ),
        ("import os\nx = os.O_EXCL", ("repo", "snapshot"), "makes files by itself (os.O_EXCL)"),
        ("import os\nx = os.environ", ("jail", "files", "host"), "reads the environment (os.environ)"),
        ("import os\nos.fork()", ("verify", "checks", "quick_check"), "starts a process (os.fork)"),
        ("import os\nos.fork()", ("cli", "fix"), "starts a process (os.fork)"),
        ("from os import execv", ("gate", "core", "chain"), "takes execv out of os"),
        ("import socket\nsocket.AF_INET", ("jail", "launcher", "runner"), "reaches for a network (socket.AF_INET)"),
        ("replace(backend, open_walls=walls)", ("jail", "attacks", "suite"), "names open walls"),
        ("replace(backend, **{'open_walls': walls})", ("app", "inventory", "attack_suite"), "names open walls"),
        ("backend.open_walls", ("cli", "doctor"), "names open walls"),
    ],
)
def test_the_fence_sees(source: str, parts: tuple[str, ...], reason: str) -> None:
    assert reason in breaches(source, parts)


@pytest.mark.parametrize(
    ("source", "parts"),
    [
        ("import libcst", ("edit", "space")),
        ("import subprocess", ("jail", "launcher", "runner")),
        ("print(1)", ("cli", "render")),
        ("import os\nos.environ", ("app", "settings")),
        ("import os\nos.environ['X'] = ''", ("runner", "pytest_session")),
    ],
)
def test_the_fence_lets_pass(source: str, parts: tuple[str, ...]) -> None:
    assert breaches(source, parts) == []


def text_uses(source: str) -> list[str]:
    """Where a module learns from an edit's note or operator as text.

    A note is read by nobody. An operator is a key, alone or in a tuple: it is never compared, asked for its parts, cut,
    or given to a function; and no operator is named.
    """
    tree = ast.parse(source)
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    classes = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    members = {id(node.value) for c in classes for node in c.body if isinstance(node, ast.Assign)}
    names = ("tokens.", *(name for name in operators() if "-" in name))  # the others are words of their own
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "note" and id(node) not in called:
            found.append(f"line {node.lineno}: reads a note")
        if (
            isinstance(node, ast.Constant)
            and str(node.value).startswith((*names, "tokens."))
            and id(node) not in members
        ):
            found.append(f"line {node.lineno}: names the operator {node.value!r}")
        if isinstance(node, ast.Attribute | ast.BinOp | ast.Call | ast.Compare | ast.FormattedValue | ast.Starred):
            for part in ast.iter_child_nodes(node):
                if isinstance(part, ast.Attribute) and part.attr == "operator" and id(part) not in called:
                    found.append(f"line {part.lineno}: reads an operator as text")
    return found


def test_the_search_reads_no_notes_and_compares_no_operators() -> None:
    files = sorted((PACKAGE / "repair").rglob("*.py"))
    found = {str(f.relative_to(PACKAGE)): text_uses(f.read_text(encoding="utf-8")) for f in files}
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "source",
    [
        "edit.note in NEGATING",
        "alike(*edit.note.rpartition(' -> ')[::2])",
        "shown = f'{edit.note}'",
        "edit.operator == kind",
        "kind in edit.operator",
        "edit.operator.startswith(BY_TOKENS)",
        "re.search('x', edit.operator)",
        "'tokens.' + edit.operator",
        "LESS = {'statement-delete': 1.0}",
        "slip = name == 'tokens.assign-compare'",
    ],
)
def test_the_fence_sees_what_is_spoken(source: str) -> None:
    assert text_uses(source)


@pytest.mark.parametrize(
    "source",
    [
        "gains[edit.operator]",
        "Counter(e.operator for e in edits)",
        "key = (edit.operator, edit.line)",
        "self.note(edit)",
    ],
)
def test_the_fence_lets_operators_be_keys(source: str) -> None:
    assert text_uses(source) == []


@pytest.mark.long
def test_no_message_is_cut_in_the_middle_of_a_word() -> None:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).parts
        if parts[0] not in NOT_FOR_PEOPLE and (lines := cut_texts(ast.parse(path.read_text(encoding="utf-8")))):
            found["/".join(parts)] = lines
    assert found == {}
    assert cut_texts(ast.parse('f"{why[:200]} is why"')) == [1]


def long_functions(source: str) -> list[str]:
    """The functions of more lines than one can take in at once."""
    functions = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [f.name for f in functions if (f.end_lineno or 0) - f.lineno >= MOST_LINES]


@pytest.mark.long
def test_no_function_is_too_long() -> None:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        if long := long_functions(path.read_text(encoding="utf-8")):
            found[str(path.relative_to(PACKAGE))] = long
    assert found == {}
    lines = "    x = 1\n" * MOST_LINES
    assert long_functions(f"def f():\n{lines}") == ["f"]
    assert long_functions(f"class C:\n{lines}") == []
