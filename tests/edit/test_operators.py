"""Known repairs: each lies in the space of the broken program, under the operator that should say it."""

import ast

import pytest

from localagent.domain.outcome import Failure, Frame
from localagent.domain.paths import RepoPath
from localagent.edit.operator_registry import operators
from localagent.edit.space import LibcstEditSpace, open_edit_space

PATH = RepoPath("mod.py")


def repairs(broken: str, fixed: str, failure: Failure | None = None) -> list[str]:
    want = ast.dump(ast.parse(fixed))
    failures = [failure] if failure else []
    edits = LibcstEditSpace({}).edits(PATH, {PATH: broken.encode()}, lines=None, failures=failures)
    return [e.operator for e in edits if ast.dump(ast.parse(e.apply(broken.encode()))) == want]


ONE_LINE = [
    ("return a <= b", "return a < b", "compare-swap"),
    ("return type(a) == int", "return type(a) is int", "compare-swap"),
    ("return a == True", "return a is True", "compare-swap"),
    ("return a.__class__ != b", "return a.__class__ is not b", "compare-swap"),
    ("return hasattr(a, 'x')", "return getattr(a, 'x', None)", "subscript-default"),
    ("if c := a.get(b): return c", "if (c := a.get(b)) is not None: return c", "none-or-empty"),
    (
        "try: return a\n    except (KeyError, TypeError): return b",
        "try: return a\n    except (KeyError, TypeError, OverflowError): return b",
        "exception-widen",
    ),
    ("raise KeyError(a)", "raise ImportError(a)", "exception-swap"),
    (
        "try: return a\n    except Exception: b.close(); raise",
        "try: return a\n    except BaseException: b.close(); raise",
        "exception-swap",
    ),
    ("g(b=b)\n    h(a)", "g(b=b)\n    h(a, b=b)", "keyword-add"),
    ("g(a, k='rows')\n    g(b)", "g(a, k='rows')\n    g(b, k='rows')", "keyword-add"),
    ("g(a, k=-2)\n    g(b)", "g(a, k=-2)\n    g(b, k=-2)", "keyword-add"),
    ("g(a, k=-True)\n    g(b)", "g(a, k=-True)\n    g(b, k=True)", "keyword-add"),
    ("g(a, k=c)\n    g(b)", "g(a, k=c)\n    g(b, k=True)", "keyword-add"),
    ("g(a, k=None)\n    g(b)", "g(a, k=None)\n    g(b, k='')", "keyword-add"),
    ("raise NotImplementedError", "return a * b", "stub-body"),
    ("raise NotImplementedError('soon')", "return a.get(b)", "stub-body"),
    ("...", "return list(dict.fromkeys(a))", "stub-body"),
    ("...", "return f'{a} {b}'", "stub-body"),
    ("...", "return [x for x in a if len(x) >= b]", "stub-body"),
    ("return a[0] == b", "return a.startswith(b)", "text-end"),
    ("return a.b[0] == '/'", "return a.b.startswith('/')", "text-end"),
    ("return a[-1] != '.'", "return not a.endswith('.')", "text-end"),
    ("return a - b", "return a + b", "arithmetic-swap"),
    ("return len(a) == 0", "return len(a) <= 1", "compare-bound"),
    ("b = a + 1", "b = max(b, a + 1)", "keep-extreme"),
    ("return a * b + 1", "return a * (b + 1)", "regroup"),
    ("return a[b]", "return a[b - 1]", "off-by-one"),
    ("return a and b", "return a or b", "and-or"),
    ("return a, 0", "return a, 1", "constant-step"),
    ("return f(a, b)", "return f(b, a)", "argument-swap"),
    ("return min(a, b)", "return max(a, b)", "callee-swap"),
    ("return a.lower()", "return a.upper()", "attribute-swap"),
    ("return a[b:]", "return a[:b]", "slice-bounds"),
    ("return a", "return sorted(a)", "wrap"),
    ("return len(a)", "return a", "unwrap"),
    ("a.append(b)", "return a.append(b)", "return-yield"),
    ("if a: return b", "while a: return b", "if-while"),
    ("return [x for x in a]", "return [x for x in a if x]", "filter-add"),
    ("for x in a: print(x)", "for x in a[1:]: print(x)", "for-form"),
    ("a, b = b, a", "a = b\n    b = a", "assign-split"),
    ("if a.x > 1: return b", "if isinstance(a, str) and a.x > 1: return b", "condition-type"),
    ("if self.x > 1: return b", "if self.x is not None and self.x > 1: return b", "condition-type"),
    ("if a.x: return b", "if a.x is not None: return b", "none-or-empty"),
    ("if not a: return b", "if a is None: return b", "none-or-empty"),
    ("if a is None: return b", "if not a: return b", "none-or-empty"),
    ("return f(a or b())", "return f(a if a is not None else b())", "none-or-empty"),
    ("a = a if a is not None else b", "a = a or b", "none-or-empty"),
    ("return re.match(r'a.c$', b)", "return re.match(r'a.c\\Z', b)", "pattern-edit"),
    ("return re.match(r'a.c$', b)", "return re.match(r'a\\.c$', b)", "pattern-edit"),
    ("return re.sub('[ab]', '', b)", "return re.sub('[ab]+', '', b)", "pattern-edit"),
    ("return [(r'\\s+|x*', b)]", "return [(r'\\s*|x*', b)]", "pattern-edit"),
    ("return a.search('(x*)y')", "return a.search('(x*?)y')", "pattern-edit"),
    ("return re.findall(r'\\d', b)", "return re.findall(r'\\d+', b)", "pattern-edit"),
    ("return isinstance(a, list)", "return isinstance(a, (list, tuple))", "type-widen"),
    ("return type(a) is b", "return isinstance(a, b)", "type-widen"),
    ("return type(a) not in [int, b]", "return not isinstance(a, (int, b))", "type-widen"),
    (
        "for x in a:\n        g(b.y[x])",
        "for x in a:\n        if x not in b.y: continue\n        g(b.y[x])",
        "guard-loop",
    ),
    ("return a in {1, 2} or b == 3", "return a in {1, 2, 3} or b == 3", "element-add"),
    ("g('z')\n    return a in ['x', 'y']", "g('z')\n    return a in ['x', 'y', 'z']", "element-add"),
    ("g(b'z')\n    return a in [b'x', b'y']", "g(b'z')\n    return a in [b'x', b'y', b'z']", "element-add"),
    ("return {'x': a, 'y': b}", "return {'x': a}", "element-drop"),
    ("return {'x': a, **b}", "return {**b}", "element-drop"),
    ("g(b)\n    return f(b) == a", "g(b)\n    return f(b) == g(a)", "known-wrap"),
    ("g(a)\n    for x in b: print(x)", "g(a)\n    for x in g(b): print(x)", "known-wrap"),
    ("return f'{a}x'", "return f' {a}x'", "text-edit"),
    ("return f'{a}x '", "return f'{a}x'", "text-edit"),
    (
        "try: g(a)\n    except KeyError:\n        print(b)",
        "try: g(a)\n    except KeyError:\n        print(b)\n        raise",
        "raise-again",
    ),
    ("@a\n    @b\n    def inner(): pass", "@b\n    def inner(): pass", "decorator-drop"),
    ("for k, v in a: print(k)", "for k, v in a.items(): print(k)", "view-of"),
    ("return a[0]", "return a[0] if a else None", "first-or"),
    ("return '{a} in {b}'", "return f'{a} in {b}'", "text-prefix"),
    ("return ' '.join(a)", "return b.join(a)", "receiver-parameter"),
    ("return a['x']", "return a.get('x', '')", "subscript-default"),
    ("return getattr(a, b)", "return getattr(a, b, None)", "subscript-default"),
    ("return max(a)", "return max(a, default=0)", "subscript-default"),
    ("return a.name.upper()", "return a.name.upper() if a.name else None", "value-if"),
    ("return [a]", "return [a] if a else []", "value-if"),
    ("return a == b", "return a and a == b", "value-and"),
    (
        "if a: return 1\n    else:\n        b.x = 2",
        "if a: return 1\n    elif b is not None:\n        b.x = 2",
        "else-condition",
    ),
    ("g(a)\n    return b", "g(a)\n    return g(b)", "known-wrap"),
    ("return f(a, b)", "return f(a, 0)", "value-plain"),
    ("b = a[0]\n    return b", "b = None\n    return b", "value-plain"),
    ("return g(a) > b", "return g(a) > 1", "value-plain"),
    ("return a[1] - b[0] / a * 3.6", "return (a[1] - b[0]) / a * 3.6", "regroup"),
    ("return a * b * 2 - b", "return a * (b * 2 - b)", "regroup"),
    ("return f'{a}:{b:02d}'", "return f'{a:02d}:{b:02d}'", "format-spec"),
    ("return f'{a!r:>4}:{b}'", "return f'{a!r}:{b}'", "format-spec"),
    (
        "n = 0\n    for x in a:\n        if x:\n            b.append(n)\n        n += x",
        "n = 0\n    for x in a:\n        if x:\n            b.append(n)\n            n = 0\n        n += x",
        "restart",
    ),
    ("for x in a: print(x)", "a = list(a)\n    for x in a: print(x)", "rebind"),
    ("return re.sub('x', '', a, b)", "return re.sub('x', '', a, flags=b)", "argument-keyword"),
    ("yield [a]", "yield list(a)", "display-call"),
    ("return set(a)", "return {a}", "display-call"),
    ("b.x = 1\n    if b.y: return a", "b.x = 1\n    if b.y and b.x is not None: return a", "attribute-condition"),
    ("while a < b:\n        print(a)", "while a < b:\n        print(a)\n        a += 1", "loop-advance"),
    ("for x in a:\n        if a[x] > 1: print(a[x])", "for x in a:\n        if x > 1: print(x)", "loop-value"),
    (
        "for x in a:\n        if x in b: return x",
        "for x in a:\n        if x in b: return x\n        b.add(x)",
        "remember",
    ),
]


@pytest.mark.long
@pytest.mark.parametrize(("broken", "fixed", "operator"), ONE_LINE)
def test_a_one_line_repair_is_in_the_space(broken: str, fixed: str, operator: str) -> None:
    head = "def f(a, b):\n    "
    assert repairs(f"{head}{broken}\n", f"{head}{fixed}\n") == [operator]


HOLDS = "class Own(Exception):\n    pass\n\n\nclass A:\n    def __init__(self, n):\n        self.n = n\n\n    "


@pytest.mark.long
@pytest.mark.parametrize(
    ("method", "broken", "fixed", "operator"),
    [
        ("__le__(self, b)", "raise NotImplementedError", "return self.n <= b.n", "stub-body"),
        ("__add__(self, b)", "raise NotImplementedError", "return type(self)(self.n + b.n)", "stub-body"),
        ("put(self, b)", "raise NotImplementedError", "return self.n.put(b)", "stub-body"),
        ("f(self)", "raise NotImplementedError", "return self", "stub-body"),
        ("f(self, b)", "self.n -= b", "if b > self.n:\n            raise Own\n        self.n -= b", "guard-raise"),
    ],
)
def test_what_an_object_holds_is_compared_combined_asked_and_guarded(
    method: str, broken: str, fixed: str, operator: str
) -> None:
    head = f"{HOLDS}def {method}:\n        "
    assert operator in repairs(f"{head}{broken}\n", f"{head}{fixed}\n")


BLOCKS = [
    (
        "def f(a, b):\n    i = j = 0\n    while a[i]:\n        j += 1\n    while b[j]:\n        i += 1\n",
        "def f(a, b):\n    i = j = 0\n    while a[i]:\n        i += 1\n    while b[j]:\n        j += 1\n",
    ),
    (
        "class A:\n    xs = []\n\n    def __init__(self, n):\n        self.n = n\n",
        "class A:\n    xs = []\n\n    def __init__(self, n):\n        self.xs = []\n        self.n = n\n",
    ),
    (
        "def f(a, b):\n    a.left = f(b + 1, b)\n    a.right = f(b, b - 1)\n",
        "def f(a, b):\n    a.right = f(b + 1, b)\n    a.left = f(b, b - 1)\n",
    ),
    (
        "def f(a, b):\n    a.left = f(b + 1, b)\n    a.right = f(b, b - 1)\n",
        "def f(a, b):\n    a.left = f(b, b - 1)\n    a.right = f(b + 1, b)\n",
    ),
    (
        "def f(a, b):\n    if a == 1 and b == 2 or a == 3:\n        return a\n",
        "def f(a, b):\n    if a != 1 and b != 2 or a != 3:\n        return a\n",
    ),
    (
        "def f(a, b):\n    a = min(a, max(b) - min(b))\n    a = min(a, b)\n    b = 1\n    return min(a, b)\n",
        "def f(a, b):\n    a = max(a, max(b) - min(b))\n    a = max(a, b)\n    b = 1\n    return min(a, b)\n",
    ),
    (
        "def f(a):\n    t = 0\n    for x in a:\n        t += x\n        return t\n",
        "def f(a):\n    t = 0\n    for x in a:\n        t += x\n    return t\n",
    ),
    (
        "def f(a):\n    return a[0]\n",
        "def f(a):\n    if not a:\n        return []\n    return a[0]\n",
    ),
    (
        "def f(a, q=[]):\n    q.append(a)\n    return q\n",
        "def f(a, q=None):\n    if q is None:\n        q = []\n    q.append(a)\n    return q\n",
    ),
    (
        "def f():\n    n = 0\n    def g():\n        n += 1\n    g()\n    return n\n",
        "def f():\n    n = 0\n    def g():\n        nonlocal n\n        n += 1\n    g()\n    return n\n",
    ),
    (
        "def f(a):\n    seen = set()\n    for x in a:\n        if x in seen:\n            return x\n",
        "def f(a):\n    seen = set()\n    for x in a:\n        if x in seen:\n            return x\n"
        "        seen.add(x)\n",
    ),
    (
        "def f(a):\n    if a == 1:\n        b = 2\n    if a == 2:\n        b = 3\n    return b\n",
        "def f(a):\n    if a == 1:\n        b = 2\n    elif a == 2:\n        b = 3\n    return b\n",
    ),
]


@pytest.mark.long
@pytest.mark.parametrize(("broken", "fixed"), BLOCKS)
def test_a_repair_of_statements_is_in_the_space_once(broken: str, fixed: str) -> None:
    assert len(repairs(broken, fixed)) == 1


REPORTED = [
    ("NameError", "name 'totl' is not defined", "total = a\n    return totl", "total = a\n    return total"),
    ("AttributeError", "'list' object has no attribute 'push'", "a.push(1)", "a.append(1)"),
    (
        "AttributeError",
        "'list' object has no attribute 'push'",
        "a.push(1)\n    return a.push(2)",
        "a.append(1)\n    return a.append(2)",
    ),
    ("AttributeError", "'list' object has no attribute 'length'", "return a.length", "return len(a)"),
    ("NameError", "name 'null' is not defined", "return null", "return None"),
    ("AttributeError", "'C' object has no attribute 'getRemainder'", "return a.getRemainder(3)", "return a % 3"),
    (
        "AttributeError",
        "'C' object has no attribute 'getRemainder'",
        "return 2 * self.getRemainder(a + 1, -a)",
        "return 2 * ((a + 1) % (-a))",
    ),
    ("AttributeError", "'C' object has no attribute 'lowered'", "return self.lowered(a[0])", "return a[0].lower()"),
    ("NameError", "name 'sort_them' is not defined", "sort_them(a)\n    return a", "a.sort()\n    return a"),
    (
        "NameError",
        "name 'out' is not defined",
        "out.append(a)\n    return out",
        "out = []\n    out.append(a)\n    return out",
    ),
    (
        "NameError",
        "name 'out' is not defined",
        "for x in a:\n        if x: out.append(x)\n    return out",
        "out = []\n    for x in a:\n        if x: out.append(x)\n    return out",
    ),
    (
        "IndexError",
        "list index out of range",
        "i = 0\n    while i <= len(a):\n        print(a[i])",
        "i = 0\n    while i < len(a):\n        print(a[i])",
    ),
    (
        "IndexError",
        "list index out of range",
        "i = 0\n    while i < len(a):\n        print(a[i + 1])",
        "i = 0\n    while i < len(a) - 1:\n        print(a[i + 1])",
    ),
    (
        "IndexError",
        "list index out of range",
        "for i in range(len(a) + 1):\n        print(a[i])",
        "for i in range(len(a)):\n        print(a[i])",
    ),
    (
        "IndexError",
        "list index out of range",
        "for i in range(len(a)):\n        print(a[i + 1])",
        "for i in range(len(a) - 1):\n        print(a[i + 1])",
    ),
    ("NameError", "name 'math' is not defined", "return math.pi", "import math\n    return math.pi"),
    (
        "NameError",
        "name 'low_col' is not defined",
        "low_row = [0] * a\n    return low_row, low_col",
        "low_row = [0] * a\n    low_col = [0] * a\n    return low_row, low_col",
    ),
    ("IndexError", "index out of range", "while True: heappop(a)", "while a: heappop(a)"),
    ("IndexError", "pop from empty list", "while True: a.pop()", "while a: a.pop()"),
    ("IndexError", "pop from an empty deque", "while b(a): a.pop()", "while a and b(a): a.pop()"),
    ("KeyError", "'pop from an empty set'", "return a.pop()", "if not a:\n        return\n    return a.pop()"),
    (
        "ValueError",
        "not enough values to unpack (expected at least 1, got 0)",
        "x, *y = a",
        "if not a:\n        return\n    x, *y = a",
    ),
    (
        "ValueError",
        "max() arg is an empty sequence",
        "return max(a)",
        "if not a:\n        return []\n    return max(a)",
    ),
    (
        "AttributeError",
        "'NoneType' object has no attribute 'next'",
        "if a.next is None: return 1",
        "if a is None or a.next is None: return 1",
    ),
    ("AttributeError", "'NoneType' object has no attribute 'b'", "return a.b", "return a.b if a else None"),
    (
        "TypeError",
        "'NoneType' object is not iterable",
        "for x in a: print(x)",
        "if not a:\n        return\n    for x in a: print(x)",
    ),
    (
        "AttributeError",
        "'NoneType' object has no attribute 'b'",
        "return [x.b for x in a]",
        "return [x.b for x in a if x is not None]",
    ),
    (
        "TypeError",
        "'NoneType' object is not callable",
        "return a.hook(0)",
        "if a.hook is None:\n        return\n    return a.hook(0)",
    ),
    (
        "TypeError",
        "argument of type 'NoneType' is not iterable",
        "return 1 in a.known",
        "if a.known is None:\n        return False\n    return 1 in a.known",
    ),
    (
        "TypeError",
        "cannot unpack non-iterable NoneType object",
        "x, y = a.pair",
        "if a.pair is None:\n        return\n    x, y = a.pair",
    ),
    (
        "TypeError",
        "'NoneType' object does not support item assignment",
        "a.known[1] = 2",
        "if a.known is None:\n        return\n    a.known[1] = 2",
    ),
    ("TypeError", "'list' object is not callable", "return a(0)", "return a[0]"),
]


@pytest.mark.long
@pytest.mark.parametrize(("exception", "message", "broken", "fixed"), REPORTED)
def test_what_the_failure_suggests_comes_above_zero(exception: str, message: str, broken: str, fixed: str) -> None:
    head = "def f(a):\n    "
    line = 1 + len(f"{head}{broken}".splitlines())
    failure = Failure(exception=exception, message=message, frames=(Frame(path=PATH, line=line - 1, function="f"),))
    source = f"{head}{broken}\n".encode()
    want = ast.dump(ast.parse(f"{head}{fixed}\n"))
    edits = LibcstEditSpace({}).edits(PATH, {PATH: source}, lines=None, failures=[failure])
    found = [e for e in edits if ast.dump(ast.parse(e.apply(source))) == want]
    assert [e.prior > 0 for e in found] == [True]


WHOLE = [
    (
        "class-around",
        Failure(exception="ImportError", message="cannot import name 'Box' from 'mod' (mod.py)"),
        "import os\n\n\ndef f(a):\n    t = '''x\ny'''\n    return a, t\n\n\ndef g(self):\n    return 1\n",
        "import os\n\n\nclass Box:\n    def f(self, a):\n        t = '''x\ny'''\n        return a, t\n\n\n"
        "    def g(self):\n        return 1\n",
    ),
    (
        "method-indent",
        Failure(exception="AttributeError", message="'Box' object has no attribute 'g'"),
        "class Box:\n    a = 1\n\n@staticmethod\ndef g(x):\n    return x\n\n@classmethod\ndef h(x):\n    return x\n",
        "class Box:\n    a = 1\n\n    @staticmethod\n    def g(x):\n        return x\n\n    @classmethod\n"
        "    def h(cls, x):\n        return x\n",
    ),
    (
        "method-indent",
        Failure(exception="AttributeError", message="type object 'Box' has no attribute 'g'"),
        "class Box:\n    a = 1\n\ndef f(x):\n    t = '''x\ny'''\n    return x, t\n\n\ndef g(self):\n    return 1\n",
        "class Box:\n    a = 1\n\n    def f(self, x):\n        t = '''x\ny'''\n        return x, t\n\n\n"
        "    def g(self):\n        return 1\n",
    ),
    (
        "exported-name",
        Failure(exception="ImportError", message="cannot import name 'LinkedList' from 'mod' (mod.py)"),
        "class Linkedlist:\n    def f(self):\n        return Linkedlist()\n",
        "class LinkedList:\n    def f(self):\n        return LinkedList()\n",
    ),
    (
        "module-import",
        Failure(
            exception="NameError",
            message="name 'List' is not defined",
            frames=(Frame(path=PATH, line=4, function="<module>"),),
        ),
        "'''Text.'''\n\n\ndef f(a: List[int]):\n    return a\n",
        "'''Text.'''\n\n\nfrom typing import List\ndef f(a: List[int]):\n    return a\n",
    ),
    (
        "stray-block",
        Failure(
            exception="SyntaxError",
            message="'return' outside function (mod.py, line 10)",
            frames=(Frame(path=PATH, line=10, function=""),),
        ),
        "class A:\n    def f(self, a):\n        b = a\n\n    def g():\n        return b\n    for c in a:\n        g()\n"
        "\n    return b\n",
        "class A:\n    def f(self, a):\n        b = a\n\n        def g():\n            return b\n        for c in a:\n"
        "            g()\n\n        return b\n",
    ),
    (
        "header-drop",
        Failure(exception="AssertionError", message="assert None == 3"),
        "class A:\n    def f(self, a):\n        b = a\n\n    def run(self):\n        return b\n",
        "class A:\n    def f(self, a):\n        b = a\n        return b\n",
    ),
    (
        "too-many-arguments",
        Failure(exception="TypeError", message="A.f() takes 1 positional argument but 2 were given"),
        "class A:\n    def f(a):\n        return a\n",
        "class A:\n    def f(self, a):\n        return a\n",
    ),
    (
        "too-few-arguments",
        Failure(exception="TypeError", message="g() missing 1 required positional argument: 'low'"),
        "def f(low):\n    def g(x, low):\n        return x + low\n    return g(1)\n",
        "def f(low):\n    def g(x, low):\n        return x + low\n    return g(1, low)\n",
    ),
    (
        "unexpected-keyword",
        Failure(exception="TypeError", message="g() got an unexpected keyword argument 'size'"),
        "def g(sized=1):\n    return sized\n\n\ndef f():\n    return g(size=2)\n",
        "def g(sized=1):\n    return sized\n\n\ndef f():\n    return g(sized=2)\n",
    ),
    (
        "call-through-self",
        Failure(exception="NameError", message="name 'g' is not defined"),
        "class A:\n    def g(self, x):\n        return x\n\n    def f(self, x):\n        return g(x) + g(1)\n",
        "class A:\n    def g(self, x):\n        return x\n\n"
        "    def f(self, x):\n        return self.g(x) + self.g(1)\n",
    ),
    (
        "parameter-rename",
        Failure(exception="NameError", message="name 'nums' is not defined"),
        "def f(blue):\n    n = len(blue)\n    return nums[n - 1]\n",
        "def f(nums):\n    n = len(nums)\n    return nums[n - 1]\n",
    ),
]


@pytest.mark.long
@pytest.mark.parametrize(("operator", "failure", "broken", "fixed"), WHOLE)
def test_a_report_on_names_and_arguments_leads_to_its_repair(
    operator: str, failure: Failure, broken: str, fixed: str
) -> None:
    assert operator in repairs(broken, fixed, failure)
    assert operator not in repairs(broken, fixed)


OUT_OF_USE = [
    ("a = []\n    '''a.append(b)\n    return a'''", "a = []\n    a.append(b)\n    return a", "text-to-code"),
    ("a += 1\n    # a = a * b\n    # b = 2", "a += 1\n    a = a * b\n    b = 2", "comment-to-code"),
]


def test_a_keyword_gets_values_of_the_type_that_other_calls_give_it() -> None:
    broken = "def f(a, b):\n    g(a, start=3)\n    return g(b)\n"
    values = ("3", "1", "0", "None", "True", "''")
    offered = [v for v in values if "keyword-add" in repairs(broken, broken.replace("g(b)", f"g(b, start={v})"))]
    assert offered == ["3", "1", "0", "None"]


@pytest.mark.parametrize(("broken", "fixed", "operator"), OUT_OF_USE)
def test_code_that_was_put_out_of_use_comes_back(broken: str, fixed: str, operator: str) -> None:
    head = "def f(a, b):\n    "
    assert repairs(f"{head}{broken}\n", f"{head}{fixed}\n") == [operator]


def test_prose_in_comments_and_texts_stays_prose() -> None:
    source = b"def f(a):\n    '''value'''\n    # value\n    # see below\n    return a\n"
    edits = LibcstEditSpace({}).edits(PATH, {PATH: source}, lines=None, failures=[])
    assert not [e for e in edits if e.operator in ("text-to-code", "comment-to-code")]


def test_hostile_messages_and_names_are_only_text() -> None:
    source = b"def f(a):\n    return a.x\n"
    failures = [
        Failure(exception="NameError", message="name 'a)\nimport os' is not defined"),
        Failure(exception="AttributeError", message="'__import__(1)' object has no attribute 'x'"),
        Failure(exception="os.system('x')", message="\x00" * 100),
    ]
    for edit in LibcstEditSpace({}).edits(PATH, {PATH: source}, lines=None, failures=failures):
        text = edit.apply(source)
        ast.parse(text)
        assert b"import os" not in text
        assert b"system" not in text


def test_a_file_that_does_not_parse_goes_to_the_token_space() -> None:
    source = b"def f(a)\n    return a\n"
    edits = list(open_edit_space({}).edits(PATH, {PATH: source}, lines=None, failures=[]))
    assert any(b"def f(a):" in e.apply(source) for e in edits)


def test_another_languages_self_is_put_right_everywhere_first() -> None:
    broken = "class A:\n    def f(self, i):\n        if i > this.n:\n            return this.n\n        return this.m\n"
    failure = Failure(
        exception="NameError",
        message="name 'this' is not defined",
        frames=(Frame(path=PATH, line=3, function="f"),),
    )
    edits = LibcstEditSpace({}).edits(PATH, {PATH: broken.encode()}, lines=None, failures=[failure])
    reported = [e for e in edits if e.operator.startswith("undefined-")]
    best = max(reported, key=lambda e: e.prior)
    assert best.apply(broken.encode()).decode() == broken.replace("this.", "self.")


def test_a_name_put_right_everywhere_is_offered_where_it_failed() -> None:
    source = b"class A:\n    def f(self, a):\n        if a:\n            return this.x\n        return this.y\n"
    where = Frame(path=PATH, line=5, function="f")
    failure = Failure(exception="NameError", message="name 'this' is not defined", frames=(where,))
    edits = LibcstEditSpace({}).edits(PATH, {PATH: source}, lines=frozenset({2, 3, 5}), failures=[failure])
    first = next(e for e in edits if e.operator == "undefined-everywhere")
    assert (first.line, first.apply(source).count(b"self.")) == (5, 2)


@pytest.mark.long
@pytest.mark.parametrize(
    ("broken", "fixed"),
    [
        (
            "def f(roads):\n    out = []\n    out.append(road[0])\n"
            "    # both\n    out.append(road[1])\n    return out\n",
            "def f(roads):\n    out = []\n    for road in roads:\n        out.append(road[0])\n"
            "        # both\n        out.append(road[1])\n    return out\n",
        ),
        (
            "def f(row):\n    n = 0\n    n += row[i]\n    if row[i - 1] == 10:\n        n += row[i]\n    return n\n",
            "def f(row):\n    n = 0\n    for i in range(1, len(row)):\n        n += row[i]\n"
            "        if row[i - 1] == 10:\n            n += row[i]\n    return n\n",
        ),
    ],
)
def test_the_lost_header_of_a_loop(broken: str, fixed: str) -> None:
    name = "road" if "road" in broken else "i"
    frame = Frame(path=PATH, line=3, function="f")
    failure = Failure(exception="NameError", message=f"name '{name}' is not defined", frames=(frame,))
    assert "undefined-loop" in repairs(broken, fixed, failure)


def test_an_early_return_of_a_function_that_returns_quotients_is_a_float() -> None:
    broken = "def mean(values):\n    return sum(values) / len(values)\n"
    failure = Failure(
        exception="ZeroDivisionError",
        message="division by zero",
        frames=(Frame(path=PATH, line=2, function="mean"),),
    )
    guard = "def mean(values):\n    if len(values) == 0:\n        return {}\n    return sum(values) / len(values)\n"
    assert "reported-bounds" in repairs(broken, guard.format("0.0"), failure)
    assert not repairs(broken, guard.format("0"), failure)
    counted = broken.replace(" / ", " // ")
    assert "reported-bounds" in repairs(counted, guard.format("0").replace(" / ", " // "), failure)


@pytest.mark.parametrize(
    ("used", "offered", "refused"),
    [
        ("out.append(a)", {"[]", "a"}, {"oct", "None", "0", "''"}),
        ("out[0] = a", {"[]", "a"}, {"oct", "None", "0"}),
        ("print(out)", {"oct", "None", "0", "[]"}, set()),
    ],
)
def test_a_missing_name_becomes_nothing_that_cannot_stand_there(
    used: str, offered: set[str], refused: set[str]
) -> None:
    source = f"def f(a):\n    {used}\n".encode()
    failure = Failure(
        exception="NameError",
        message="name 'out' is not defined",
        frames=(Frame(path=PATH, line=2, function="f"),),
    )
    edits = LibcstEditSpace({}).edits(PATH, {PATH: source}, lines=None, failures=[failure])
    found = {e.note.removeprefix("out -> ") for e in edits if e.operator == "undefined-name"}
    assert offered <= found
    assert not refused & found


def test_only_a_bound_of_the_index_itself_is_brought_nearer() -> None:
    source = b"def f(a, i, mid):\n    while i <= mid:\n        i = a[mid]\n"
    failure = Failure(
        exception="IndexError",
        message="list index out of range",
        frames=(Frame(path=PATH, line=3, function="f"),),
    )
    edits = list(LibcstEditSpace({}).edits(PATH, {PATH: source}, lines=None, failures=[failure]))
    assert edits
    assert not [e for e in edits if e.operator == "reported-reach"]


@pytest.mark.parametrize(
    ("line", "fixed"),
    [
        ("return a[0] == 1", "return a.startswith(1)"),
        ("b = [a]\n    return b[0] == a", "b = [a]\n    return b.startswith(a)"),
        ("return hasattr(a, *b)", "return getattr(a, b, None)"),
    ],
)
def test_what_cannot_be_meant_is_not_offered(line: str, fixed: str) -> None:
    head = "def f(a, b):\n    "
    assert repairs(f"{head}{line}\n", f"{head}{fixed}\n") == []


def test_what_a_class_of_another_file_has_is_offered_for_what_it_lacks() -> None:
    """An attribute for the call of an invented method whose name holds it; a method, or a base's, stays called."""
    source = b"def f(root):\n    return root.moveleft() or root.wal()\n"
    nodes = (
        b"class Node:\n    def __init__(self):\n        self.left = self.val = 1\n\n    def walk(self):\n        pass\n"
    )
    sources = {PATH: source, RepoPath("nodes.py"): nodes}

    def offered(name: str) -> list[bytes]:
        failure = Failure(exception="AttributeError", message=f"'Node' object has no attribute '{name}'")
        edits = LibcstEditSpace({}).edits(PATH, sources, lines=None, failures=[failure])
        return [e.apply(source) for e in edits if e.operator == "missing-attribute"]

    assert offered("moveleft")[0] == source.replace(b"moveleft()", b"left")
    assert offered("wal")[0] == source.replace(b"wal()", b"walk()")
    assert not any(b"__init__" in made for made in offered("wal"))


@pytest.mark.parametrize(
    ("message", "line", "fixed"),
    [
        ("list index out of range", "return d[3]", "return d[2]"),
        ("list index out of range", "return d[-2]", "return d[-1]"),
        ("list index out of range", "return d[i + 1]", "return d[i]"),
        ("list index out of range", "return d[i + 1]", "return d[i - 1]"),
        ("list index out of range", "return d[i - 1]", "return d[i + 1]"),
        ("list index out of range", "return d[i + 2]", "return d[i + 1]"),
        ("pop index out of range", "return d.pop(-i)", "return d.pop()"),
        ("pop index out of range", "return d.pop(1)", "return d.pop(0)"),
        ("pop index out of range", "return d.pop((i),)", "return d.pop()"),
        ("pop index out of range", "return d.pop(\n        i + 1,\n    )", "return d.pop()"),
    ],
)
def test_an_index_out_of_range_reaches_less_far(message: str, line: str, fixed: str) -> None:
    head = "def f(d, i):\n    "
    failure = Failure(exception="IndexError", message=message, frames=(Frame(path=PATH, line=2, function="f"),))
    assert repairs(f"{head}{line}\n", f"{head}{fixed}\n", failure) == ["reported-index"]
    calm = Failure(exception="IndexError", message=message, frames=(Frame(path=PATH, line=1, function="f"),))
    assert "reported-index" not in repairs(f"{head}{line}\n", f"{head}{fixed}\n", calm)


def test_a_key_put_together_of_texts_is_no_index() -> None:
    def offered(line: str) -> list[str]:
        source = f"def f(d, i):\n    {line}\n".encode()
        failure = Failure(exception="KeyError", message="'a'", frames=(Frame(path=PATH, line=2, function="f"),))
        found = LibcstEditSpace({}).edits(PATH, {PATH: source}, lines=None, failures=[failure])
        return [e.note for e in found if e.operator == "reported-index"]

    assert not offered("return d[i + '_x']")
    assert offered("return d[i + 1]")[0] == "i + 1 -> i"


@pytest.mark.parametrize(
    ("message", "line", "fixed"),
    [
        ("'int' object is not iterable", "return max(a[0])", "return max(a)"),
        ("'dict_values' object is not subscriptable", "return a[0]", "return list(a)[0]"),
        ("'int' object is not subscriptable", "return a[0]", "return a"),
    ],
)
def test_what_a_type_error_says_of_a_subscript(message: str, line: str, fixed: str) -> None:
    failure = Failure(exception="TypeError", message=message, frames=(Frame(path=PATH, line=2, function="f"),))
    assert "reported-type" in repairs(f"def f(a):\n    {line}\n", f"def f(a):\n    {fixed}\n", failure)


def test_a_number_is_kept_and_not_what_a_comparison_says_of_it() -> None:
    def drops(line: str) -> list[float]:
        source = f"def f(a, b, c):\n    n = 0\n    {line}\n    return n\n".encode()
        found = LibcstEditSpace({}).edits(PATH, {PATH: source}, lines=None, failures=())
        return [e.prior for e in found if e.operator == "compare-drop"]

    for line in ("n = max(a, b) == 0", "c[a] = min(a, b) == 0", "n += a == 1"):
        assert max(drops(line)) > -1.0, line
    for line in ("c = max(a, b) == 0", "c[a] = len(b) == 0", "n = a == b", "return n == 0"):
        assert max(drops(line), default=-2.0) < -1.0, line


@pytest.mark.parametrize("number", ["9" * 4_300, "0x" + "f" * 3_500])
def test_numbers_too_long_for_python_to_write_stay_as_they_are(number: str) -> None:
    source = f"def f(d, i):\n    return d[{number}] or d[i + {number}]\n".encode()
    where = (Frame(path=PATH, line=2, function="f"),)
    failure = Failure(exception="IndexError", message="list index out of range", frames=where)
    operators = {e.operator for e in LibcstEditSpace({}).edits(PATH, {PATH: source}, lines=None, failures=[failure])}
    assert "constant-step" not in operators
    assert "reported-index" in operators  # the operand goes


@pytest.mark.parametrize("line", ["return d[i]", "return d[0]", "return d[-1]", "return d[~1]", "return d[1:2]"])
def test_an_index_that_cannot_reach_less_far_stays(line: str) -> None:
    source = f"def f(d, i):\n    {line}\n".encode()
    where = (Frame(path=PATH, line=2, function="f"),)
    failure = Failure(exception="IndexError", message="list index out of range", frames=where)
    found = LibcstEditSpace({}).edits(PATH, {PATH: source}, lines=None, failures=[failure])
    assert not [e for e in found if e.operator == "reported-index"]


def test_a_name_that_is_read_often_lacks_its_value_and_one_that_is_read_once_is_another() -> None:
    """No place alone is changed first where others miss the name as well; no attribute that the class has not."""

    def priors(*body: str, of: str = "C") -> dict[str, float]:
        rows = "".join(f"        {row}\n" for row in body)
        source = f"class {of}:\n    def f(self, rows):\n{rows}    def g(self):\n        self.has = 1\n".encode()
        name = "has" if "has" in body[0] else "new"
        failure = Failure(exception="NameError", message=f"name '{name}' is not defined")
        found = LibcstEditSpace({}).edits(PATH, {PATH: source}, lines=None, failures=[failure])
        return {f"{e.operator} {e.note}": e.prior for e in found if e.line == 3}

    often = priors("h(new)", "h(new)")
    stored = priors("h(new)", "new = rows")
    once = priors("h(new)")
    value, other = "undefined-initialise new = None", "undefined-name new -> rows"
    assert often[value] > stored[value] > once[value]
    assert often[other] < stored[other] < once[other]
    own = "undefined-name new -> self.new"
    assert priors("h(has)")["undefined-name has -> self.has"] > once[own]
    assert priors("h(new)", of="C(Base)")[own] > once[own]


def test_what_holds_an_undefined_name_is_dropped() -> None:
    failure = Failure(exception="NameError", message="name 'gone' is not defined")
    for line, fixed in (("return g(x, gone)", "return g(x)"), ("return x, gone", "return x")):
        head = "def f(x, g):\n    "
        assert "undefined-drop" in repairs(f"{head}{line}\n", f"{head}{fixed}\n", failure), line


def test_an_attribute_that_ones_class_lacks_was_a_name() -> None:
    source = b"class C:\n    def f(self, rows):\n        last = rows[-1]\n        return self.Last\n"
    failure = Failure(exception="AttributeError", message="'C' object has no attribute 'Last'")
    found = LibcstEditSpace({}).edits(PATH, {PATH: source}, lines=None, failures=[failure])
    best = max((e for e in found if e.operator == "missing-attribute"), key=lambda e: e.prior)
    assert best.apply(source) == source.replace(b"self.Last", b"last")


def test_what_a_class_lacks_as_well_comes_after_what_it_has() -> None:
    source = b"def f(root):\n    root.left.moveright()\n    root.right.moveright()\n    return root.moveleft()\n"
    nodes = b"class Node:\n    def __init__(self):\n        self.left = self.right = None\n"

    def swapped(lacking: str) -> dict[str, float]:
        failure = Failure(exception="AttributeError", message=f"'Node' object has no attribute '{lacking}'")
        sources = {PATH: source, RepoPath("nodes.py"): nodes}
        found = LibcstEditSpace({}).edits(PATH, sources, lines=None, failures=[failure])
        return {e.note: e.prior for e in found if e.operator == "attribute-swap"}

    note = ".moveleft -> .moveright"
    assert swapped("moveleft")[note] == pytest.approx(swapped("up")[note] - 2.0)


@pytest.mark.parametrize("name", ["heappush", "deepcopy", "isqrt"])
def test_what_a_module_has_means_what_it_does_there(name: str) -> None:
    source = f"def f(a, b):\n    return {name}(a, b) or {name}(a)\n".encode()
    failure = Failure(exception="NameError", message=f"name '{name}' is not defined")
    found = list(LibcstEditSpace({}).edits(PATH, {PATH: source}, lines=None, failures=[failure]))
    assert not [e for e in found if e.operator == "missing-method-meaning"]


@pytest.mark.parametrize(
    ("base", "known"), [("", True), ("(object)", True), ("(dict)", True), ("(Base[int])", False), ("(make())", False)]
)
def test_what_a_class_lacks_is_known_only_where_all_its_bases_are(base: str, known: bool) -> None:
    """What it may inherit from elsewhere is no worse for not standing in it."""
    source = (
        f"class C{base}:\n    def own(self): return 1\n    def f(self, a):\n        a.items()\n"
        "        self.items()\n        return self.itmes(a)\n"
    ).encode()

    def best(failure: Failure) -> tuple[float, str]:
        found = LibcstEditSpace({}).edits(PATH, {PATH: source}, lines=None, failures=[failure])
        return max((e.prior, e.operator) for e in found if e.line == 6 and e.note == ".itmes -> .items")

    told = Failure(exception="AttributeError", message="'C' object has no attribute 'itmes'")
    untold = Failure(exception="TypeError", message="no")
    if known and base != "(dict)":
        assert best(told)[0] < best(untold)[0]
    else:
        assert best(told) > best(untold)
        assert best(told)[1] == "missing-attribute"


@pytest.mark.parametrize(
    ("base", "lacks"), [("", True), ("(Base)", False), ("(Base[int])", False), ("(make())", False)]
)
def test_an_attribute_of_ones_own_is_dearer_where_the_class_cannot_inherit_it(base: str, lacks: bool) -> None:
    source = f"class C{base}:\n    def f(self, a):\n        return size + a\n".encode()
    failure = Failure(exception="NameError", message="name 'size' is not defined")
    found = LibcstEditSpace({}).edits(PATH, {PATH: source}, lines=None, failures=[failure])
    (prior,) = [e.prior for e in found if e.note == "size -> self.size"]
    assert (prior < 1.0) is lacks


def test_notes_are_one_short_line() -> None:
    name = "n" * 300
    source = f"def f(d):\n    return d[{name}\n        + 1] or d.pop({name})\n".encode()
    failure = Failure(
        exception="IndexError", message="list index out of range", frames=(Frame(path=PATH, line=2, function="f"),)
    )
    found = list(LibcstEditSpace({}).edits(PATH, {PATH: source}, lines=None, failures=[failure]))
    assert any(e.operator == "reported-index" and e.note.endswith("…") for e in found)
    assert all(len(e.note) <= 200 and "\n" not in e.note for e in found)


def test_the_nearest_ingredients_are_those_that_comparing_all_finds() -> None:
    """How alike two are is asked of few: the answer is as if it had been asked of all."""
    names = ", ".join([*(f"q{n}()" for n in range(80)), *(f"totals{n}()" for n in range(40))])  # short ones, alike ones
    source = f"def f(total):\n    g({names})\n    return total()\n".encode()

    def found() -> dict[tuple[int, int], list[tuple[str, float]]]:
        edits = LibcstEditSpace({}).edits(PATH, {PATH: source}, lines=frozenset({3}), failures=())
        places: dict[tuple[int, int], list[tuple[str, float]]] = {}
        for e in edits:
            if e.operator == "ingredient":
                places.setdefault((e.splices[0].start, e.splices[0].end), []).append((e.note, e.prior))
        return places

    operators()
    from localagent.edit.operators import ingredients

    quick = found()
    few = ingredients._PER_PLACE
    ingredients._PER_PLACE = 10**6
    try:
        slow = found()
    finally:
        ingredients._PER_PLACE = few
    assert any(len(slow[at]) > len(quick[at]) > few // 2 for at in quick)
    for at, some in quick.items():
        assert some == slow[at][: len(some)]
