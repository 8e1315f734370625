"""New tests that show nothing, told from those that do, by their syntax alone."""

import pytest

from localagent.gate.tests.weak_tests import weak_tests

HEAD = "import subprocess\nimport unittest\n\nimport pytest\nimport shop\nfrom shop import mean\n\n\n"


def _why(text: str) -> str:
    return "; ".join(weak.why for weak in weak_tests((HEAD + text).encode(), {"shop"}))


@pytest.mark.parametrize(
    "text",
    [
        "def test_a():\n    assert mean([1, 3]) == 2\n",
        "def test_a():\n    assert mean([1])\n",
        "def test_a():\n    with pytest.raises(ValueError):\n        mean([])\n",
        "def test_a():\n    with pytest.raises(Exception, match='no items'):\n        mean([])\n",
        "def test_a(capsys):\n    mean([1])\n    assert capsys.readouterr().out == '1'\n",
        "def test_a():\n    xs = [1]\n    mean(xs)\n    assert xs == [2]\n",
        "@pytest.mark.parametrize('a, b', [(1, 2)])\ndef test_a(a, b):\n    assert mean(a) == b\n",
        "@pytest.fixture\ndef m():\n    return mean([1])\n\n\ndef test_a(m):\n    assert m == 2\n",
        "class TestA:\n    def setup_method(self):\n        self.m = mean([2])\n\n"
        "    def test_a(self):\n        assert self.m == 2\n",
        "class TestA(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(mean([1]), 1)\n",
        "def check(x, y):\n    assert mean(x) == y\n\n\ndef test_a():\n    check([1], 1)\n",
        "def test_a(monkeypatch):\n    monkeypatch.setattr('shop.clock', 1)\n    assert mean([1]) == 1\n",
        "def test_a():\n    out = subprocess.run(['shop'])\n    assert out.returncode == 0\n",
        "@pytest.mark.parametrize('make', [lambda: mean([1])])\ndef test_a(make):\n    x = make()\n    assert x == 1\n",
        "def test_a():\n    assert 'mean' in open('README.md').read()\n",
        "def test_a():\n    for x in mean([1]):\n        assert x == 1\n",
        "def test_a():\n    seen = []\n\n    @mean\n    def f(x):\n        seen.append(x)\n\n"
        "    f(1)\n    assert seen == [1]\n",
        "def test_a():\n    for x, y in zip([1, 2], 'a b'.split()):\n        assert mean([x]) == y\n",
        "def test_a(tmp_path):\n    mean(tmp_path)\n    for x in tmp_path.iterdir():\n        assert x.name == '1'\n",
        "def test_a(monkeypatch):\n    seen = []\n    monkeypatch.setattr('time.sleep', lambda s: seen.append(s))\n"
        "    mean([1])\n    assert seen == [1]\n",
        "def test_a(monkeypatch):\n    seen = []\n\n    def fake(x):\n        seen.append(x)\n\n"
        "    monkeypatch.setattr('shop.clock.sleep', fake)\n    mean([1])\n    assert seen == [1]\n",
        "def test_a():\n    seen = []\n\n    @shop.on('x')\n    def hear(x):\n        seen.append(x)\n\n"
        "    shop.tell(1)\n    assert seen == [1]\n",
        "def test_a(till):\n    assert till.mean([1]) == 1\n",  # of conftest.py
        "@pytest.fixture\ndef m(till):\n    return till.mean([1])\n\n\ndef test_a(m, tmp_path):\n    assert m == 2\n",
    ],
)
def test_a_test_that_shows_something_is_let_be(text: str) -> None:
    assert not _why(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("def helper():\n    pass\n", "holds no test"),
        ("def test_a():\n    mean([1])\n", "asserts nothing that can fail"),
        ("def test_a():\n    mean([1])\n    assert True\n", "asserts nothing that can fail"),
        ("def test_a():\n    assert mean([1]) == mean([1])\n", "asserts nothing that can fail"),
        (
            "def test_a():\n    try:\n        assert mean([1]) == 1\n    except Exception:\n        pass\n",
            "asserts nothing that can fail",
        ),
        ("@pytest.mark.skip\ndef test_a():\n    assert mean([1]) == 1\n", "is skipped"),
        ("def test_a():\n    pytest.skip('x')\n    assert mean([1]) == 1\n", "is skipped"),
        ("pytestmark = pytest.mark.xfail\n\n\ndef test_a():\n    assert mean([1]) == 1\n", "is skipped"),
        ("def test_a():\n    x = 1\n    mean([1])\n    assert x == 2\n", "does not hang on"),
        (
            "def test_a(monkeypatch):\n    seen = []\n\n    def fake(x):\n        seen.append(x)\n\n"
            "    monkeypatch.setattr('shop.clock.sleep', fake)\n    fake(1)\n    mean([1])\n    assert seen == [1]\n",
            "does not hang on",
        ),
        (
            "def test_a():\n    seen = []\n\n    def fake(x):\n        seen.append(x)\n\n"
            "    seen.append(1)\n    mean([1])\n    assert seen == [1]\n",
            "does not hang on",
        ),
        ("def test_a():\n    mean([1])\n    pytest.fail('to do')\n", "does not hang on"),
        (
            "def test_a(tmp_path):\n    for x in list(tmp_path.iterdir()):\n        assert mean(x) == 1\n",
            "only in a loop, which may have nothing to go through",
        ),
        (
            "def test_a(monkeypatch):\n    monkeypatch.setattr('shop.mean', len)\n    assert shop.mean([1]) == 2\n",
            "replaces shop.mean",
        ),
        ("def test_a():\n    shop.mean = lambda x: 2\n    assert shop.mean([1]) == 2\n", "replaces mean"),
        (
            "@pytest.fixture(autouse=True)\ndef _all():\n    shop.mean = len\n    yield\n\n\n"
            "def test_a():\n    assert mean([1]) == 1\n",
            "replaces shop.mean for every test",
        ),
        ("def test_a(x=2):\n    assert x == 2\n", "uses nothing of the repository"),
        ("def test_a():\n    mean = lambda x: 2\n    assert mean([1]) == 2\n", "replaces mean"),
        (
            "def average(x):\n    return 2\n\n\ndef test_a():\n    assert average([1]) == 1\n",
            "uses nothing of the repository",
        ),
        ("def test_a():\n    with pytest.raises(Exception):\n        mean([])\n", "any of several exceptions"),
        ("def test_a():\n    assert callable(mean)\n    assert mean is not None\n", "only that something is there"),
        ("def test_a():\n    if mean([1]) == 1:\n        assert mean([2]) == 2\n", "only under a condition"),
    ],
)
def test_a_test_that_shows_nothing_is_named_with_the_reason(text: str, why: str) -> None:
    assert why in _why(text)


def test_what_is_no_python_holds_no_test() -> None:
    assert [weak.why for weak in weak_tests(b"def test_a(:\n", ())] == ["does not parse"]
