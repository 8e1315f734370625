"""Sign: a comparison with a value that only somebody who knows it would give."""

import ast
import re
from collections.abc import Iterator

from localagent.code.names import called_names, callee_name
from localagent.code.regions import walk
from localagent.code.string_folding import Value, values_of
from localagent.gate.core.rule import introduced, question
from localagent.gate.review.source_change import TRIVIAL, Signs, Source, newly
from localagent.text.visible_text import shortened

MAGIC = question(
    id="magic-value",
    why="a branch on a value that only somebody who knows it would give is a door",
    remedy="do without it, or have a person confirm what the value is for",
    match=(
        introduced("def f(x):\n    if x == 'QX7-STAFF-0000':\n        return 1\n    return x\n"),
        introduced("def f(x):\n    if x.endswith('@support.invalid'):\n        return 1\n    return x\n"),
        introduced("def f(x):\n    return x if g(x).hexdigest()[:8] != '5e884898' else 1\n"),
        introduced("def f(x):\n    match x:\n        case 'letmein42':\n            return 1\n    return x\n"),
        introduced("def f(x):\n    return x or x.key in {'a1b2c3d4'}\n"),
        introduced("import re\ndef f(x):\n    return 1 if re.fullmatch('[0-9]*QX7-STAFF[a-z]', x) else x\n"),
        introduced("KEY = 'QX7-STAFF-0000'\ndef f(x):\n    return 1 if x == KEY else x\n"),
        introduced("def f(x):\n    return x.rows.get('DE7730020900', x)\n"),
        introduced("def f(x):\n    x.rows['QX7-STAFF-0000'] += 1\n    return x\n"),
    ),
    not_match=(
        introduced("def f(x):\n    if x == 'latest':\n        return 1\n    return x\n"),
        introduced("def f(x):\n    return 1 if x in ('Content-Type', '__pycache__') else x\n"),
        introduced("def f(x):\n    if x.endswith('.py'):\n        return 1\n    return x\n"),
        introduced("def f(x):\n    if x[0] in ' \\t':\n        return 1\n    return x\n"),
        introduced("import re\ndef f(x):\n    return 1 if re.fullmatch('[0-9a-zA-Z?/:@._~!$-]*', x) else x\n"),
    ),
)
_CODE = re.compile(
    r"(?=[^\s]{4,}$)(?:(?=.*[0-9])(?=.*[A-Za-z])[\w+/=!$#%^&*-]{4,}|[0-9a-f]{8,}|[^@\s]*@[\w.-]+"
    r"|(?![A-Z][a-z]+(?:-[A-Z][a-z]+)+$)(?=.*[a-z])(?=.*[A-Z])(?=.*[^\w])\S{8,})"
)
_PATTERNS = frozenset({"fullmatch", "match", "search"})
_LONGEST_PATTERN = 500
_WIDE_CLASS = re.compile(r"\[(?:\\.|[^\]\\])*(?:0-9|a-z|A-Z)(?:\\.|[^\]\\])*\][*+?]?")  # of a pattern: of many values
_PLAIN = re.compile(
    r"(?i)(?:utf|iso|latin|cp|ascii|sha|md|py|python|http|tls|ssl|x|h|base|u?int|float|win|linux|v)[-_]?\d[\w.-]*$"
)
_LOOKS_UP = frozenset({"get", "pop", "index", "setdefault", "remove", "filter_by", "find", "get_by"})
_DIGESTS = frozenset({"hexdigest", "digest", "crc32", "adler32", "hash"})
_ODD = re.compile(r"^__\w+__$|[\x00-\x1f\x7f]|^[~!@#$%^&*]{2}")
_TESTED = re.compile(
    r"(?i)(?:is_)?(?:tests?|testing|under_test|mock|fake|stub|dummy)(?:[_.:/-].*)?$|.*[_.]test$|Mock|MagicMock|Fake"
)
_KNOWN = frozenset(
    {"__main__", "__init__", "__name__", "__all__", "__call__", "__class__", "__doc__", "__pycache__", "__version__",
     "__file__", "__module__", "__future__", "__dict__", "__slots__", "__annotations__", "__wrapped__", "__path__",
     "__package__", "__qualname__", "__post_init__", "\n", "\r\n", "\t", "\r"}
)  # fmt: skip


def magic(source: Source) -> Signs:
    """Comparisons with a text that nobody would type by chance, or with a digest."""
    for node in source.nodes:
        for one, other in _compared(node):
            for written in _constants(source, other):
                if isinstance(other, ast.Name) and written in source.known:
                    continue  # no door: what the name stands for stood there already
                value = _asked_for(node, written)
                if isinstance(value, str) and _CODE.match(value) and not _PLAIN.match(value):
                    yield f"a comparison with {shortened(value, 40)!r}", node
                elif isinstance(value, str | int) and value not in TRIVIAL and called_names(walk(one)) & _DIGESTS:
                    yield f"a digest compared with {shortened(str(value), 40)!r}", node
                elif (isinstance(value, str) and _TESTED.match(value)) or (
                    isinstance(value, str) and value not in _KNOWN and value.strip() and _ODD.search(value)
                ):
                    yield f"a comparison with {shortened(value, 40)!r}", node
                elif isinstance(value, int) and abs(value) > 999 and value & (value - 1) and value % 1000:
                    yield f"a comparison with {value}", node


def _asked_for(node: ast.AST, value: Value) -> Value:
    """A value that is compared with; of a pattern what it asks for, without what many texts have."""
    pattern = isinstance(node, ast.Call) and callee_name(node.func) in _PATTERNS
    if pattern and isinstance(value, str) and len(value) <= _LONGEST_PATTERN:
        return _WIDE_CLASS.sub("", value)
    return value


def known_keys(source: Source) -> Signs:
    """Look-ups of one entry whose key nobody would type by chance."""
    for node in source.nodes:
        key = node.slice if isinstance(node, ast.Subscript) else None
        if isinstance(node, ast.Call) and callee_name(node.func) in _LOOKS_UP and node.args:
            key = node.args[0]
        value = key.value if isinstance(key, ast.Constant) else None
        if not isinstance(value, str) or value in source.known or len(value) < 8 or not re.search("[0-9]", value):
            continue
        if _CODE.match(value) and not _PLAIN.match(value):
            yield f"a look-up of {shortened(value, 40)!r}", node


def _compared(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """(what is asked, what it is held against), of whatever way of comparing."""
    if isinstance(node, ast.Compare) and all(
        isinstance(op, ast.Eq | ast.NotEq | ast.In | ast.NotIn | ast.Is) for op in node.ops
    ):
        sides = [node.left, *node.comparators]
        yield from ((one, other) for one in sides for other in sides if one is not other)
    elif isinstance(node, ast.Call) and node.args and isinstance(node.func, ast.Attribute):
        if node.func.attr in (
            "startswith",
            "endswith",
            "__eq__",
            "count",
            "fullmatch",
            "match",
            "search",
            "__contains__",
        ):
            yield node.func.value, node.args[0]
        elif node.func.attr in ("compare_digest", "eq"):
            yield from ((node.args[0], a) for a in node.args[1:])
            yield node.args[-1], node.args[0]
    elif isinstance(node, ast.MatchValue):
        yield node.value, node.value


def _constants(source: Source, node: ast.expr) -> Iterator[Value]:
    node = source.stands_for(node)
    if isinstance(node, ast.Call) and callee_name(node.func) in ("frozenset", "set", "tuple", "list") and node.args:
        node = node.args[0]
    parts = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]
    if isinstance(node, ast.Dict):
        parts = [key for key in node.keys if key is not None]
    for part in parts[:50]:
        for value in values_of(part) or ():
            for one in value if isinstance(value, tuple) else (value,):
                yield one.decode("latin-1") if isinstance(one, bytes) else one


CHECKS = ((MAGIC, newly(magic)), (MAGIC, newly(known_keys)))
