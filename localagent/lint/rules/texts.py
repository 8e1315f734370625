"""Rules on text: literals, formats, messages."""

import ast
import re
import string
from collections.abc import Iterator

from localagent.lint.file_view import FileView
from localagent.lint.lint_rule import FixGrade, Hit, bad, rule

_SAFE, _SUGGESTION = FixGrade.SAFE, FixGrade.SUGGESTION
_ONE = re.compile(r"""([A-Za-z]*)('''|\"\"\"|'|")(.*)\2\Z""", re.DOTALL)
_ESCAPE = re.compile(r"\\(\r\n|.)", re.DOTALL)
_LEVELS = ("debug", "info", "warning", "error", "critical", "exception")
_FIELD = re.compile(r"\{([A-Za-z_][\w.]*)\}")
_PERCENT = re.compile(r"%(?:\((\w*)\))?[-+ #0]*(\*|\d+)?(?:\.(\*|\d+))?[hlL]?([a-zA-Z%])")


@rule(
    "fstring-without-fields",
    ast.JoinedStr,
    grade=_SAFE,
    words=(b"f'", b'f"', b"F'", b'F"', b"fr", b"rf", b"fR", b"Rf", b"FR", b"RF", b"Fr", b"rF"),
    why="The `f` does nothing; often a field was meant and forgotten.",
    bad=[
        bad("a = f'plain'\n", "a = 'plain'\n", _SAFE),
        bad("a = rf'\\d'\n", "a = r'\\d'\n", _SAFE),
        bad("a = f'{{x}}'\n"),
    ],
    good=["a = f'{x}'\n", "a = 'plain'\n", "a = f'a' f'{x}'\n", "def g():\n    f'no docstring'\n"],
)
def fstring_without_fields(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """An f-string without a field. With doubled braces it is only shown; as a statement it would become a docstring."""
    if not isinstance(node, ast.JoinedStr) or isinstance(view.parent(node), ast.Expr):
        return
    if any(isinstance(v, ast.FormattedValue) for v in node.values):
        return
    text = view.text(node)
    match = _ONE.match(text)
    if match is None or match[2] in match[3] or "f" not in match[1].lower():
        return
    at = view.start(node) + match[1].lower().index("f")
    before = view.between(max(view.start(node) - 1, 0), view.start(node))
    plain = not set("{}") & set(match[3]) and not before.isalnum() and _raw_alike(match)
    yield Hit(node, "f-string without a field", ((at, at + 1, ""),) if plain else None, _SAFE)


def _raw_alike(match: re.Match[str]) -> bool:
    """Whether a text can be read without its `f` (named characters have braces and are excluded already)."""
    try:
        with_f = ast.literal_eval(match[0].replace("f", "", 1).replace("F", "", 1) if match[1] in ("f", "F") else "''")
    except (SyntaxError, ValueError):
        return False
    return isinstance(with_f, str)


def _wrong_escapes(body: str, *, binary: bool) -> list[int]:
    valid = set("\n\r\\'\"abfnrtv01234567x") | (set() if binary else set("NuU")) | {"\r\n"}
    return [m.start() for m in _ESCAPE.finditer(body) if m[1] not in valid]


@rule(
    "invalid-escape",
    ast.Constant,
    grade=_SAFE,
    words=(b"\\",),
    why="Python warns about it, and a later version will refuse it.",
    bad=[
        bad("a = '\\d+'\n", "a = r'\\d+'\n", _SAFE),
        bad("a = '\\d\\n'\n", "a = '\\\\d\\n'\n", _SAFE),
        bad("a = b'\\.'\n", "a = rb'\\.'\n", _SAFE),
    ],
    good=["a = r'\\d'\n", "a = '\\n'\n", "a = '\\\\d'\n", "a = '\\N{BULLET}'\n"],
)
def invalid_escape(view: FileView, node: ast.AST) -> Iterator[Hit]:
    r"""A backslash before a character that it does not change. The value stays the same, which is checked."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str | bytes):
        return
    text = view.text(node)
    match = _ONE.match(text) if "\\" in text else None
    if match is None or match[2] in _ESCAPE.sub("", match[3]) or "r" in match[1].lower():
        return
    wrong = _wrong_escapes(match[3], binary="b" in match[1].lower())
    if not wrong:
        return
    start, lead = view.start(node), len(match[1]) + len(match[2])
    every = [m.start() for m in _ESCAPE.finditer(match[3])]
    if every == wrong and match[1].lower() in ("", "b") and "\r" not in match[3]:
        cuts: tuple[tuple[int, int, str], ...] = ((start, start, "r"),)
    else:
        at = [start + len(text[: lead + w].encode()) for w in wrong]
        cuts = tuple((a, a, "\\") for a in at)
    same = _value(_cut(text, [(c[0] - start, c[2]) for c in cuts])) == node.value
    yield Hit(node, "invalid escape sequence", cuts if same else None, _SAFE)


def _cut(text: str, inserts: list[tuple[int, str]]) -> str:
    data = text.encode()
    for at, new in reversed(inserts):
        data = data[:at] + new.encode() + data[at:]
    return data.decode()


def _value(text: str) -> object:
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return None


@rule(
    "logging-fstring",
    ast.Call,
    standard=False,
    words=(b"logging",),
    why="The message is formatted even if it is not logged, and log collectors cannot group it.",
    bad=[
        bad(
            "import logging\nlogging.info(f'got {x} of {y.z}')\n",
            "import logging\nlogging.info('got %s of %s', x, y.z)\n",
            _SUGGESTION,
        ),
        bad("import logging\nlog = logging.getLogger('a')\nlog.debug(f'{x!r}')\n"),
    ],
    good=[
        "import logging\nlogging.info('got %s', x)\n",
        "x.info(f'{y}')\n",
        "import logging\nlogging.info(f'plain')\n",
    ],
)
def logging_fstring(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """An f-string as the message of a logging call."""
    if not isinstance(node, ast.Call) or len(node.args) != 1 or not _logs(view, node.func, _LEVELS):
        return
    message = node.args[0]
    if not isinstance(message, ast.JoinedStr) or not any(isinstance(v, ast.FormattedValue) for v in message.values):
        return
    match = _ONE.match(view.text(message))
    names = _FIELD.findall(match[3]) if match else []
    rest = _FIELD.sub("", match[3]) if match else "{"
    plain = match is not None and match[1] == "f" and match[2] not in match[3] and not set("{}%\\") & set(rest)
    cuts = None
    if plain and match is not None:
        text = f"{match[2]}{_FIELD.sub('%s', match[3])}{match[2]}, {', '.join(names)}"
        cuts = (view.put(message, text),)
    yield Hit(node, "pass the values as arguments", cuts, _SUGGESTION)


def _logs(view: FileView, func: ast.expr, levels: tuple[str, ...]) -> bool:
    """Whether a function is a level of `logging` or of a logger that the module made."""
    if not isinstance(func, ast.Attribute) or func.attr not in levels:
        return False
    if view.named(func, *(f"logging.{level}" for level in levels)):
        return True
    if not isinstance(func.value, ast.Name):
        return False
    bound = view.bindings(func.value)
    made = view.parent(bound[0].node) if len(bound) == 1 else None
    return (
        isinstance(made, ast.Assign)
        and made.targets == [bound[0].node]
        and view.call_of(made.value, "logging.getLogger")
    )


@rule(
    "logging-warn",
    ast.Call,
    grade=_SAFE,
    words=(b".warn(",),
    why="`warn` is an old name of `warning`, and deprecated.",
    bad=[
        bad("import logging\nlogging.warn('x')\n", "import logging\nlogging.warning('x')\n", _SAFE),
        bad(
            "import logging\nlog = logging.getLogger(__name__)\nlog.warn('x')\n",
            "import logging\nlog = logging.getLogger(__name__)\nlog.warning('x')\n",
            _SAFE,
        ),
    ],
    good=["import warnings\nwarnings.warn('x')\n", "x.warn('y')\n"],
)
def logging_warn(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """The deprecated `warn` of `logging` and of loggers that the module made."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _logs(view, node.func, ("warn",)):
        end = view.end(node.func)
        yield Hit(node, "use warning instead of warn", ((end - len("warn"), end, "warning"),), _SAFE)


def _fields(text: str) -> tuple[int, bool] | None:
    """How many values a `%` format takes, and whether by name; None where that depends on the values."""
    count, named = 0, False
    for match in _PERCENT.finditer(text):
        if "*" in (match[2], match[3]):
            return None
        named = named or match[1] is not None
        count += match[4] != "%"
    return None if text.count("%") != sum(m[0].count("%") for m in _PERCENT.finditer(text)) else (count, named)


@rule(
    "percent-count",
    ast.BinOp,
    words=(b"%",),
    why="Too few or too many values: the line fails when it runs.",
    bad=[bad("a = '%s %s' % (x,)\n"), bad("a = '%d' % (x, y)\n")],
    good=[
        "a = '%s %s' % (x, y)\n",
        "a = '%s' % x\n",
        "a = '%(a)s' % d\n",
        "a = '%*d' % (x, y)\n",
        "a = '%s%%' % (x,)\n",
        "a = '%s %s' % (*x,)\n",
    ],
)
def percent_count(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """A `%` format whose tuple of values has another length than the format asks for."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mod) or not isinstance(node.right, ast.Tuple):
        return
    left = node.left.value if isinstance(node.left, ast.Constant) else None
    if isinstance(left, str) and not any(isinstance(e, ast.Starred) for e in node.right.elts):
        fields, given = _fields(left), len(node.right.elts)
        if fields and not fields[1] and fields[0] != given:
            yield Hit(node, f"the format needs {fields[0]} values but gets {given}")


@rule(
    "format-count",
    ast.Call,
    words=(b".format(",),
    why="A field without a value: the line fails when it runs.",
    bad=[bad("a = '{} {}'.format(x)\n"), bad("a = '{0} {2}'.format(x, y)\n"), bad("a = '{name}'.format(nam=x)\n")],
    good=[
        "a = '{} {}'.format(x, y)\n",
        "a = '{}'.format(*x)\n",
        "a = '{a}'.format(**x)\n",
        "a = '{{}}'.format()\n",
        "a = '{0.b[c]}'.format(x)\n",
    ],
)
def format_count(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """A field of `str.format` that no argument fills."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "format":
        return
    made = node.func.value.value if isinstance(node.func.value, ast.Constant) else None
    if (
        not isinstance(made, str)
        or any(isinstance(a, ast.Starred) for a in node.args)
        or any(k.arg is None for k in node.keywords)
    ):
        return
    try:
        fields = [f for _, f, spec, _ in string.Formatter().parse(made) if f is not None and "{" not in (spec or "")]
    except ValueError:
        return
    heads = [re.split(r"[.\[]", f, maxsplit=1)[0] for f in fields]
    given = {k.arg for k in node.keywords} | {str(n) for n in range(len(node.args))}
    needed = {h for h in heads if h} | {str(n) for n in range(heads.count(""))}
    if needed - given:
        yield Hit(node, f"no value for the field {min(needed - given)!r}")


@rule(
    "text-in-loop",
    ast.AugAssign,
    standard=False,
    words=(b"+=",),
    why="Each `+=` may copy the whole string so far; `''.join` copies it once.",
    bad=[bad("a = ''\nfor x in y:\n    a += str(x)\n")],
    good=["a = 0\nfor x in y:\n    a += x\n", "a = ''\na += 'x'\n"],
)
def text_in_loop(view: FileView, node: ast.AST) -> Iterator[Hit]:
    """A string that grows by `+=` in a loop."""
    if not isinstance(node, ast.AugAssign) or not isinstance(node.op, ast.Add) or view.in_loop(node) is None:
        return
    value = node.value
    is_text = isinstance(value, ast.JoinedStr) or (isinstance(value, ast.Constant) and isinstance(value.value, str))
    is_text = is_text or (isinstance(value, ast.Call) and view.builtin(value.func, "str"))
    if is_text and isinstance(node.target, ast.Name):
        yield Hit(node, "collect the parts and join them")


RULES = (
    fstring_without_fields, invalid_escape, logging_fstring, logging_warn, percent_count, format_count, text_in_loop,
)  # fmt: skip
