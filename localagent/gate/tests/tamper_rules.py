"""Rules about patches to tests, each with the examples that prove it."""

from localagent.domain.gate import Severity
from localagent.gate.core.rule import Rule, RuleExample, question
from localagent.gate.tests import side_effects

_PATH = "tests/test_it.py"
_T = "from pkg import f\n\n\ndef test_f():\n    x = f(1)\n    assert x == 2\n    assert f(3) == 4\n"
_REMEDY = "leave the test as it is and mend the code; where the test is wrong, have a person say so"


def _become(after: str, before: str = _T) -> RuleExample:
    return RuleExample(path=_PATH, before=before, after=after)


_FINE = (
    _become(_T + "\n\ndef test_g():\n    assert f(5) == 6\n"),
    _become(_T + "    assert f(5) == 6\n"),
    _become(_T.replace("import f\n", "import f  # why\n")),
    _become(_T.replace("test_f", "test_of_f")),
    _become(_T.replace("import f\n", "import f, g\n")),
    _become("import math\n" + _T),
    _become(_T.replace("    x = f(1)\n", "    x = f(1)\n    assert x > 0\n")),
)
_METHOD = (
    "class TestA(unittest.TestCase):\n    def setUp(self):\n        self.a = 1\n\n"
    "    def test_a(self):\n        self.assertEqual(f(1), 2)\n"
)

DELETED = Rule(
    id="test-deleted",
    severity=Severity.HIGH,
    why="a test that is gone judges nothing",
    remedy="make one that moves in its new file first; else leave it as it is, or have a person say that it is wrong",
    match=(
        _become(""),
        _become("from pkg import f\n"),
        _become(_T.replace("def test_f", "def _test_f")),
        _become(_T.replace("def test_f", "def check_f").replace("== 4", "== 5")),
        _become(_METHOD.replace("test_a", "_test_a").replace("f(1)", "f(2)"), _METHOD),
        RuleExample(path="tests/old_it.py", source=_PATH, before=_T, after=_T),
    ),
    not_match=_FINE,
)
_GONE = _T.replace("from pkg import", "from pkg.gone import")
FEATURE = question(
    id="test-gone-with-feature",
    why="what the test tested is taken out by the same patch: only a person knows whether it was to go",
    remedy="have a person confirm that the feature goes, and that nothing else stood on it",
    match=(
        RuleExample(path=_PATH, before=_GONE, after="", gone="def f(x):\n    return x + 1\n"),
        RuleExample(
            path=_PATH,
            before=_T + "\n\nfrom pkg.gone import g\n\n\ndef test_g():\n    assert g(5) == 6\n",
            after=_T,
            gone="def g(x):\n    return x + 1\n",
        ),
    ),
    not_match=(
        *_FINE,
        _become(""),
        RuleExample(path=_PATH, before=_T, after="", gone="def g(x):\n    return x + 1\n"),
        RuleExample(
            path=_PATH,
            before=_GONE.replace("import f\n", "import f\nfrom pkg.other import g\n").replace(
                "x = f(1)", "x = g(f(1))"
            ),
            after="",
            gone="def f(x):\n    return x + 1\n",
        ),
    ),
)
SKIPPED = Rule(
    id="test-skipped",
    severity=Severity.HIGH,
    why="a test that does not run, or may fail, judges nothing",
    remedy=_REMEDY,
    match=(
        _become(_T.replace("def test_f", "@pytest.mark.skip\ndef test_f")),
        _become(_T.replace("def test_f", "@pytest.mark.xfail(strict=False)\ndef test_f")),
        _become(_T.replace("    x = f(1)", "    pytest.skip('flaky')\n    x = f(1)")),
        _become(_T.replace("\n\n\ndef", "\npytestmark = pytest.mark.skip\n\n\ndef")),
        _become(_METHOD.replace("class", "@unittest.skip('x')\nclass"), _METHOD),
        _become(_METHOD.replace("    def setUp", "    __test__ = False\n\n    def setUp"), _METHOD),
    ),
    not_match=(*_FINE, _become(_T + "\n\n@pytest.mark.skipif(old, reason='x')\ndef test_g():\n    assert f(5) == 6\n")),
)
REMOVED = Rule(
    id="assert-removed",
    severity=Severity.HIGH,
    why="what is not asserted may be wrong",
    remedy=_REMEDY,
    match=(
        _become(_T.replace("    assert f(3) == 4\n", "")),
        _become(_T.replace("    assert x == 2\n", "    return\n    assert x == 2\n")),
        _become(_T.replace("    assert f(3) == 4\n", "    if False:\n        assert f(3) == 4\n")),
        _become(
            _T.replace(
                "    assert f(3) == 4\n",
                "    try:\n        assert f(3) == 4\n    except AssertionError:\n        pass\n",
            )
        ),
        _become(_T.replace("assert f(3) == 4", "assert True")),
        _become(_METHOD.replace("self.assertEqual(f(1), 2)", "f(1)"), _METHOD),
    ),
    not_match=_FINE,
)
WEAKENED = Rule(
    id="assert-weakened",
    severity=Severity.HIGH,
    why="an assertion that demands less lets wrong answers pass",
    remedy=_REMEDY,
    match=(
        _become(_T.replace("assert x == 2", "assert x")),
        _become(_T.replace("assert x == 2", "assert x in (2, 3)")),
        _become(_T.replace("assert x == 2", "assert x is not None")),
        _become(_T.replace("assert x == 2", "assert x == 2 or x == 3")),
        _become(_T.replace("assert x == 2", "assert isinstance(x, int)")),
        _become(_T.replace("    assert x == 2", "    if x:\n        assert x == 2")),
        _become(_METHOD.replace("assertEqual(f(1), 2)", "assertTrue(f(1))"), _METHOD),
        _become(
            "def test_f():\n    with pytest.raises(Exception):\n        f(1)\n",
            "def test_f():\n    with pytest.raises(ValueError):\n        f(1)\n",
        ),
        _become(
            "def test_f():\n    with pytest.raises(ValueError):\n        f(1)\n",
            "def test_f():\n    with pytest.raises(ValueError, match='x'):\n        f(1)\n",
        ),
    ),
    not_match=_FINE,
)
WIDENED = Rule(
    id="tolerance-widened",
    severity=Severity.HIGH,
    why="a wider tolerance lets wrong answers pass",
    remedy=_REMEDY,
    match=(
        _become(
            "def test_f():\n    assert f(1) == approx(2, rel=0.5)\n",
            "def test_f():\n    assert f(1) == approx(2, rel=1e-6)\n",
        ),
        _become("def test_f():\n    assert abs(f(1) - 2) < 10\n", "def test_f():\n    assert abs(f(1) - 2) < 0.01\n"),
        _become("def test_f():\n    assert f(1) == approx(2)\n", "def test_f():\n    assert f(1) == 2\n"),
        _become(
            "def test_f(self):\n    self.assertAlmostEqual(f(1), 2, places=1)\n",
            "def test_f(self):\n    self.assertAlmostEqual(f(1), 2, places=7)\n",
        ),
    ),
    not_match=_FINE,
)
TRIVIAL = Rule(
    id="assert-trivial",
    severity=Severity.HIGH,
    why="an assertion that cannot fail looks like a test and is none",
    remedy="assert what the code answers",
    match=(
        _become(_T + "\n\ndef test_g():\n    assert True\n"),
        _become(_T + "\n\ndef test_g():\n    assert (f(1) == 3, 'why')\n"),
        _become(_T + "\n\ndef test_g():\n    x = f(1)\n    assert x == x\n"),
        _become(_T + "\n\ndef test_g():\n    assert f(1) == 3 or True\n"),
    ),
    not_match=_FINE,
)
CASES = Rule(
    id="test-cases-removed",
    severity=Severity.HIGH,
    why="a case that is gone is not judged",
    remedy=_REMEDY,
    match=(
        _become(
            "@pytest.mark.parametrize('x', [1])\ndef test_f(x):\n    assert f(x) == x\n",
            "@pytest.mark.parametrize('x', [1, 2])\ndef test_f(x):\n    assert f(x) == x\n",
        ),
    ),
    not_match=_FINE,
)
CHANGED = question(
    id="test-changed",
    why="only a person knows whether the test was wrong or the code is",
    remedy="have a person confirm what is expected now",
    match=(
        _become(_T.replace("== 4", "== 5")),
        _become(_T.replace("x = f(1)", "x = 2")),
        _become(f"LIMIT = 3\n{_T}", f"LIMIT = 2\n{_T}"),
        _become(_T.replace("from pkg import f", "from pkg.fake import f")),
        _become(_T.replace("import f\n", "import f\n\nf = {1: 2, 3: 4}.get\n")),
        _become(_T + "\n\ndef f(x):\n    return x + 1\n"),
        _become(_T.replace("import f\n", "import f\nfrom pkg.fake import *\n")),
        _become(_T.replace("    x = f(1)\n", "    f = {1: 2, 3: 4}.get\n    x = f(1)\n")),
        _become(_METHOD + "\n    def assertEqual(self, *_):\n        pass\n", _METHOD),
        _become(_T + "\n\ndef len(_):\n    return 2\n"),
        RuleExample(path="tests/expected.txt", before="4\n", after="5\n"),
    ),
    not_match=(
        *_FINE,
        _become(_T, f"@skip\n{_T}"),
        RuleExample(path="app/test.py", before="def run():\n    return 1\n", after="def run():\n    return 2\n"),
        RuleExample(path="tests/expected.txt", before="", after="4\n", modes=":100644"),
    ),
)
FIXTURE = question(
    id="test-fixture-changed",
    why="what tests stand on decides what they can find",
    remedy="have a person confirm the change",
    match=(
        _become(_METHOD.replace("self.a = 1", "self.a = 2"), _METHOD),
        _become(_METHOD + "\n    def tearDown(self):\n        self.a = 2\n", _METHOD),
        _become(_T + "\n\n@pytest.fixture(autouse=True)\ndef ready():\n    return 1\n"),
    ),
    not_match=_FINE,
)
MOCKED = question(
    id="test-mocked",
    why="what is replaced in a test is not tested by it",
    remedy="have a person confirm that the replaced part is tested elsewhere",
    match=(
        _become(_T.replace("def test_f():\n", "def test_f():\n    mock.patch('pkg.f').start()\n")),
        _become("import pkg\n\npkg.f = lambda x: x + 1\n", ""),
        _become(_T + "\n\nmock.patch('pkg.f').start()\n"),
        _become(_T + "\n\nglobals().pop('test_f')\n"),
        _become(_T + "\n\nvars(sys.modules[__name__]).clear()\n"),
        _become(_T + "\n\nsys.modules[__name__].__dict__.pop('test_f')\n"),
    ),
    not_match=_FINE,
)
CONFIGURED = question(
    id="test-configuration",
    why="configuration decides which tests run, and how",
    remedy="have a person confirm the change",
    match=(
        RuleExample(path="tests/conftest.py", before="x = 1\n", after="x = 2\n"),
        RuleExample(path="pyproject.toml", before="a = 1\n", after="a = 2\n"),
        _become("pytest_plugins = ['pkg.plugin']\n\n\ndef test_g():\n    assert f(1) == 2\n", ""),
        RuleExample(path="conftest.py", before="", after="collect_ignore = ['tests']\n", modes=":100644"),
    ),
    not_match=_FINE,
)
RULES = (
    DELETED, FEATURE, SKIPPED, REMOVED, WEAKENED, WIDENED, TRIVIAL, CASES, CHANGED, FIXTURE, MOCKED, CONFIGURED,
    *side_effects.RULES,
)  # fmt: skip
WEAKER = (DELETED, SKIPPED, REMOVED, WEAKENED, WIDENED, CASES)
"""What makes tests judge less; the policy says whether a person may let that be."""
