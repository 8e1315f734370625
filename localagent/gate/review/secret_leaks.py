"""Sign: what is secret by its name is handed to something that shows, keeps or sends it.

Follows names, and within a function the variables that a secret is put into, as it is or in another form. Not seen: a
secret that never had a name of its own, and what other functions make of it.
"""

import ast
import re
from collections.abc import Iterator

from localagent.code.bindings import FUNCTIONS, assignments, target_name
from localagent.code.function_pairing import called_name, names_of_calls
from localagent.code.names import callee_name, last_name
from localagent.code.regions import walk
from localagent.gate.core.rule import inserted, question
from localagent.gate.review.source_change import Signs, Source, newly
from localagent.text.secret_names import SENSITIVE_NAME

TOLD = question(
    id="secret-told",
    why="what is secret is shown, kept or sent where others may read it",
    remedy="leave it out, or tell that it was there and no more",
    match=(
        inserted("log.info('who %s', x.password)"),
        inserted("print(x.client.api_key)"),
        inserted("x.rows.append(x.session.auth)"),
        inserted("x.rows.append(x.session.headers.get('Authorization'))"),
        inserted("log.debug(f'with {x.credentials}')"),
        inserted("g.write(getattr(x, 'pass' + 'word'))"),
        inserted("log.warning('%r', dict(x.session.headers))"),
        inserted("x.rows.append(vars(x.client))"),
        inserted("x.last_token = x.token"),
        inserted("raise ValueError(f'no {x.secret_key}')"),
        inserted("p = x.password\n    log.info(p)"),
        inserted("p = x.password.encode()\n    q = f'{p}'\n    say = print\n    say(q)"),
        inserted("raise ValueError('no {}'.format(x.secret_key))"),
        inserted("x.log[0] = x.password"),
        inserted("y = x.environ.get('DATABASE_URL')\n    log.info('%s', y)"),
        inserted("p = x.header('Authorization', '')\n    log.info('from %s', p)"),
    ),
    not_match=(
        inserted("log.info('no password given')"),
        inserted("y = vars(x).get('options')\n    log.info('%s', y)"),
        inserted("x.rows.append(x.name)"),
        inserted("y = g(x.password)"),
        inserted("raise ValueError(f'unexpected {x.token}')"),
    ),
)
_SECRET = re.compile(
    rf"(?i){SENSITIVE_NAME}|(?:^|_)pwd$|(?:refresh|session|id|reset|csrf)_?token"
    r"|^(?:proxy_)?auth(?:orization)?(?:_header)?$|^cookies?$|set-cookie|session_?id|(?:^|_)otp(?:$|_)"
    r"|^(?:cvv|cvc|pin|ssn|iban)$|card_?number"
    r"|^x-api-key$|^proxy-authorization$|^environ$|^__dict__$"
)
_HEADERS = re.compile(r"(?i)^headers$|^META$")
_WITH_PASSWORD = re.compile(r"(?i)dsn|ur[il]$|conn|broker|proxy")  # of a server, often with who enters it
_TOKEN = re.compile(r"(?i)^tokens?$|_token$")
_SHOWS = frozenset(
    {"print", "pprint", "info", "debug", "warning", "warn", "error", "exception", "critical", "log", "write",
     "writelines",
     "writerow", "echo", "secho", "append", "appendleft",
     "add", "put", "put_nowait", "send", "sendall", "post", "publish", "emit", "record", "notify", "track",
     "capture", "dump", "dumps", "insert", "extend", "setdefault",
     "set_tag", "set_extra", "add_breadcrumb", "set_attribute", "add_event", "labels", "flash", "message", "report",
     "store", "save", "cache", "push", "lpush", "rpush", "hset", "write_text", "write_bytes", "sendto", "sendmail",
     "send_message", "urlopen", "urlretrieve", "request", "fatal", "trace", "success", "fetch", "upload", "putenv"}
)  # fmt: skip
_TELLS = frozenset({
    "print", "pprint", "info", "debug", "warning", "warn", "error", "exception", "critical", "log", "echo", "fatal",
    "trace", "success", "secho",
})  # fmt: skip
_CARRIES = frozenset(
    {"str", "repr", "format", "ascii", "bytes", "bytearray", "encode", "decode", "b64encode", "urlsafe_b64encode",
     "hexlify", "hex", "strip", "lstrip", "rstrip", "lower", "upper", "join", "dict", "list", "tuple", "set", "dumps",
     "quote", "urlencode", "copy", "deepcopy", "replace", "reversed", "vars", "get", "getattr", "pop", "split", "ljust",
     "zfill", "map", "title", "swapcase", "header", "get_header", "getheader", "cookie", "get_cookie"}
)  # fmt: skip
_ASKS = frozenset({"get", "getattr", "pop", "header", "get_header", "getheader", "cookie", "get_cookie"})
_ROUNDS = 3
_STORES = re.compile(r"(?i)^_?(?:cache|history|log|logs|records?|captured|leaked|stolen|dump|debug|trace|audit_?log)$")
_KEPT = re.compile(r"(?i)^_?(?:last|seen|known|recent|prev(?:ious)?|captured|collected|stolen|backup|raw)_")


Secrets = dict[int, str]
"""The secret that a variable holds, by the id of the node that reads it."""


def leaking_calls(source: Source) -> Signs:
    """Calls that show, keep or send, exceptions and kept attributes, with a secret among what they are given."""
    held = _tainted_names(source)
    names = names_of_calls(source.tree)
    for node in source.nodes:
        given: list[ast.AST] = []
        name = ""
        if isinstance(node, ast.Call):
            name = called_name(node.func, names.get(id(node), {}))
            if name in _SHOWS:
                given = [*node.args, *(k.value for k in node.keywords)]
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            given = [arg for arg in node.exc.args if _is_exception_text(arg)]
        elif isinstance(node, ast.Assign) and any(map(_is_stored, node.targets)):
            given, name = [node.value, *(t for t in node.targets if isinstance(t, ast.Attribute))], "print"
        for secret in dict.fromkeys(w for part in given for w in _secrets(part, held, tells=name in _TELLS)):
            yield f"{secret} is told", node


def _is_exception_text(node: ast.expr) -> bool:
    """What an exception says, and not what it holds."""
    formatted = isinstance(node, ast.Call) and callee_name(node.func) in ("format", "str", "repr", "join")
    return formatted or isinstance(node, ast.JoinedStr | ast.BinOp | ast.Attribute | ast.Name)


def _is_stored(target: ast.expr) -> bool:
    if isinstance(target, ast.Subscript):
        return bool(_STORES.search(last_name(target.value)))
    return bool(_KEPT.search(last_name(target)))


def _tainted_names(source: Source) -> Secrets:
    """What variables hold that a function puts a secret into, in whatever form that can be turned back."""
    found: Secrets = {}
    for scope in [source.tree, *(n for n in source.nodes if isinstance(n, FUNCTIONS))]:
        nodes = walk(scope)
        made = [pair for node in nodes if not isinstance(node, ast.arguments) for pair in assignments(node)]
        read: dict[str, list[int]] = {}
        for node in nodes:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                read.setdefault(node.id, []).append(id(node))
        for _ in range(_ROUNDS):
            before = len(found)
            for target, value in made:
                for secret in _carried(value, found) if target_name(target) in read else ():
                    found.update(dict.fromkeys(read[target_name(target)], secret))
            if len(found) == before:
                break
    return found


def _carried(value: ast.expr, held: Secrets) -> Iterator[str]:
    """The first secret that is in a value as it is, or in a form that can be turned back."""
    todo: list[ast.AST] = [value]
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.Compare, ast.Lambda, ast.Await, *FUNCTIONS)):
            continue
        if isinstance(node, ast.Call) and callee_name(node.func) not in _CARRIES:
            continue
        if _asks_for_one(node):
            continue
        for name in (held.get(id(node), ""), *_mentioned(node)):
            if _SECRET.search(name) or _TOKEN.search(name):
                yield name
                return
        todo += list(ast.iter_child_nodes(node))


def _asks_for_one(node: ast.AST) -> bool:
    """`vars(x).get("name")`, `os.environ["HOST"]`, `environ.get(PREFIX + name)`: one of many, and none is secret."""
    match node:
        case (
            ast.Call(func=ast.Attribute(value=whole, attr="get"), args=[key, *_])
            | ast.Subscript(value=whole, slice=key)
        ):
            of_all = last_name(whole) in ("environ", "__dict__") or (
                isinstance(whole, ast.Call) and callee_name(whole.func) == "vars"
            )
        case _:
            return False
    texts = [n.value for n in ast.walk(key) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    texts += [n.id for n in ast.walk(key) if isinstance(n, ast.Name) and n.id.isupper()]
    secret = (_SECRET.search(text) or _TOKEN.search(text) or _WITH_PASSWORD.search(text) for text in texts)
    return of_all and bool(texts) and not any(secret)


def _secrets(node: ast.AST, held: Secrets, *, tells: bool) -> Iterator[str]:
    for inner in walk(node):
        for name in (*_mentioned(inner), held.get(id(inner), "")):
            if _SECRET.search(name) or (tells and (_HEADERS.search(name) or _TOKEN.search(name))):
                yield name


def _mentioned(node: ast.AST) -> list[str]:
    """What a node asks for by name."""
    if isinstance(node, ast.Call):
        texts = [a.value for a in node.args[:2] if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        names = texts if callee_name(node.func) in _ASKS else []
        names += ["__dict__"] if callee_name(node.func) == "vars" and node.args else []
        return names + (["password"] if callee_name(node.func) == "getattr" and _SECRET.search(_joined(node)) else [])
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return [str(node.slice.value)]
    return [last_name(node)]


def _joined(call: ast.Call) -> str:
    return "".join(str(n.value) for arg in call.args[1:2] for n in ast.walk(arg) if isinstance(n, ast.Constant))


CHECKS = ((TOLD, newly(leaking_calls)),)
