"""Sign: a long text that nobody can read, as keys, digests and encoded code are."""

import ast
import re

from localagent.gate.core.rule import introduced, question
from localagent.gate.review.source_change import Signs, Source, newly

OPAQUE = question(
    id="opaque-text",
    why="a long text that nobody can read may be a key, or code",
    remedy="say where it comes from; a key belongs outside the repository, and code in a source",
    match=(
        introduced("def f(x):\n    return g('aW1wb3J0IG9zO29zLnN5c3RlbSgnaWQnKQ==')\n"),
        introduced("def f(x):\n    return bytes.fromhex('b7d2f90a4c6e81357f9ad2c4b7d2f90a')\n"),
    ),
    not_match=(
        introduced("def f(x):\n    return 'a long text that everybody can read, of 3 words or more'\n"),
        introduced("def f(x):\n    return 'abcdefghijklmnopqrstuvwxyz_and_more'\n"),
    ),
)
_OPAQUE = re.compile(
    r"(?=.*[0-9])(?=.*[A-Za-z])(?:[0-9a-fA-F]{32,}|[A-Za-z0-9+/_-]{28,}={0,2}|(?:\\x[0-9a-f]{2}){8,})$"
)


def opaque(source: Source) -> Signs:
    """Texts that nobody can read: long ones of digits and letters, as keys, digests and encoded code are."""
    for node in source.nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            text = node.value if isinstance(node.value, str) else ascii(node.value)[2:-1]
            if _OPAQUE.match(text) and len(set(text)) > 9 and len(text) < 20_000:
                yield f"a text that nobody can read: {text[:12]}...", node


CHECKS = ((OPAQUE, newly(opaque)),)
