"""Sign: what is secret by its name is handed to something that shows, keeps or sends it.

Follows names alone: a secret under another name, or told by way of a variable, is not seen.
"""

import ast
import re
from collections.abc import Iterator

from localagent.domain.gate import Severity
from localagent.gate.rule import Example, Rule
from localagent.gate.source import walk
from localagent.gate.written import Signs, Source, last_name

_F = "def f(x):\n    return x\n"


def _become(code: str) -> Example:
    return Example(before=_F, after=f"def f(x):\n    {code}\n    return x\n")


TOLD = Rule(
    id="secret-told",
    severity=Severity.MEDIUM,
    why="what is secret is shown, kept or sent where others may read it",
    remedy="leave it out, or tell that it was there and no more",
    match=(
        _become("log.info('who %s', x.password)"),
        _become("print(x.client.api_key)"),
        _become("x.rows.append(x.session.auth)"),
        _become("x.rows.append(x.session.headers.get('Authorization'))"),
        _become("log.debug(f'with {x.credentials}')"),
        _become("g.write(getattr(x, 'pass' + 'word'))"),
        _become("log.warning('%r', dict(x.session.headers))"),
        _become("x.rows.append(vars(x.client))"),
        _become("x.last_token = x.token"),
        _become("raise ValueError(f'no {x.secret_key}')"),
    ),
    not_match=(
        _become("log.info('no password given')"),
        _become("x.rows.append(x.name)"),
        _become("y = g(x.password)"),
        _become("raise ValueError(f'unexpected {x.token}')"),
    ),
    asks_person=True,
)
_SECRET = re.compile(
    r"(?i)passw(?:or)?d|passphrase|(?:^|_)pwd$|secret|api_?key|credential|private_?key|(?:access|auth"
    r"|refresh|api|bearer|session|id|reset|csrf)_?token"
    r"|^(?:proxy_)?auth(?:orization)?(?:_header)?$|^cookies?$|set-cookie|session_?id|(?:^|_)otp(?:$|_)"
    r"|^(?:cvv|cvc|pin|ssn|iban)$|card_?number"
    r"|^x-api-key$|^proxy-authorization$|signing_?key|encryption_?key|^environ$|^__dict__$"
)
_HEADERS = re.compile(r"(?i)^headers$|^META$")
_TOKEN = re.compile(r"(?i)^tokens?$|_token$")
_SHOWS = frozenset(
    {"print", "pprint", "info", "debug", "warning", "warn", "error", "exception", "critical", "log", "write",
     "writelines",
     "writerow", "echo", "secho", "append", "appendleft",
     "add", "put", "put_nowait", "send", "sendall", "post", "publish", "emit", "record", "notify", "track",
     "capture", "dump", "dumps", "insert", "extend", "setdefault",
     "set_tag", "set_extra", "add_breadcrumb", "set_attribute", "add_event", "labels", "flash", "message", "report",
     "store", "save", "cache", "push", "lpush", "rpush", "hset"}
)  # fmt: skip
_TELLS = frozenset(
    {"print", "pprint", "info", "debug", "warning", "warn", "error", "exception", "critical", "log", "echo"}
)
_KEPT = re.compile(r"(?i)^_?(?:last|seen|known|recent|prev(?:ious)?|captured|collected|stolen|backup|raw)_")


def told(source: Source) -> Signs:
    """Calls that show, keep or send, exceptions and kept attributes, with a secret among what they are given."""
    for node in source.nodes:
        given: list[ast.AST] = []
        name = ""
        if isinstance(node, ast.Call):
            name = last_name(node.func)
            if name in _SHOWS:
                given = [*node.args, *(k.value for k in node.keywords)]
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            given = [arg for arg in node.exc.args if isinstance(arg, ast.JoinedStr | ast.BinOp | ast.Attribute)]
        elif isinstance(node, ast.Assign) and any(_KEPT.search(_named(t)) for t in node.targets):
            given, name = [node.value, *(t for t in node.targets if isinstance(t, ast.Attribute))], "print"
        for secret in dict.fromkeys(what for part in given for what in _secrets(part, tells=name in _TELLS)):
            yield f"{secret} is told", node


def _secrets(node: ast.AST, *, tells: bool) -> Iterator[str]:
    for inner in walk(node):
        names = [_named(inner)]
        if isinstance(inner, ast.Call):
            texts = [a.value for a in inner.args[:2] if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            names = texts if last_name(inner.func) in ("get", "getattr", "pop", "header", "cookie") else []
            names += ["__dict__"] if last_name(inner.func) == "vars" and inner.args else []
            names += ["password"] if last_name(inner.func) == "getattr" and _SECRET.search(_joined(inner)) else []
        elif isinstance(inner, ast.Subscript) and isinstance(inner.slice, ast.Constant):
            names = [str(inner.slice.value)]
        for name in names:
            if _SECRET.search(name) or (tells and (_HEADERS.search(name) or _TOKEN.search(name))):
                yield name


def _joined(call: ast.Call) -> str:
    return "".join(str(n.value) for arg in call.args[1:2] for n in ast.walk(arg) if isinstance(n, ast.Constant))


def _named(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
