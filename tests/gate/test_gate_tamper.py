"""Tests that go with what they tested, and tests that are only written otherwise: what asks a person and what not."""

from pathlib import Path

import pytest

from localagent.domain.diff import ChangeKind, FileMode, TreeChange
from localagent.domain.paths import RepoPath
from localagent.gate.patch_gates import PatchGates
from localagent.policy.load import load_policy

POLICIES = Path(__file__).parents[2] / "policies"


@pytest.fixture(scope="module")
def gates() -> PatchGates:
    return PatchGates(load_policy(POLICIES / "default.toml"))


@pytest.fixture(scope="module")
def strict() -> PatchGates:
    return PatchGates(load_policy(POLICIES / "strict.toml"))


def change(path: str, before: str, after: str) -> TreeChange:
    gone = not after
    return TreeChange(
        path=RepoPath(path), source=RepoPath(path), kind=ChangeKind.DELETED if gone else ChangeKind.MODIFIED,
        before=before.encode(), after=after.encode(), before_mode=FileMode.REGULAR,
        after_mode=None if gone else FileMode.REGULAR,
    )  # fmt: skip


def found(gates: PatchGates, *changes: TreeChange) -> dict[str, str]:
    decisions = gates.review(changes, everything=True)
    return {str(f.rule): f.message for d in decisions for f in d.findings}


SOURCE = (
    "def keep(x):\n    return x\n\n\ndef gone(x):\n    return x + 1\n\n\n"
    "class Box:\n    def lid(self):\n        return 1\n\n    def side(self):\n        return 2\n"
)
LESS = "def keep(x):\n    return x\n\n\nclass Box:\n    def side(self):\n        return 2\n"
TEST = (
    "from pkg.mod import gone, keep\n\n\ndef test_keep():\n    assert keep(1) == 1\n\n\n"
    "def test_gone():\n    assert gone(1) == 2\n"
)
LESS_TEST = "from pkg.mod import keep\n\n\ndef test_keep():\n    assert keep(1) == 1\n"


def test_a_test_that_goes_with_all_that_it_tested_is_a_question_with_its_reason(
    gates: PatchGates, strict: PatchGates
) -> None:
    for each in (gates, strict):
        rules = found(each, change("pkg/mod.py", SOURCE, LESS), change("tests/test_mod.py", TEST, LESS_TEST))
        assert "test-deleted" not in rules
        assert "test_gone is gone with pkg.mod.gone" in rules["test-gone-with-feature"]


def test_a_test_that_is_called_after_what_goes_may_use_what_stays(gates: PatchGates) -> None:
    test = TEST.replace("gone(1) == 2", "gone(keep(1)) == 2")
    rules = found(gates, change("pkg/mod.py", SOURCE, LESS), change("tests/test_mod.py", test, LESS_TEST))
    assert "test_gone is gone with pkg.mod.gone" in rules["test-gone-with-feature"]


@pytest.mark.parametrize("folder", ["", "src/", "lib/"])
def test_so_it_is_where_sources_lie_in_a_folder(gates: PatchGates, folder: str) -> None:
    rules = found(gates, change(f"{folder}pkg/mod.py", SOURCE, ""), change("tests/test_mod.py", TEST, ""))
    assert "test-gone-with-feature" in rules
    assert "test-deleted" not in rules


def test_a_method_that_goes_takes_its_test_with_it(gates: PatchGates) -> None:
    test = "from pkg.mod import Box\n\n\ndef test_side():\n    assert Box().side() == 2\n"
    more = test + "\n\ndef test_lid():\n    assert Box().lid() == 1\n"
    assert "test-gone-with-feature" in found(
        gates, change("pkg/mod.py", SOURCE, LESS), change("tests/test_mod.py", more, test)
    )
    rules = found(gates, change("pkg/mod.py", SOURCE, LESS), change("tests/test_mod.py", more, more.split("\n\n\n")[0]))
    assert "test_side" in rules["test-deleted"]


@pytest.mark.parametrize(
    ("source", "test"),
    [
        (SOURCE.replace("x + 1", "x + 2"), TEST),  # still there, answers otherwise
        (LESS, TEST.replace("gone(1) == 2", "gone(keep(1)) == 2").replace("test_gone", "test_both")),  # so is the rest
        (LESS, TEST.replace("import gone, keep", "import keep\nfrom pkg.other import gone")),  # another file's
        (LESS, TEST.replace("    assert gone(1) == 2", "    assert run('gone') == 2")),  # nobody can tell
        (LESS + "\n\ngone = keep\n", TEST),  # bound again
    ],
)
def test_a_test_of_what_stays_is_a_test_that_is_gone(gates: PatchGates, source: str, test: str) -> None:
    rules = found(gates, change("pkg/mod.py", SOURCE, source), change("tests/test_mod.py", test, LESS_TEST))
    assert "test-deleted" in rules
    assert "test-gone-with-feature" not in rules


BEFORE = (
    "class TestA(unittest.TestCase):\n    def test_a(self):\n        super(TestA, self).setUp()\n        x = f(1)\n"
    "        with a():\n            with b():\n                self.assertEquals(x, 2)\n"
)


@pytest.mark.parametrize(
    "after",
    [
        BEFORE.replace("assertEquals", "assertEqual"),
        BEFORE.replace("super(TestA, self)", "super()"),
        BEFORE.replace("x", "got"),
        BEFORE.replace("x =", "x: int ="),
        BEFORE.replace("(self)", "(self) -> None"),
        BEFORE.replace(
            "        with a():\n            with b():\n                self", "        with a(), b():\n            self"
        ),
    ],
)
def test_a_test_that_is_only_written_otherwise_asks_nobody_by_default(
    gates: PatchGates, strict: PatchGates, after: str
) -> None:
    assert found(gates, change("tests/test_mod.py", BEFORE, after)) == {}
    if "-> None" not in after:
        assert found(strict, change("tests/test_mod.py", BEFORE, after))


@pytest.mark.parametrize(
    "after",
    [
        BEFORE.replace("f(1)", "f(2)"),
        BEFORE.replace("(x, 2)", "(x, 3)"),
        BEFORE.replace("assertEquals", "assertIn"),
        BEFORE.replace("super(TestA, self)", "super(Base, self)"),
        BEFORE.replace("x = f(1)", "y = f(1)"),  # x is another one now
        BEFORE.replace("with a():", "with c():"),
        BEFORE.replace("assertEquals", "assertEqual") + "\n    def assertEqual(self, a, b):\n        pass\n",
        BEFORE.replace("        x = f(1)\n", "        x = f(1)\n        x = 2\n"),
    ],
)
def test_what_a_test_demands_is_not_the_same_by_looking_alike(gates: PatchGates, after: str) -> None:
    assert found(gates, change("tests/test_mod.py", BEFORE, after))


def test_local_names_count_where_a_test_looks_at_them(gates: PatchGates) -> None:
    before = "def test_a():\n    x = f(1)\n    assert locals()['x'] == 2\n"
    assert found(gates, change("tests/test_a.py", before, before.replace("x = f", "y = f")))


@pytest.mark.parametrize(
    ("comment", "asks"),
    [
        ("# type: ignore[arg-type]", True),
        ("# pyright: ignore[reportGeneral]", True),
        ("# noqa: E501", False),
        ("# type: ignore", True),
        ("# noqa", True),
        ("# noqa: S602", True),
        ("# noqa: E501, S602", True),
        ("# noqa: E501 S602", True),
        ("# type: ignore[arg-type]  # nosec", True),
        ("# pragma: no cover", True),
    ],
)
def test_an_excuse_that_names_a_finding_of_style_asks_nobody_by_default(
    gates: PatchGates, strict: PatchGates, comment: str, asks: bool
) -> None:
    before = "def f(x):\n    return x\n"
    after = f"def f(x):\n    return x  {comment}\n"
    assert ("excuse-added" in found(gates, change("pkg/mod.py", before, after))) is asks
    assert "excuse-added" in found(strict, change("pkg/mod.py", before, after))
