"""Signs of doors, written answers and hidden starts in a source: (what, where), `what` alike for what is alike."""

import ast
import builtins
import re
from collections.abc import Iterator

from localagent.code.bindings import FUNCTIONS, last_name
from localagent.code.regions import walk
from localagent.code.string_folding import Value, values_of
from localagent.gate.review.source_change import TRIVIAL, Signs, Source

_CODE = re.compile(
    r"(?=[^\s]{4,}$)(?:(?=.*[0-9])(?=.*[A-Za-z])[\w+/=!$#%^&*-]{4,}|[0-9a-f]{8,}|[^@\s]*@[\w.-]+"
    r"|(?=.*[a-z])(?=.*[A-Z])(?=.*[^\w])\S{8,})"
)
_PLAIN = re.compile(
    r"(?i)(?:utf|iso|latin|cp|ascii|sha|md|py|python|http|tls|ssl|x|h|base|u?int|float|win|linux|v)[-_]?\d[\w.-]*$"
)
_HOOKS = frozenset(
    {"__del__", "__init_subclass__", "__set_name__", "__class_getitem__", "__prepare__", "__instancecheck__",
     "__subclasscheck__", "__subclasshook__", "__mro_entries__", "__getstate__", "__setstate__", "__fspath__"}
)  # fmt: skip
_AT_IMPORT = re.compile(r"(?i)register|filterwarnings|getLogger|add_argument|config|setup|declare|export")
_DIGESTS = frozenset({"hexdigest", "digest", "crc32", "adler32", "hash"})

_OPAQUE = re.compile(
    r"(?=.*[0-9])(?=.*[A-Za-z])(?:[0-9a-fA-F]{32,}|[A-Za-z0-9+/_-]{28,}={0,2}|(?:\\x[0-9a-f]{2}){8,})$"
)
_BUILTINS = frozenset(name for name in dir(builtins) if name[0].islower())
_ODD = re.compile(r"^__\w+__$|[\x00-\x1f\x7f]|^[~!@#$%^&*]{2}")
_TESTED = re.compile(
    r"(?i)(?:is_)?(?:tests?|testing|under_test|mock|fake|stub|dummy)(?:[_.:/-].*)?$|.*[_.]test$|Mock|MagicMock|Fake"
)
_KNOWN = frozenset(
    {"__main__", "__init__", "__name__", "__all__", "__call__", "__class__", "__doc__", "\n", "\r\n", "\t", "\r"}
)


def magic(source: Source) -> Signs:
    """Comparisons with a text that nobody would type by chance, or with a digest."""
    for node in source.nodes:
        for one, other in _compared(node):
            for value in _constants(source, other):
                if isinstance(other, ast.Name) and value in source.known:
                    continue  # no door: what the name stands for stood there already
                if isinstance(value, str) and _CODE.match(value) and not _PLAIN.match(value):
                    yield f"a comparison with {value[:40]!r}", node
                elif isinstance(value, str | int) and value not in TRIVIAL and _asks(one) & _DIGESTS:
                    yield f"a digest compared with {str(value)[:40]!r}", node
                elif (isinstance(value, str) and _TESTED.match(value)) or (
                    isinstance(value, str) and value not in _KNOWN and _ODD.search(value)
                ):
                    yield f"a comparison with {value[:40]!r}", node
                elif isinstance(value, int) and abs(value) > 999 and value & (value - 1) and value % 1000:
                    yield f"a comparison with {value}", node


def opaque(source: Source) -> Signs:
    """Texts that nobody can read: long ones of digits and letters, as keys, digests and encoded code are."""
    for node in source.nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            text = node.value if isinstance(node.value, str) else ascii(node.value)[2:-1]
            if _OPAQUE.match(text) and len(set(text)) > 9 and len(text) < 20_000:
                yield f"a text that nobody can read: {text[:12]}...", node


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
    if isinstance(node, ast.Call) and last_name(node.func) in ("frozenset", "set", "tuple", "list") and node.args:
        node = node.args[0]
    parts = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]
    if isinstance(node, ast.Dict):
        parts = [key for key in node.keys if key is not None]
    for part in parts[:50]:
        for value in values_of(part) or ():
            for one in value if isinstance(value, tuple) else (value,):
                yield one.decode("latin-1") if isinstance(one, bytes) else one


def _asks(node: ast.AST) -> set[str]:
    return {last_name(n.func) for n in walk(node) if isinstance(n, ast.Call)}


def replaced(source: Source) -> Signs:
    """Methods and classes of objects that are set from outside."""
    classes = {n.name for n in source.nodes if isinstance(n, ast.ClassDef)}
    for node in source.nodes:
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Delete):
            targets = node.targets if isinstance(node, ast.Assign | ast.Delete) else [node.target]
            for target in targets:
                if isinstance(target, ast.Attribute) and (
                    _is_class(target.value, classes) or target.attr == "__class__"
                ):
                    yield f"{ast.unparse(target)[:60]} set from outside", node
        elif isinstance(node, ast.Call) and last_name(node.func) in ("setattr", "delattr") and node.args:
            told = [node.args[0]] if _is_class(node.args[0], classes) else []
            yield from ((f"{ast.unparse(one)[:60]} set from outside", node) for one in told)


def shadowed(source: Source) -> Signs:
    """Functions of Python whose names a module gives to something else; that holds for all of the module."""
    freed = {name for n in source.nodes if isinstance(n, ast.Global) for name in n.names} & _BUILTINS
    yield from ((f"the name {name}", source.tree) for name in sorted(freed))
    for node in source.tree.body:
        names = [node.name] if isinstance(node, FUNCTIONS) else []
        if isinstance(node, ast.Assign):
            names = [t.id for t in node.targets if isinstance(t, ast.Name)]
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.asname or alias.name.split(".")[0] for alias in node.names]
        yield from ((f"the name {name}", node) for name in names if name in _BUILTINS)


def _is_class(node: ast.expr, classes: set[str]) -> bool:
    if isinstance(node, ast.Call):
        return last_name(node.func) == "type"
    if isinstance(node, ast.Attribute):
        return node.attr == "__class__"
    return isinstance(node, ast.Name) and node.id in classes


def unasked(source: Source) -> Signs:
    """What runs without being called."""
    for node in source.nodes:
        if isinstance(node, FUNCTIONS) and node.name in _HOOKS:
            yield node.name, node
        elif isinstance(node, ast.ClassDef) and any(
            k.arg == "metaclass" and last_name(k.value) not in ("ABCMeta", "EnumMeta") for k in node.keywords
        ):
            yield f"a metaclass of {node.name}", node
    for statement in source.tree.body:
        if isinstance(statement, FUNCTIONS) and statement.name in ("__getattr__", "__dir__"):
            yield f"{statement.name} of a module", statement
        if source.is_script:
            continue  # it ran from top to bottom before; what it does is judged by what it mentions
        for call in _calls_at_import(statement):
            if not _AT_IMPORT.search(last_name(call.func)):
                yield f"{ast.unparse(call.func)[:60]}() on import", call


def _calls_at_import(node: ast.stmt) -> Iterator[ast.Call]:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield node.value
    elif isinstance(node, ast.Try | ast.With | ast.For | ast.While):
        for block in (node.body, getattr(node, "orelse", []), getattr(node, "finalbody", [])):
            for inner in block:
                yield from _calls_at_import(inner)
