"""Uses of what the policy's table of dangers names that are plain by what they are given.

A setting of the user's display, language or folders, read by its usual name; a setting of the program, named like one
that the file read before; a markup that is spelt out, into which nothing comes. Not seen: what a setting is used for.
"""

import ast
import re
from collections.abc import Iterable

USUAL_SETTING = re.compile(
    r"NO_COLOR|(?:FORCE|CLICOLOR)(?:_COLOR|_FORCE)?|COLORTERM|TERM|COLUMNS|LINES|LANG|LANGUAGE|LC_[A-Z]+|TZ|EDITOR|VISUAL"
    r"|PAGER|SOURCE_DATE_EPOCH|XDG_(?:CONFIG|CACHE|DATA|STATE)_HOME"
)
_PREFIX = re.compile(r"[A-Z][A-Z0-9]{2,}_(?=[A-Z])")
_OWN_SETTING = re.compile(rf"(?:environ\.get\(|getenv\(|environ\[)\s*[\"']({_PREFIX.pattern})")
_TELLING = re.compile(
    r"TEST|CI(?:_|$)|DEBUG|DEV(?:EL|_|$)|AUTH|ADMIN|ROOT|USER|KEY|TOKEN|SECRET|PASS|CRED|HOOK|URL|URI|HOST|PROXY|CERT|SSL"
    r"|TLS|VERIFY|SAFE|SECUR|CMD|COMMAND|EXEC|RUN|EVAL|SHELL|PLUGIN|MODULE|BUILD|PROD|STAG|MODE|BYPASS|SKIP|ALLOW|TRUST|GOLD"
)
_READS = frozenset({"os.environ.get", "os.getenv", "environ.get", "getenv"})
_MARKUPS = frozenset({"Markup", "mark_safe"})


def read_setting(node: ast.AST) -> str:
    """The name of the variable that an expression reads of the environment, "" where it is none that is spelt out."""
    if isinstance(node, ast.Call) and node.args and ast.unparse(node.func) in _READS:
        name: ast.expr = node.args[0]
    elif isinstance(node, ast.Subscript) and ast.unparse(node.value) in ("os.environ", "environ"):
        name = node.slice
    else:
        return ""
    return name.value if isinstance(name, ast.Constant) and isinstance(name.value, str) else ""


def is_spelt_markup(node: ast.AST) -> bool:
    """Whether a call declares one constant text to be safe, by one of the usual names."""
    if not isinstance(node, ast.Call) or len(node.args) != 1 or node.keywords:
        return False
    name = ast.unparse(node.func).rpartition(".")[2]
    text = node.args[0].value if isinstance(node.args[0], ast.Constant) else None
    return name in _MARKUPS and isinstance(text, str) and "{" not in text and "%" not in text


def plain_uses(nodes: Iterable[ast.AST], file: bytes) -> frozenset[int]:
    """The ids of those nodes that are plain uses; `file` is the whole file as it stood."""
    own = frozenset(m[1] for m in _OWN_SETTING.finditer(file.decode("utf-8", "replace")))
    found: set[int] = set()
    for node in nodes:
        setting = read_setting(node)
        if (setting and _is_plain(setting, own)) or is_spelt_markup(node):
            head = node.func if isinstance(node, ast.Call) else node
            found |= {id(node), *(id(part) for part in ast.walk(head))}
    return frozenset(found)


def _is_plain(setting: str, own: frozenset[str]) -> bool:
    prefix = _PREFIX.match(setting)
    known = prefix is not None and prefix[0] in own and not _TELLING.search(setting)
    return known or USUAL_SETTING.fullmatch(setting) is not None
