"""Sign: texts that are worked out from constants though they could be written, and code that hides how it goes.

Whoever writes `"".join(map(chr, ...))` does not want to be read. Not seen: texts whose pieces come from other files.
"""

import ast
import re
from collections.abc import Iterator

from localagent.code.names import callee_name, last_name
from localagent.code.regions import walk
from localagent.code.string_folding import values_of
from localagent.gate.core.rule import inserted, question
from localagent.gate.review.source_change import Signs, Source, SourceChange, newly
from localagent.text.visible_text import shortened

COMPUTED = question(
    id="computed-text",
    why="a text that is worked out where it could be written is meant not to be read",
    remedy="write it as it is",
    match=tuple(
        inserted(code)
        for code in (
            "y = base64.b64decode('aW1wb3J0')",
            "y = ''.join(chr(c) for c in (105, 109))",
            "y = bytes([111, 115]).decode()",
            "y = 'so'[::-1]",
            "y = int('6f73', 16).to_bytes(2, 'big')",
            "y = f'{chr(111)}{chr(115)}'",
            "y = ''.join(reversed(['s', 'o']))",
            "y = ''.join(chr(ord(c) ^ 7) for c in x)",
            "y = bytes(b ^ 7 for b in x)",
            "y = '%c%c' % (111, 115)",
            "y = unquote('%6f%73')",
            "y = html.unescape('&#111;&#115;')",
            "y = zlib.decompress(b'xyz')",
            "y = codecs.encode('vzcbeg bf', 'rot_13')",
            "y = codecs.getdecoder('rot13')('bf')[0]",
            "y = (lambda z: z)(x)",
            "l1, ll, O0 = x",
            "y = json.__doc__[5:9]",
            "y = getattr(x, 'fi' + 'nd')",
            "y = 'o~s'.replace('~', '')",
            "y = 'xos'.removeprefix('x')",
            "y = f'{111:c}{115:c}'",
            "y = '%c' % 111 + '%c' % 115",
            "y = '{:c}'.format(111)",
            "y = 'abcdefghijklmnopqrs'[14]",
            "y = ascii_lowercase[14] + ascii_lowercase[18]",
            "y = (28531).to_bytes(2, 'big')",
            "y = struct.pack('BB', 111, 115)",
            "y = 'OS'.swapcase()",
            "y = 'so'.__getitem__(slice(None, None, -1))",
        )
    ),
    not_match=tuple(
        inserted(code)
        for code in (
            "y = base64.b64decode(x)",
            "y = 'a' 'b'",
            "y = ' '.join(['a', x])",
            "y = chr(x)",
            "y = bytes([0])",
            "y = x[::-1]",
            "y = x.encode('utf-8')",
            "y = 'a'.encode('ascii')",
            "y = '%s' % x",
            "y = sorted(x, key=lambda z: z.a)",
            "y = x.replace('~', '')",
            "y = f'{x:c}'",
            "y = ascii_letters[:26]",
            "y = 'a b c'.split()",
            "y = struct.pack('<I', 7)",
            "y = digits[0]",
            "y = b'\\\\x00\\\\x01'",
            "y = '\\\\x1b[0m'",
        )
    ),
)
_DECODERS = frozenset(
    {"b64decode", "b32decode", "b16decode", "b85decode", "a85decode", "urlsafe_b64decode", "standard_b64decode",
     "decodebytes", "unhexlify", "fromhex", "a2b_hex",
     "a2b_base64", "a2b_qp", "a2b_uu", "decompress", "unquote", "unquote_plus", "unescape", "decodestring",
     "to_bytes", "tobytes", "unpack"}
)  # fmt: skip
_TURNS = frozenset({"replace", "translate", "removeprefix", "removesuffix", "swapcase", "__getitem__", "rpartition"})
_ALPHABETS = frozenset({"ascii_letters", "ascii_lowercase", "ascii_uppercase", "printable"})
_CONFUSING = re.compile(r"(?=.*[lI1O0].*[lI1O0])[lIO_][lI1O0_]+$")
_DOC = frozenset({"__doc__", "__name__", "__module__", "__qualname__"})
_ROTATED = re.compile(r"(?i)rot_?13")
_LETTERS = re.compile(r"[A-Za-z]")
_ESCAPED = re.compile(
    r"(?:\\x(?:4[1-9a-fA-F]|5[0-9aA]|6[1-9a-fA-F]|7[0-9aA])){2,}|(?:\\u00(?:4[1-9a-f]|5[0-9a]|6[1-9a-f]|7[0-9a])){2,}"
    r"|(?:\\1[0-7]{2}){2,}|\\N\{(?:LATIN SMALL LETTER|LATIN CAPITAL LETTER) [A-Z]\}",
    re.IGNORECASE,
)


def computed(source: Source) -> Signs:
    """Every way of working out what could be written."""
    for node in source.nodes:
        if any(True for _ in _ways(node)):
            yield "a text or a value that is worked out", node
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and _CONFUSING.match(node.id):
            yield f"a name that is hard to read: {shortened(node.id, 20)}", node


def escaped(change: SourceChange) -> Signs:
    """More runs of letters than before are written by their numbers."""
    before, after = (sum(1 for _ in _ESCAPED.finditer(text)) if "\\" in text else 0 for text in change.texts)
    if after > before:
        yield "letters are written by their numbers", change.after.tree


def _is_rotated(node: ast.Call) -> bool:
    """A codec that turns letters into others is named."""
    return any(_ROTATED.fullmatch(_text_of(a)) for a in [*node.args, *(k.value for k in node.keywords)])


def _ways(node: ast.AST) -> Iterator[None]:
    if isinstance(node, ast.Call):
        name = callee_name(node.func)
        if (
            isinstance(node.func, ast.Lambda)
            or (name in _DECODERS and _is_fixed(node))
            or (name in ("encode", "decode", "getdecoder", "getencoder") and _is_rotated(node))
            or _is_picked(node, name)
            or (name == "chr" and _letters(node))
            or (name in _TURNS and _is_turned(node))
            or (name == "pack" and sum(isinstance(a, ast.Constant) for a in node.args) == len(node.args) > 2)
            or (name == "format" and re.search(r"\{\w*:c\}", _text_of(_receiver(node))))
            or (name in ("bytes", "bytearray", "array") and node.args and _numbers(node.args[-1]))
            or (name == "join" and node.args and _is_spelt(node.args[0]))
            or (
                name in ("chr", "bytes", "bytearray")
                and any(isinstance(n, ast.BinOp) and isinstance(n.op, ast.BitXor) for a in node.args for n in walk(a))
            )
        ):
            yield
    elif isinstance(node, ast.Subscript):
        whole = isinstance(node.slice, ast.Slice) and isinstance(node.value, ast.Constant)
        single = not isinstance(node.slice, ast.Slice) and _is_spelling_book(node.value)
        if (
            (single and values_of(node.slice))
            or (whole and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str | bytes))
            or (last_name(node.value) in _DOC and values_of(_last(node.slice)))
        ):
            yield
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and "%c" in _text_of(node.left):
        if _text_of(node.left).count("%c") > 1 or values_of(node.right) is not None:
            yield
    elif isinstance(node, ast.FormattedValue) and isinstance(node.format_spec, ast.JoinedStr):
        spec = "".join(_text_of(part) for part in node.format_spec.values)
        if spec.endswith("c") and values_of(node.value) is not None:
            yield


def _is_spelling_book(node: ast.expr) -> bool:
    """A text, or one of Python's alphabets, of which single letters are taken."""
    return bool(_text_of(node)) or callee_name(node) in _ALPHABETS


def _receiver(node: ast.Call) -> ast.expr:
    return node.func.value if isinstance(node.func, ast.Attribute) else node.func


def _is_turned(node: ast.Call) -> bool:
    """A method that alters a text, of a constant, with constants: it could be written as it comes out."""
    return bool(_text_of(_receiver(node))) and all(_is_known(a) for a in node.args)


def _is_known(node: ast.expr) -> bool:
    if isinstance(node, ast.Call | ast.Dict):
        return not any(isinstance(n, ast.Name) and n.id not in ("slice", "dict", "ord", "str") for n in walk(node))
    return values_of(node) is not None


def _is_fixed(node: ast.Call) -> bool:
    """Whether a decoder is given constants alone."""
    if node.args and all(values_of(a) is not None for a in node.args) and callee_name(node.func) != "to_bytes":
        return any(_size(v) > 1 for v in values_of(node.args[-1]) or ())
    receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
    if isinstance(receiver, ast.Constant) and callee_name(node.func) == "to_bytes":
        return isinstance(receiver.value, int) and receiver.value > 0xFF
    return isinstance(receiver, ast.Call) and callee_name(receiver.func) == "int" and len(receiver.args) > 1


def _is_picked(node: ast.Call, name: str) -> bool:
    """`getattr(x, 'a' + 'b')`: a name in pieces."""
    return name in ("getattr", "setattr", "hasattr", "__import__", "import_module") and any(
        isinstance(a, ast.BinOp | ast.Call | ast.Subscript) and values_of(a) is not None for a in node.args[:2]
    )


def _is_spelt(node: ast.expr) -> bool:
    """Single characters, reversed lists, or numbers, of constants."""
    if isinstance(node, ast.List | ast.Tuple) and len(node.elts) > 2:
        return all(len(_text_of(e)) == 1 and _LETTERS.match(_text_of(e)) for e in node.elts)
    if isinstance(node, ast.Call) and callee_name(node.func) in ("reversed", "sorted") and node.args:
        return values_of(node.args[0]) is not None
    if isinstance(node, ast.Call) and callee_name(node.func) == "map" and callee_name(node.args[0]) == "chr":
        return True
    return isinstance(node, ast.ListComp | ast.GeneratorExp) and any(
        isinstance(n, ast.Call) and callee_name(n.func) == "chr" for n in walk(node.elt)
    )


def _letters(node: ast.Call) -> bool:
    values = values_of(node.args[0]) if len(node.args) == 1 else None
    return bool(values) and all(isinstance(v, int) and chr(v % 0x110000).isalpha() for v in values or ())


def _numbers(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.List | ast.Tuple)
        and len(node.elts) > 1
        and all(isinstance(e, ast.Constant) and isinstance(e.value, int) and e.value > 31 for e in node.elts)
    )


def _text_of(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _size(value: object) -> int:
    return len(value) if isinstance(value, str | bytes | tuple) else 2


def _last(node: ast.expr) -> ast.expr:
    parts = [p for p in (node.lower, node.upper, node.step) if p is not None] if isinstance(node, ast.Slice) else [node]
    return parts[-1] if parts else node


CHECKS = ((COMPUTED, newly(computed)), (COMPUTED, escaped))
