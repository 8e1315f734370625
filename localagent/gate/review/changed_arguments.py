"""Sign: what a call that matters is given has changed: a path that is opened, a query, a command, an address.

By function: what the call's arguments come from is followed through the function's own assignments. Not seen: what
other functions make of the same values.
"""

import ast
from collections import Counter
from collections.abc import Iterator

from localagent.code.bindings import FUNCTIONS, assignments, target_name
from localagent.code.function_pairing import called, settled
from localagent.code.names import callee_name
from localagent.code.regions import walk
from localagent.gate.core.rule import became, introduced, question
from localagent.gate.review.source_change import Signs, Source, SourceChange, newly
from localagent.text.visible_text import shortened

_SAVE = (
    "def save(root, name, data):\n    target = root / f'{hash(name)}.x'\n"
    "    with target.open('wb') as out:\n        out.put(data)\n"
)
_QUERY = "def find(db, name):\n    query = 'SELECT 1 WHERE a = ?'\n    return db.execute(query, (name,))\n"
_GET = "def get(session, key):\n    return session.get(f'/things/{key}', timeout=3)\n"

GIVEN = question(
    id="call-given",
    why="a call that writes, asks, runs or connects is given something else than it was",
    remedy="have a person confirm where the new value comes from, and that it is checked",
    match=(
        became(_SAVE, _SAVE.replace("f'{hash(name)}.x'", "name")),
        became(_QUERY, _QUERY.replace("a = ?'", "a = ' + name").replace(", (name,)", "")),
        became(_GET, _GET.replace("/things/{key}", "/things/{key}?u={session.user}")),
        introduced("def f(x):\n    x.client.send(x)\n    return x\n"),
        introduced("def f(x):\n    x.session.headers['X-A'] = x\n    return x\n"),
    ),
    not_match=(
        became(_SAVE, _SAVE.replace("out.put(data)", "out.put(data or b'')")),
        became(_GET, _GET.replace("return session", "print(key)\n    return session")),
        became(_SAVE + "\n\ndef other(x):\n    return x\n", _SAVE + "\n\ndef other(x):\n    return [x]\n"),
    ),
)
_FILES = frozenset(
    {"open", "write_text", "write_bytes", "unlink", "rmtree", "remove", "rename", "copy", "copy2", "copyfile",
     "copytree", "move", "makedirs", "extractall", "extract", "send_file", "FileResponse", "unpack_archive",
     "symlink_to",
     "NamedTemporaryFile"}
)  # fmt: skip
_WHOLE = frozenset(
    {"execute", "executemany", "executescript", "raw", "run", "Popen", "call",
     "check_output", "check_call",
     "system", "popen", "exec", "eval", "urlopen", "sendmail",
     "send_message", "sendall", "connect", "redirect", "render_template_string",
     "from_string",
     "create_subprocess_exec", "create_subprocess_shell", "set_cookie",
     "import_module", "unsafe_load", "safe_load", "yaml_load", "create_connection", "create_task_definition",
     "invoke", "publish", "encode_token"}
)  # fmt: skip
_ASKS = frozenset({"get", "post", "put", "patch", "delete", "request", "head", "stream", "download", "upload", "send"})
_SPEAKS = (
    "session", "client", "http", "request", "conn", "api", "gateway", "bucket", "s3", "smtp",
    "ftp", "ssh", "sock", "channel", "producer",
)  # fmt: skip
_DEPTH = 5
_MOST = 4_000


def given(change: SourceChange) -> Signs:
    """(what, where) for each such call of a function that stands before and after, and is given something else."""
    for _, was, function in change.pairs:
        old, new = list(_calls(was)), list(_calls(function))
        gone, come = Counter(k for k, _ in old), Counter(k for k, _ in new)
        lost = Counter(key[0] for key in (gone - come).elements())
        for key, node in new:
            if come[key] > gone[key] and lost[key[0]] > 0:
                lost[key[0]] -= 1
                yield f"{key[0]}() is given something else", node


def asks(source: Source) -> Signs:
    """Requests over a connection that stands already, and what goes along with each of them."""
    for node in source.nodes:
        func = node.func if isinstance(node, ast.Call) else None
        if isinstance(func, ast.Attribute) and isinstance(node, ast.Call):
            asks_more = func.attr in _ASKS and bool(node.args) and _speaks(func.value)
            if asks_more or (func.attr in ("append", "update", "setdefault") and _goes_along(func.value)):
                yield f"{shortened(ast.unparse(func), 60)}() is new", node
        elif isinstance(node, ast.Assign):
            tables = [t for t in node.targets if isinstance(t, ast.Subscript) and _goes_along(t.value)]
            yield from ((f"{shortened(ast.unparse(table), 60)} is new", node) for table in tables)


def _goes_along(node: ast.expr) -> bool:
    """`session.headers` and its like: what goes along with every request."""
    while isinstance(node, ast.Subscript):
        node = node.value
    tables = ("headers", "hooks", "params", "cookies")
    return isinstance(node, ast.Attribute) and node.attr in tables and _speaks(node.value)


def _calls(function: ast.AST) -> Iterator[tuple[tuple[str, str], ast.Call]]:
    """((name, what it is given), call)."""
    nodes = walk(function)
    made: dict[str, list[ast.expr]] = {}
    for node in nodes:
        if not isinstance(node, ast.arguments):
            for target, value in assignments(node):
                made.setdefault(target_name(target), []).append(value)
    names = settled(function)
    for node in nodes:
        if not isinstance(node, ast.Call):
            continue
        func = called(node.func, names)
        name = callee_name(func)
        receiver = func.value if isinstance(func, ast.Attribute) else None
        parts: list[ast.AST] = []
        if name in _FILES:
            parts = [receiver] if isinstance(receiver, ast.AST) and name != "copy" else []
            parts += node.args[: 0 if name == "open" and receiver is not None else 1]
        elif name in _WHOLE or (name in _ASKS and receiver is not None and _speaks(receiver)):
            parts = [*node.args, *node.keywords]
        if parts:
            yield (name, " ".join(_shown(part, made, _DEPTH) for part in parts)[:_MOST]), node


def _speaks(receiver: ast.expr) -> bool:
    return any(word in callee_name(receiver).lower() for word in _SPEAKS)


def _shown(node: ast.AST, made: dict[str, list[ast.expr]], depth: int) -> str:
    """An expression with what its names were set to, alike for what is alike."""
    text = ast.dump(node)
    if depth == 0 or isinstance(node, FUNCTIONS):
        return text
    names = dict.fromkeys(n.id for n in ast.walk(node) if isinstance(n, ast.Name) and n.id in made)
    for name in names:
        others = {k: v for k, v in made.items() if k != name}
        text += "|" + "|".join(_shown(value, others, depth - 1) for value in made[name][:8])
        if len(text) > _MOST:
            break
    return text


CHECKS = ((GIVEN, given), (GIVEN, newly(asks)))
