"""Sign: a text that may well be a secret, short or plain as it is, where a secret is asked for.

The gate `secrets` refuses what is without order; this asks about passwords that people make up. Not seen: secrets under
names that say nothing.
"""

import ast
import base64
import binascii
import re
from collections.abc import Iterator

from localagent.code.bindings import assignments, settings
from localagent.code.names import callee_name
from localagent.code.string_folding import values_of
from localagent.gate.core.rule import inserted, question
from localagent.gate.review.source_change import Signs, Source, newly
from localagent.text.secret_names import SENSITIVE_NAME
from localagent.text.visible_text import shortened

KEPT = question(
    id="secret-written",
    why="a password, a key or a pin that stands in a source is known to all who read it",
    remedy="read it from outside the repository; an example should say that it is one",
    match=tuple(
        inserted(code)
        for code in (
            "x.login('root', 'Tr0ub4dor')",
            "y = {'X-Api-Key': 'd41d8cd98f00'}",
            "key = b'abcdefgh' * 2",
            "x.connect(user='root', passwd='toor')",
            "y = 'Server=db;Uid=sa;Pwd=Pass0;'",
            "pin = '4711'",
            "y = {'user': 'app', 'pass': 'kX9vQ2z'}",
            "creds = 'admin:admin123'",
            "y = 'YWRtaW46c2VjcmV0cGFzcw=='",
            "x.sign(y, key='s3cr3t-k3y')",
            "user, password = 'root', 'Tr0ub4dor'",
            "password = environ.get('PASSWORD', 'Tr0ub4dor')",
            "password = x or 'Tr0ub4dor'",
            "password = SecretStr('Tr0ub4dor')",
            "x.add_argument('--password', default='Tr0ub4dor')",
        )
    ),
    not_match=tuple(
        inserted(code)
        for code in (
            "x.login(user, password)",
            "key = 'name'",
            "y = sorted(x, key='name')",
            "password = ''",
            "password = None",
            "x.connect('host')",
            "y = {'pass': 'failed'}",
            "secret = '<your secret>'",
            "password = environ.get('DB_PASSWORD', '')",
            "password = read('vault/db1')",
        )
    ),
)
_NAMES = re.compile(
    rf"(?i){SENSITIVE_NAME}|passw|(?:^|[_-])(?:pw|pwd|pin|creds?|salt|seed|otp)(?:$|[_-])|_pass$|^x-api-key$"
)
_LOOSE = re.compile(r"(?i)^(?:pass|key|token|auth)$|_key$")
_LOGS_IN = frozenset(
    {"login", "auth", "authenticate", "connect", "set_credentials", "set_password", "basic_auth", "HTTPBasicAuth",
     "HTTPDigestAuth", "BasicAuth", "set_auth", "signin", "sign_in", "username_pw_set", "add_password"}
)  # fmt: skip
_INSIDE = re.compile(
    r"(?i)(?:^|[;&? ])(?:pwd|password|passwd|accountkey|secret|sharedaccesskey|apikey|token)=[^;&\s{}%<$]{3,}"
)
_DEFAULTS = ("default", "fallback", "default_value", "value")
_GETTERS = frozenset({"get", "getenv", "pop", "setdefault", "config", "env", "getattr", "next"})
_WRAPS = re.compile(
    r"^(?:str|bytes|Field|\w*Secret\w*|\w*String\w*|\w*Str|Password|Constant|Value|Final|cast|lazy|text)$"
)
_EXAMPLE = re.compile(
    r"(?i)^<.*>$|^\{|%|\$|example|change_?me\b|placeholder|dummy|your|redacted|xxx|\*\*|\.\.\.|^\s*$|^(?:none|true|false|null)$"
)
_MIXED = re.compile(r"(?=.*[A-Za-z])(?=.*[0-9!@#$%^&*?+=])\S{5,}$")
_NAMELIKE = re.compile(r"[a-z]+(?:[_. -][a-z]+)*$")


def literal_secrets(source: Source) -> Signs:
    """Constants under the names of secrets, as arguments of logins, and inside connection strings."""
    for node in source.nodes:
        for name, value in _set(node):
            if any(_is_secret_literal(name, part) for part in _parts(value)):
                yield f"a constant for {shortened(name, 30)}", node
        if isinstance(node, ast.Call) and callee_name(node.func) in _LOGS_IN:
            texts = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            if any(_MIXED.match(t) and not _EXAMPLE.search(t) and "." not in t for t in texts[-1:]):
                yield f"a constant for {callee_name(node.func)}", node
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _holds(node.value):
            yield "a secret inside a text", node


def _set(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """What a node sets, by name; several at once, and the defaults of options too."""
    yield from settings(node)
    if isinstance(node, ast.Assign) and any(isinstance(t, ast.Tuple | ast.List) for t in node.targets):
        yield from ((callee_name(t), value) for t, value in assignments(node) if isinstance(t, ast.expr))
    elif isinstance(node, ast.Call) and node.args:
        option = node.args[0].value if isinstance(node.args[0], ast.Constant) else None
        if isinstance(option, str) and len(option) < 60:
            yield from ((option.lstrip("-"), k.value) for k in node.keywords if k.arg in _DEFAULTS)


def _parts(value: ast.expr, depth: int = 4) -> list[ast.expr]:
    """What a value may be: either side of an `or`, a default, what is only wrapped."""
    if depth == 0:
        return [value]
    inner: list[ast.expr] = []
    if isinstance(value, ast.BoolOp):
        inner = value.values
    elif isinstance(value, ast.IfExp):
        inner = [value.body, value.orelse]
    elif isinstance(value, ast.Call):
        name = callee_name(value.func)
        inner = [k.value for k in value.keywords if k.arg in _DEFAULTS]
        inner += value.args[1:2] if name in _GETTERS else value.args[:1] if _WRAPS.search(name) else []
    return [value, *(part for one in inner for part in _parts(one, depth - 1))]


def _is_secret_literal(name: str, value: ast.expr) -> bool:
    named, loose = _NAMES.search(name), _LOOSE.search(name)
    if not (named or loose):
        return False
    for found in values_of(value) or ():
        text = found.decode("latin-1") if isinstance(found, bytes) else found
        if not isinstance(text, str) or not 3 < len(text) < 200 or _EXAMPLE.search(text) or " " in text.strip():
            continue
        if isinstance(found, bytes) or _MIXED.match(text) or (named and not _NAMELIKE.match(text)):
            return True
        if re.match(r"(?i)passw|passwd|pwd|pin", name) and text not in name and "_" not in text:
            return True
    return False


def _holds(text: str) -> bool:
    return 8 < len(text) < 400 and (_INSIDE.search(text) is not None or _is_basic(text))


def _is_basic(text: str) -> bool:
    """`user:password` in base64."""
    if not re.fullmatch(r"[A-Za-z0-9+/]{12,}={0,2}", text) or len(text) % 4:
        return False
    try:
        plain = base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        return False
    return re.fullmatch(rb"[\w.@-]{2,40}:[ -~]{3,80}", plain) is not None


CHECKS = ((KEPT, newly(literal_secrets)),)
