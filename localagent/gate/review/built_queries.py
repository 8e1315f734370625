"""Sign: an SQL query whose text takes in a value, where a parameter would keep it a value.

Only texts that compare, set or insert what comes: names of tables and columns can be no parameters. Not seen: queries
that are put together over several statements, and from what other functions return.
"""

import ast
import re
from collections.abc import Iterator

from localagent.code.names import callee_name
from localagent.gate.core.rule import inserted, question
from localagent.gate.review.source_change import Signs, Source, newly
from localagent.text.visible_text import shortened

BUILT = question(
    id="query-built",
    why="a value that becomes part of a query's text can become a part of what the query does",
    remedy="leave a placeholder in the text, and hand the value over beside it",
    match=(
        inserted("""y = f"SELECT a FROM t WHERE b = '{x}'\""""),
        inserted("""y += f" WHERE b = '{x}'\""""),
        inserted("""y = "SELECT a FROM t WHERE b = '%s'" % x"""),
        inserted("y = 'delete from t where b = ' + x"),
        inserted("y = 'UPDATE t SET a = {} WHERE b = 1'.format(x)"),
        inserted("y = f'INSERT INTO t VALUES ({x}, 1)'"),
        inserted("y = f\"SELECT a FROM t WHERE b LIKE '%{x}%'\""),
        inserted("y = f'SELECT a FROM t WHERE b IN ({x})'"),
    ),
    not_match=(
        inserted("y = db.execute('SELECT a FROM t WHERE b = ?', (x,))"),
        inserted("y = f'SELECT a FROM {x} WHERE b = ?'"),
        inserted("y = f\"SELECT a FROM t WHERE b IN ({','.join('?' * len(x))})\""),
        inserted("marks = ', '.join(['%s'] * len(x))\n    y = f'SELECT a FROM t WHERE b IN ({marks})'"),
        inserted("y = f'where {x} = {y}'"),
        inserted("y = 'SET BY ' + x"),
    ),
)
_COMPARES = r"[^;]*(?:[=<>]|\b(?i:like|in|between)\b)[^;=<>]*$"
_TAKES_VALUE = re.compile(
    rf"\b(?:WHERE|HAVING|AND|OR|SET)\b{_COMPARES}|(?i:^\s*(?:select|update|delete\s+from)\b.*\b(?:where|set)\b){_COMPARES}"
    r"|\bVALUES\b[^;]*$|(?i:^\s*insert\s+into\b.*\bvalues\b)[^;]*$",
    re.DOTALL,
)
_PLACEHOLDER = re.compile(r"[\s,(]*(?:\?|%s|:\w+|\$\d+)[\s,)]*")


def built_queries(source: Source) -> Signs:
    """Texts of queries with a hole where a value belongs."""
    placeholders = {
        target.id
        for node in source.nodes
        if isinstance(node, ast.Assign) and _holds_placeholder(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in source.nodes:
        for text, hole in _holes(node):
            known = (isinstance(hole, ast.Name) and hole.id in placeholders) or _holds_placeholder(hole)
            if not known and _TAKES_VALUE.search(text):
                yield f"{shortened(ast.unparse(hole), 40)} in the text of a query", node
                break


def _holes(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """What a text takes in, each with the text before it."""
    match node:
        case ast.JoinedStr(values=values):
            before = ""
            for part in values:
                if isinstance(part, ast.FormattedValue):
                    yield before, part.value
                    before += "0"
                elif isinstance(part, ast.Constant):
                    before += str(part.value)
        case ast.BinOp(left=ast.Constant(value=str(text)), op=ast.Mod(), right=given):
            yield text.partition("%s")[0], given
        case ast.BinOp(left=ast.Constant(value=str(text)), op=ast.Add(), right=given):
            yield text, given
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text))), args=[given, *_]):
            if callee_name(node.func) == "format":
                yield text.partition("{")[0], given


def _holds_placeholder(node: ast.expr) -> bool:
    texts = (n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str))
    return any(_PLACEHOLDER.fullmatch(text) for text in texts)


CHECKS = ((BUILT, newly(built_queries)),)
