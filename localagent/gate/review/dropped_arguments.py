"""Sign: an argument that protected is not given any more, or is given what does not protect.

By the name of what is called, followed through names that are set once, `functools.partial` and `**` of what is written
down. Not seen: arguments without a name, and what a table that is made elsewhere holds.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator

from localagent.code.condition_implication import Names
from localagent.code.function_pairing import called_name, names_of_calls
from localagent.code.regions import walk
from localagent.gate.core.rule import became, question
from localagent.gate.review.source_change import Signs, SourceChange
from localagent.text.visible_text import shortened

_COOKIE = "def f(r, v):\n    r.set_cookie('s', v, secure=True, max_age=60)\n"
DROPPED = question(
    id="protection-dropped",
    why="an argument that protected is not given any more, so that a weaker default holds",
    remedy="keep the argument, or say to a person why the default is as good",
    match=(
        became(_COOKIE, _COOKIE.replace("secure=True, ", "")),
        became("x = get('a', timeout=5)\n", "x = get('a')\n"),
        became("x = get('a', timeout=5)\n", "x = get('a', timeout=None)\n"),
        became(_COOKIE, _COOKIE.replace("secure=True", "secure=v.old")),
        became(_COOKIE, _COOKIE.replace("secure=True, max_age=60", "**{'max_age': 60}")),
        became(_COOKIE, _COOKIE.replace("r.set_cookie(", "put = r.set_cookie\n    put(").replace("secure=True, ", "")),
    ),
    not_match=(
        became(_COOKIE, _COOKIE.replace("'s'", "'t'")),
        became(_COOKIE, "def f(r, v):\n    pass\n"),
        became(_COOKIE, _COOKIE.replace("secure=True, max_age=60", "**{'secure': True, 'max_age': 60}")),
        became(_COOKIE, _COOKIE.replace("max_age=60", "max_age=90")),
    ),
)
_PROTECTS = re.compile(
    r"(?i)^(?:secure|http_?only|samesite|verify|check_hostname|timeout|connect_timeout|read_timeout|max_age"
    r"|expires?(?:_in|_at)?|ttl|autoescape|escape"
    r"|allow_redirects|follow_redirects|algorithms?|audience|issuer|options|permission(?:s|_classes)?"
    r"|authentication_classes|dependencies|max_length|max_?size|max_bytes"
    r"|limit|max_?(?:bytes|len|workers|depth|items|tries|retries|memory|connections|results|tasks|entries)|backupCount|maxsize|repr|exclude|strict|validate|validators?|context|ssl_?context|cafile|ca_certs|cert_reqs|filter|Loader|check"
    r"|raise_exception|daemon|salt|iterations|n|rounds|usedforsecurity"
    r"|schema|allow_pickle|weights_only|safe|quote|mode|dir_fd|follow_symlinks|exist_ok|delete"
    r"|check_same_thread|isolation_level|scope|scopes|max_redirects|retries|nonce|key)$"
)
# These protect whatever is called; the others of them only where the same is called as often as before.
_FIRM = re.compile(
    r"(?i)^(?:secure|http_?only|samesite|verify|check_hostname|autoescape|cert_reqs|weights_only|allow_pickle|audience|algorithms"
    r"|issuer|ssl_?context|raise_exception|permission_classes|authentication_classes)$"
)
_ON = re.compile(
    r"(?i)^(?:secure|http_?only|verify|check_hostname|autoescape|escape|strict|validate|weights_only|raise_exception|check"
    r"|usedforsecurity)$"
)
_OFF = re.compile(r"(?i)^(?:allow_redirects|follow_redirects|allow_pickle|exist_ok|follow_symlinks)$")
_NOTHING = ("None", "False", "0", "''", "ALL")
_UNKNOWN = ""


class _Given:
    """What the calls of a source are given by name."""

    def __init__(self, tree: ast.Module) -> None:
        self.calls: Counter[str] = Counter()
        self.keywords: Counter[tuple[str, str]] = Counter()
        self.values: Counter[tuple[str, str, str]] = Counter()
        names = names_of_calls(tree)
        for node in walk(tree):
            if isinstance(node, ast.Call):
                self._take(node, names.get(id(node), {}))

    def _take(self, node: ast.Call, names: Names) -> None:
        name = called_name(node.func, names)
        if name in ("partial", "partialmethod") and node.args:
            name = called_name(node.args[0], names)
        else:
            self.calls[name] += 1
        for keyword, value in _keywords(node, names):
            self.keywords[name, keyword] += 1
            self.values[name, keyword, value] += 1


def _keywords(node: ast.Call, names: Names) -> Iterator[tuple[str, str]]:
    """(keyword, what it is given), "" for what nobody can know."""
    for keyword in node.keywords:
        if keyword.arg is not None:
            if _PROTECTS.match(keyword.arg):
                yield keyword.arg, _shown(keyword.value)
            continue
        table = names.get(keyword.value.id) if isinstance(keyword.value, ast.Name) else keyword.value
        if isinstance(table, ast.Call) and called_name(table.func, {}) == "dict" and not table.args:
            yield from _keywords(table, names)
        elif isinstance(table, ast.Dict):
            for key, value in zip(table.keys, table.values, strict=True):
                text = key.value if isinstance(key, ast.Constant) else None
                if isinstance(text, str) and _PROTECTS.match(text):
                    yield text, _shown(value)
                elif text is None:
                    yield _UNKNOWN, ""
        else:
            yield _UNKNOWN, ""


def _shown(value: ast.expr) -> str:
    return repr(value.value) if isinstance(value, ast.Constant) else "something"


def dropped(change: SourceChange) -> Signs:
    """Arguments that protect, lost by a call that is still made as often, or worth less than they were."""
    old, new = _Given(change.before.tree), _Given(change.after.tree)
    for (name, keyword), count in old.keywords.items():
        if keyword == _UNKNOWN or new.keywords[name, keyword] >= count:
            continue
        unknown = new.keywords[name, _UNKNOWN] > old.keywords[name, _UNKNOWN]
        if new.calls[name] >= old.calls[name] and (not unknown or _FIRM.match(keyword)):
            yield f"{name}(… {keyword}=) is gone", change.after.tree
        elif (
            _FIRM.match(keyword) and new.calls.total() >= old.calls.total() and _sum(new, keyword) < _sum(old, keyword)
        ):
            yield f"{name}(… {keyword}=) is gone, and something else is called", change.after.tree
    gone, come = old.values - new.values, new.values - old.values
    for (name, keyword, value), _ in come.items():
        had = [was for other, key, was in gone if (other, key) == (name, keyword)]
        if had and any(_is_worth_less(keyword, was, value) for was in had):
            yield (
                f"{name}(… {keyword}=) was {shortened(', '.join(sorted(had)), 40)} and is {shortened(value, 40)}",
                change.after.tree,
            )


def _sum(given: _Given, keyword: str) -> int:
    return sum(count for (_, key), count in given.keywords.items() if key == keyword)


def _is_worth_less(keyword: str, was: str, value: str) -> bool:
    if _ON.match(keyword):
        return was == "True" and value != "True"
    if _OFF.match(keyword):
        return was == "False" and value != "False"
    return value in _NOTHING and was not in _NOTHING and keyword not in {"mode", "key"}


CHECKS = ((DROPPED, dropped),)
