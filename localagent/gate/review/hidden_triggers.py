"""Sign: a new condition that only some surroundings, some day, some count, or one certain input meets.

A file that lies there, a variable of the environment, who or where one is, a part of a date, every so many calls, a sum
over an input: what tests meet by chance alone. Not seen: triggers that are worked out elsewhere.
"""

import ast
import re
from collections.abc import Iterator

from localagent.code.bindings import FUNCTIONS
from localagent.code.names import called_names, callee_name
from localagent.code.regions import walk
from localagent.code.string_folding import values_of
from localagent.gate.core.rule import PLAIN, RuleExample, became, question
from localagent.gate.review.source_change import TRIVIAL, Signs, Source, newly
from localagent.gate.security.plain_uses import USUAL_SETTING, read_setting


def _become(condition: str, head: str = "") -> RuleExample:
    return became(PLAIN, f"{head}def f(x):\n    if {condition}:\n        x = g(x)\n    return x\n")


TRIGGER = question(
    id="trigger-added",
    why="what happens under rare surroundings, at a time, or for one input alone is met by no test",
    remedy="make it a setting that people know of, or have a person confirm what it is for",
    match=tuple(
        _become(condition)
        for condition in (
            "Path('/tmp/on').exists()",
            "os.path.isfile(x + '.expected')",
            "os.environ.get('FAST')",
            "'LEGACY' in environ",
            "getenv('FAST') == '1'",
            "getpass.getuser() == 'root'",
            "platform.node().startswith('db')",
            "today.year > 2027",
            "d.today() > d(2031, 1, 1)",
            "time.time() > 1900000000",
            "today.toordinal() > 739981",
            "x.month == 4",
            "x.calls % 100 == 99",
            "x.count > 1337",
            "sum(map(ord, x)) == 1213",
            "hash(x) % 5 == 0",
            "x[-3:] == '042'",
            "x == 'Ana Silva'",
            "x == (1, 2, 3)",
            "x == [5, 3]",
            "x in (17, 42)",
            "x.headers.get('X-Debug')",
            "x.args.get('preview') == '1'",
            "x.cookies['beta']",
            "'zz:' in x.note",
            "any(y.startswith('pytest-') for y in x)",
            "x.get('a', 40.078)",
            "len(x) == 4",
            "hasattr(x.get, 'call_args_list')",
            "x.total + 17.007 * x.n",
            "x.replace('C and Python: a love story', 'c-and-python')",
        )
    ),
    not_match=tuple(
        _become(condition)
        for condition in (
            "x == 'latest'",
            "x > 0",
            "len(x) == 1",
            "x % 2 == 0",
            "x.year % 4 == 0",
            "x is None",
            "x in ('a', 'b')",
            "x.startswith('#')",
            "x.kind == KIND",
            "x < len(y)",
            "x == '\\\\n'",
            "not x.headers",
            "environ is None",
            "x > 100",
        )
    ),
)
_FILES = frozenset(
    {"exists", "is_file", "is_dir", "isfile", "isdir", "lexists", "islink", "is_symlink", "access", "is_mount"}
)
_WHERE = frozenset(
    {"getenv", "getuser", "getlogin", "getuid", "geteuid", "getpid", "getppid", "gethostname", "getfqdn", "node",
     "uname", "getcwd", "getlocale", "cpu_count", "gettrace", "isatty", "random", "randrange", "randint", "uniform",
     "choice", "weekday", "isoweekday", "toordinal", "isocalendar", "timetuple", "timestamp", "monotonic",
     "perf_counter"}
)  # fmt: skip
_PARTS = frozenset({"year", "month", "day", "hour", "minute", "second"})
_AROUND = frozenset({"environ", "argv", "gettrace", "executable", "platform"})
_ASKED = re.compile(
    r"(?i)^(?:headers|cookies|args|query|query_params|GET|params|form|META|user_agent|remote_addr|referer)$"
)
_CLOCKS = frozenset({"now", "today", "utcnow", "time", "time_ns", "gmtime", "localtime", "strftime", "ctime"})
_SUMS = frozenset(
    {"hash", "crc32", "adler32", "sum", "ord", "id", "hexdigest", "digest", "checksum", "md5", "sha1", "sha256"}
)
_OF_TESTS = re.compile(
    r"(?i)pytest|unittest|conftest|\btox\b|(?:^|[/_.])tests?(?:$|[/_.])|call_args|assert_called|side_effect|\bmock"
)
_PLAIN_NUMBERS = frozenset(
    {3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 20, 24, 30, 31, 32, 60, 64, 80, 90, 100, 127, 128, 180, 200, 255, 256, 360, 365,
     400, 404, 500, 512, 1000, 1024, 3600, 4096, 65535, 65536, 86400}
)  # fmt: skip
_MIXED = re.compile(r"[A-Z][a-z]+[ '-]|[A-Z]\. ?[A-Z]|\d{2,}|[a-z]{1,3}:$|[A-Z][a-z]+[A-Z]\w*\d|@")


def triggers(source: Source) -> Signs:
    """Every condition that is a trigger, alike for what is alike."""
    for node in source.nodes:
        if isinstance(node, ast.BinOp | ast.Call) and (odd := _odd_part(source, node)):
            yield f"{odd}: a number that no code has without reason", node
        if isinstance(node, ast.If) and (answer := _written_down(node.body)) is not None:
            yield "an answer that is written down for some inputs", answer
        elif isinstance(node, ast.Call) and callee_name(node.func) == "replace" and _is_whole(node):
            yield "a text that is put in place of one certain text", node
        if isinstance(node, ast.If | ast.IfExp | ast.While | ast.Assert):
            yield from _conditions(source, node.test)
        elif isinstance(node, ast.comprehension):
            for test in node.ifs:
                yield from _conditions(source, test)
        elif isinstance(node, ast.Return | ast.Assign) and isinstance(node.value, ast.BoolOp | ast.Compare):
            yield from _conditions(source, node.value)


def _odd_part(source: Source, node: ast.BinOp | ast.Call) -> str:
    """A fraction of four digits or more that a sum or a default holds, and nothing before held."""
    sides = [node.left, node.right] if isinstance(node, ast.BinOp) else node.args[1:]
    if isinstance(node, ast.Call) and callee_name(node.func) not in ("get", "getattr", "pop", "setdefault", "next"):
        return ""
    for side in sides:
        value = side.value if isinstance(side, ast.Constant) else None
        if (
            isinstance(value, float)
            and len(repr(value).replace(".", "").strip("0")) > 3
            and value not in source.numbers
        ):
            return repr(value)
    return ""


def _written_down(body: list[ast.stmt]) -> ast.expr | None:
    """The constants that a block answers with, or a part of them, if these are several."""
    value = body[-1].value if isinstance(body[-1], ast.Return) else None
    shown = value.value if isinstance(value, ast.Subscript) else value
    if isinstance(shown, ast.Tuple | ast.List | ast.Set | ast.Dict):
        items = shown.values if isinstance(shown, ast.Dict) else shown.elts
        if len(items) > 2 and all(isinstance(i, ast.Constant | ast.UnaryOp | ast.Tuple | ast.List) for i in items):
            return value
    return None


def _is_whole(node: ast.Call) -> bool:
    """Whether a replacement looks for several words at once."""
    first = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
    return isinstance(first, str) and len(first.split()) > 1 and len(first) > 8


def _conditions(source: Source, test: ast.expr) -> Signs:
    every = walk(test)
    usual = {id(part) for n in every if USUAL_SETTING.fullmatch(read_setting(n)) for part in ast.walk(n)}
    usual |= {id(part) for n in every if _asks_if_given(n) for part in ast.walk(n)}
    for node in every:
        if isinstance(node, (*FUNCTIONS, ast.Lambda)) or id(node) in usual:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _OF_TESTS.search(node.value):
            yield "a condition on a name of tests", node
        elif isinstance(node, ast.Call):
            name = callee_name(node.func)
            if name in _FILES:
                yield f"a condition on whether {name}", node
            elif name in _WHERE:
                yield f"a condition on {name}", node
            elif (
                name in ("get", "getlist")
                and isinstance(node.func, ast.Attribute)
                and _ASKED.match(callee_name(node.func.value))
            ):
                yield "a condition on what a request brings along", node
        elif isinstance(node, ast.Attribute | ast.Name) and callee_name(node) in _AROUND:
            yield f"a condition on {callee_name(node)}", node
        elif isinstance(node, ast.Subscript) and _ASKED.match(callee_name(node.value)):
            yield "a condition on what a request brings along", node
        elif isinstance(node, ast.Compare):
            yield from ((what, node) for what in _compared(source, node))


def _asks_if_given(node: ast.AST) -> bool:
    """`environ is None`: a name, which may be a parameter that was left out."""
    match node:
        case ast.Compare(left=ast.Name(), ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant(value=None)]):
            return True
    return False


def _compared(source: Source, node: ast.Compare) -> Iterator[str]:
    sides = [node.left, *node.comparators]
    constants = [side for side in sides if _is_constant(source, side)]
    if len(sides) == 2 and isinstance(node.ops[0], ast.Eq) and _is_length(*sides):
        yield "a condition on one certain length"
    if not constants or len(constants) == len(sides):
        return
    other = next(side for side in sides if side not in constants)
    if isinstance(other, ast.BinOp) and isinstance(other.op, ast.Mod) and _is_counted(other):
        yield "a condition on every so many"
    elif called_names(walk(other)) & _CLOCKS:
        yield "a condition on the time"
    elif called_names(walk(other)) & _SUMS:
        yield "a condition on a sum over an input"
    elif isinstance(other, ast.Attribute) and other.attr in _PARTS:
        yield f"a condition on a {other.attr}"
    elif any(_is_certain(source, side, node.ops[0]) for side in constants):
        yield "a condition that one input alone meets"


def _is_length(one: ast.expr, other: ast.expr) -> bool:
    """`len(x) == 4`; lengths up to two are usual."""
    number = other.value if isinstance(other, ast.Constant) else None
    return isinstance(one, ast.Call) and callee_name(one.func) == "len" and isinstance(number, int) and number > 2


def _is_counted(node: ast.BinOp) -> bool:
    values = values_of(node.right)
    if not values or not isinstance(values[0], int):
        return False
    return values[0] not in (0, 1, 2, 4, 8, 10, 100, 400, 7, 12, 60, 16) or (
        isinstance(node.left, ast.Call | ast.Attribute) and (callee_name(node.left) not in _PARTS and values[0] > 2)
    )


def _is_constant(source: Source, node: ast.expr) -> bool:
    node = source.stands_for(node)
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return bool(node.elts) and all(_is_constant(source, e) for e in node.elts)
    if isinstance(node, ast.Call):
        return bool(node.args) and all(_is_constant(source, a) for a in node.args)
    return isinstance(node, ast.Constant) or (isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant))


def _is_certain(source: Source, node: ast.expr, op: ast.cmpop) -> bool:
    """A constant that one input alone is equal to, or that is large and odd where a bound stands."""
    if isinstance(node, ast.Name) and isinstance(source.stands_for(node), ast.Constant):
        return False  # a constant with a name says what it is
    node = source.stands_for(node)
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        if isinstance(op, ast.Eq):
            return len(node.elts) > 1 and not all(_is_trivial(e) for e in node.elts)
        return any(_is_certain(source, e, ast.Eq()) for e in node.elts)
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    value = node.value if isinstance(node, ast.Constant) else None
    if isinstance(value, bool) or value is None:
        return False
    if isinstance(value, int):
        return _is_odd(node) and (isinstance(op, ast.Eq | ast.NotEq) or value > 999)
    if isinstance(value, float):
        return isinstance(op, ast.Eq) and value not in (0.0, 1.0, 0.5, 2.0, -1.0, 100.0)
    if isinstance(value, str):
        return isinstance(op, ast.Eq | ast.NotEq | ast.In) and len(value) > 2 and _MIXED.search(value) is not None
    return False


def _is_odd(node: ast.expr) -> bool:
    """A whole number that no code has without reason."""
    value = node.value if isinstance(node, ast.Constant) else None
    return (
        isinstance(value, int) and not isinstance(value, bool) and abs(value) > 2 and abs(value) not in _PLAIN_NUMBERS
    )


def _is_trivial(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in (*TRIVIAL, None)


CHECKS = ((TRIGGER, newly(triggers)),)
