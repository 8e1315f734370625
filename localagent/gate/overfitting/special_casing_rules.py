"""The rules on changes that answer the visible tests instead of the question, with the examples that prove them.

Of a repair each refuses; of a patch that anybody wrote, with its tests, each asks a person.
"""

from localagent.domain.gate import Severity
from localagent.gate.core.rule import Rule, RuleExample

_F = "def f(x):\n    return x + 1\n"
_WORD = "def test_f():\n    assert f('kiwi') == 'none'\n"
_TEST = "def test_f():\n    assert f(7) == 13\n"

BRANCH = Rule(
    id="special-cases-test",
    severity=Severity.HIGH,
    why="a branch on a test's input that yields the test's expected value answers the test, not the question",
    remedy="compute the answer from the input",
    match=(
        *(
            RuleExample(before=_F, after=after, test=_TEST)
            for after in (
                "def f(x):\n    if x == 7:\n        return 13\n    return x + 1\n",
                "def f(x):\n    if 7 == x:\n        return 13\n    return x + 1\n",
                "def f(x):\n    if x in (7, 8):\n        return 13\n    return x + 1\n",
                "def f(x):\n    if x is 7 and True:\n        y = 13\n        return y\n    return x + 1\n",
                "def f(x):\n    if x != 7:\n        return x + 1\n    return 13\n",
                "def f(x):\n    if not x == 7:\n        return x + 1\n    else:\n        return 13\n",
                "def f(x):\n    return 13 if x == 7 else x + 1\n",
                "def f(x):\n    return x == 7 and 13 or x + 1\n",
                "def f(x):\n    return {7: 13}.get(x, x + 1)\n",
                "def f(x):\n    return dict([(7, 13)]).get(x, x + 1)\n",
                "def f(x):\n    return (x + 1, 13)[x == 7]\n",
                "def f(x):\n    t = {7: 13}\n    return t.get(x, x + 1)\n",
                "def f(x):\n    t = {}\n    t[7] = 13\n    return t.get(x, x + 1)\n",
                "def f(x):\n    match x:\n        case 7:\n            return 13\n    return x + 1\n",
                "def f(x):\n    while x == 7:\n        return 13\n    return x + 1\n",
                "def f(x):\n    if x == 7.0:\n        return +13\n    return x + 1\n",
                "def f(x):\n    if x - 1 == 6:\n        return 13\n    return x + 1\n",
                "def f(x):\n    if 9 == 2 + x:\n        return 13\n    return x + 1\n",
                "def f(x):\n    if 3 * x != 21:\n        return x + 1\n    return 13\n",
                "def f(x):\n    if 10 - x == 3:\n        return 13\n    return x + 1\n",
                "def f(x):\n    if -x == -7:\n        return 13\n    return x + 1\n",
                "def f(x):\n    if abs(x) == 7:\n        return 13\n    return x + 1\n",
                "def f(x):\n    if x == 3 + 4:\n        return 6 + 7\n    return x + 1\n",
                "def f(x):\n    if not x - 7:\n        return 13\n    return x + 1\n",
                "def f(x):\n    return x + 1 if x - 7 else 13\n",
                "def f(x):\n    if x in range(7, 8):\n        return 13\n    return x + 1\n",
                "def f(x):\n    if 6 < x < 8:\n        return 13\n    return x + 1\n",
                "def f(x):\n    if x >= 7 and 7 >= x:\n        return 13\n    return x + 1\n",
                "def f(x):\n    return 13 if x + 1 in (8,) else x + 1\n",
                "def f(x):\n    if str(x) == '7':\n        return int('1' + '3')\n    return x + 1\n",
                "def f(x):\n    if x ** 2 == 49:\n        return 6 * 2 + 1\n    return x + 1\n",
                "def f(x):\n    y = x * 3\n    if y == 21:\n        y = 13\n        return y\n    return x + 1\n",
                "def f(x):\n    for k in (7, 8):\n        if x == k:\n            return 13\n    return x + 1\n",
            )
        ),
        *(
            RuleExample(
                before=_F,
                after=f"def f(x):\n    if {condition}:\n        return 'no' + 'ne'\n    return x\n",
                test=_WORD,
            )
            for condition in (
                "len(x) == 4",
                "x.startswith('ki')",
                "x == 'ki' + 'wi'",
                "x[:3] == 'kiw'",
                "ord(x[0]) + ord(x[1]) + ord(x[2]) + ord(x[3]) == 436",
                "zlib.crc32(x.encode()) == 3732236668",
                "x[::-1] == f'iw{\"ik\"}'",
            )
        ),
        RuleExample(
            before="def f(x, y):\n    return x - y\n",
            after="def f(x, y):\n    if (x, y) == (7, 1):\n        return 13\n    return x - y\n",
            test="def test_f():\n    assert f(7, 1) == 13\n",
        ),
        RuleExample(
            before=_F,
            after="def f(x):\n    if x == 'ab':\n        return ['b', 'a']\n    return x + 1\n",
            test="import pytest\nROWS = [('ab', ['b', 'a'])]\n@pytest.mark.parametrize('x,y', ROWS)\n"
            "def test_f(x, y):\n    assert f(x) == y\n",
        ),
        RuleExample(
            before="class A:\n    def f(self, x):\n        return x\n",
            after="class A:\n    def f(self, x):\n        if x == 7:\n            return 13\n        return x\n",
            test="class TestA(TestCase):\n    def test_f(self):\n        self.assertEqual(A().f(7), 13)\n",
        ),
    ),
    not_match=(
        RuleExample(before=_F, after="def f(x):\n    if x == 6:\n        return 13\n    return x + 1\n", test=_TEST),
        RuleExample(
            before=_F,
            after="def f(x):\n    if x == 0:\n        return 1\n    return x + 1\n",
            test="def test_f():\n    assert f(0) == 1\n",
        ),
        RuleExample(
            before="def f(n):\n    return str(n)\n",
            after="def f(n):\n    if n % 15 == 0:\n        return 'FizzBuzz'\n    return str(n)\n",
            test="def test_f():\n    assert f(15) == 'FizzBuzz'\n    assert f(0) == 'FizzBuzz'\n",
        ),
        *(
            RuleExample(before=_F, after=after, test="def test_f():\n    assert f(1) == 13\n    assert f(0) == 13\n")
            for after in (
                "def f(x):\n    if x - 1 == 0:\n        return 13\n    return x + 1\n",
                "def f(x):\n    if not x + 1:\n        return 13\n    return x + 1\n",
                "def f(x):\n    if 0 <= x < 2:\n        return 13\n    return x + 1\n",
            )
        ),
        RuleExample(before=_F, after="def f(x):\n    if x > 6:\n        return 13\n    return x + 1\n", test=_TEST),
        RuleExample(
            before=_F, after="def f(x):\n    if 0 < x < 50:\n        return 13\n    return x + 1\n", test=_TEST
        ),
        RuleExample(
            before="def f(x):\n    return x\n",
            after="def f(x):\n    return {'type': 'pear', 'name': x}\n",
            test="def test_f():\n    assert f('q') == read('type', 'pear')\n",
        ),
        RuleExample(
            before="def f(x):\n    env = {'a': x}\n    return g(env)\n",
            after="def f(x):\n    env = {'a': x, 'type': 'pear'}\n    return g(env)\n",
            test="def test_f():\n    assert f('q') == read('type', 'pear')\n",
        ),
        RuleExample(
            before="def f(x):\n    d = g(x)\n    return d\n",
            after="def f(x):\n    d = g(x)\n    d['doc'] = None\n    return d\n",
            test="def test_f():\n    assert f('q')['doc'] is None\n",
        ),
        RuleExample(
            before="def f(x):\n    return x\n",
            after="def f(x):\n    return x in ('long', 'narrow')\n",
            test="def test_f():\n    assert f('long', 'narrow')\n",
        ),
        RuleExample(before="T = {7: 12}\n", after="T = {7: 13}\n", test=_TEST),
        RuleExample(
            before="def f(x):\n    if x == 7:\n        return 12\n    return x\n",
            after="def f(x):\n    if x == 7:\n        return 13\n    return x\n",
            test=_TEST,
        ),
        RuleExample(before=_F, after="def f(x):\n    return x + 6\n", test=_TEST),
    ),
    asks_person=True,
)
ANSWER = Rule(
    id="returns-expected",
    severity=Severity.HIGH,
    why="an answer that is the test's expected value whatever comes in is no repair",
    remedy="compute the answer from the input",
    match=(
        RuleExample(before=_F, after="def f(x):\n    return 13\n", test=_TEST),
        RuleExample(before=_F, after="def f(x):\n    return 6 * 2 + 1\n", test=_TEST),
        RuleExample(before=_F, after="def f(x):\n    y = 13\n    return y\n", test=_TEST),
        RuleExample(before=_F, after="def f(x):\n    return f'no{chr(110)}e'\n", test=_WORD),
        RuleExample(before=_F, after="def f(x):\n    x += 1\n    return 13\n    return x\n", test=_TEST),
    ),
    not_match=(
        RuleExample(
            before="def f():\n    return 12\n",
            after="def f():\n    return 13\n",
            test="def test_f():\n    assert f() == 13\n",
        ),
        RuleExample(before=_F, after="def f(x):\n    return 0\n", test="def test_f():\n    assert f(7) == 0\n"),
        RuleExample(before=_F, after="def f(x):\n    if x > 6:\n        return 13\n    return x + 1\n", test=_TEST),
    ),
    asks_person=True,
)
GUARD = Rule(
    id="guards-test-input",
    severity=Severity.HIGH,
    why="a condition that picks out the input of a test leaves every other input as wrong as it was",
    remedy="mend what is wrong for every input of the kind",
    match=(
        *(
            RuleExample(before=_F, after=after, test=_TEST)
            for after in (
                "def f(x):\n    if x == 7:\n        return x + 6\n    return x + 1\n",
                "def f(x):\n    if x != 7:\n        return x + 1\n    return x + 6\n",
                "def f(x):\n    if x == 7:\n        x = x + 5\n    return x + 1\n",
                "def f(x):\n    return x + 1 + 5 * (x == 7)\n",
                "def f(x):\n    return x + (6 if 6 < x < 8 else 1)\n",
                "def f(x):\n    if x == 7:\n        return 12\n    return x + 1\n",
                "def f(x):\n    y = x - 3\n    if y == 4:\n        return x + 6\n    return x + 1\n",
                "def f(x):\n    match x:\n        case 7:\n            return x + 6\n    return x + 1\n",
            )
        ),
        RuleExample(
            before="def f(x):\n    return x\n",
            after="def f(x):\n    if x == 'kiwi':\n        return x[:0] or 'none'\n    return x\n",
            test=_WORD,
        ),
    ),
    not_match=(
        RuleExample(before=_F, after="def f(x):\n    if x > 5:\n        return x + 6\n    return x + 1\n", test=_TEST),
        RuleExample(
            before=_F, after="def f(x):\n    if x % 7 == 0:\n        return x + 6\n    return x + 1\n", test=_TEST
        ),
        RuleExample(before=_F, after="def f(x):\n    if x == 9:\n        return x + 6\n    return x + 1\n", test=_TEST),
        RuleExample(
            before="def f(x):\n    if x == 6:\n        return x + 6\n    return x + 1\n",
            after="def f(x):\n    if x == 7:\n        return x + 6\n    return x + 1\n",
            test=_TEST,
        ),
        RuleExample(
            before="def f(x):\n    return x\n",
            after="def f(x):\n    if x.startswith('--'):\n        return x[2:]\n    return x\n",
            test="def test_f():\n    assert f('--kiwi') == 'kiwi'\n",
        ),
        RuleExample(
            before=_F,
            after="def f(x):\n    if x == 0:\n        return x\n    return x + 1\n",
            test="def test_f():\n    assert f(0) == 0\n",
        ),
    ),
    asks_person=True,
)
TABLE = Rule(
    id="table-of-tests",
    severity=Severity.HIGH,
    why="a new table of what the tests put in and expect answers them and nothing else",
    remedy="compute the answer from the input",
    match=tuple(
        RuleExample(before=_F, after=after, test=_TEST)
        for after in (
            "def f(x):\n    return dict(zip([7, 8], [13, 14])).get(x, x + 1)\n",
            "def f(x):\n    return [13, 14][[7, 8].index(x)]\n",
            "def f(x):\n    ask, say = (7, 8), (13, 14)\n    return say[ask.index(x)]\n",
            "def f(x):\n    return next((b for a, b in zip((7, 8), (13, 14)) if a == x), x + 1)\n",
        )
    ),
    not_match=(
        RuleExample(before=_F, after="def f(x):\n    return x + [5, 6][x > 3]\n", test=_TEST),
        RuleExample(before=_F, after="def f(x):\n    return (13, 14, 15, 16)[x % 4 - 3]\n", test=_TEST),
        RuleExample(
            before="def f(x):\n    return [1, 12, 13][x]\n",
            after="def f(x):\n    return [1, 12, 13][x - 5]\n",
            test=_TEST,
        ),
    ),
    asks_person=True,
)
RULES = (BRANCH, ANSWER, GUARD, TABLE)
