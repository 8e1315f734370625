"""Contracts: what counts as one, CrossHair's answers as it wrote them, and the real one where it is installed."""

import pytest
from support.verify_builder import patch, verified

from localagent.domain.jailspec import JailResult
from localagent.domain.outcome import JailOutcome
from localagent.domain.verification import ContractResult, Verification, VerifyVerdict
from localagent.verify.evidence.crosshair_contracts import conditions, heard
from localagent.verify.worker.function_regions import regions

CONFIRMED = b"/r/m.py:5: info: Confirmed over all paths.\n"
VIOLATED = b"/r/m.py:12: error: false when calling b(1230) (which returns 2460)\n"
RAISED = b"/r/m.py:4: error: AssertionError: two\nlines when calling a(0)\n"
UNREAD = b"/r/m.py:27: error: invalid syntax (<string>, line 1)\n"
SOURCE = b'''import deal
from icontract import ensure as promises


def doc(x):
    """Doubles.

    pre: x > 0
    post[x]: __return__ > x
    """
    return x


def short(x):
    """post: __return__ > 0"""
    return x


def asks(x):
    """Of a number."""
    assert x > 0, "no"
    y = [x]

    def inner():
        assert y

    assert (
        y
    )
    return inner


def later(x):
    x += 1
    assert x
    return x


@deal.pre(lambda x: x > 0)
@promises(lambda result: result)
@print
def adorned(x):
    return x


def plain(x):
    """Says post and pre: nothing."""
    return x
'''


def ended(code: int, out: bytes, err: bytes = b"", ending: JailOutcome = JailOutcome.EXITED) -> JailResult:
    return JailResult(ending=ending, returncode=code, stdout=out, stderr=err, wall_seconds=1.0, backend="b", level="L2")


def test_what_a_function_says_of_itself_is_found() -> None:
    seen = regions(SOURCE)
    assert seen is not None
    told = {f.name: conditions(SOURCE, f) for f in seen.functions}
    assert {name: (c.texts, c.kinds) for name, c in told.items()} == {
        "doc": (("pre: x > 0", "post: __return__ > x"), ("PEP316",)),
        "short": (("post: __return__ > 0",), ("PEP316",)),
        "asks": (("assert x > 0, 'no'", "assert y"), ("asserts",)),
        "later": ((), ()),
        "adorned": (("@deal.pre(lambda x: x > 0)", "@promises(lambda result: result)"), ("deal", "icontract")),
        "plain": ((), ()),
    }
    assert sorted(told["doc"].at) == [8, 9]


def test_what_it_writes_is_heard() -> None:
    assert heard(ended(0, CONFIRMED)).confirmed
    limited = heard(ended(0, CONFIRMED + b"/r/m.py:6: info: Not confirmed.\n"))
    assert (limited.why, limited.violations, limited.confirmed) == ("", (), False)
    both = heard(ended(1, CONFIRMED + VIOLATED + RAISED))
    assert [(v.line, v.what, v.call) for v in both.violations] == [
        (12, "false", "b(1230) (which returns 2460)"),
        (4, "AssertionError: two lines", "a(0)"),
    ]
    assert not both.confirmed


@pytest.mark.parametrize(
    "result",
    [
        ended(0, b""),
        ended(0, b"", b"WARNING: Targets found, but contain no checkable functions.\n"),
        ended(0, VIOLATED),
        ended(1, CONFIRMED),
        ended(1, b"", b"Traceback\nModuleNotFoundError: no\n"),
        ended(1, UNREAD),
        ended(1, UNREAD + VIOLATED),
        ended(2, CONFIRMED),
        ended(-9, CONFIRMED),
        ended(0, CONFIRMED, ending=JailOutcome.WALL),
        ended(0, b"m.py:5: info: Confirmed over all paths.\n"),
        ended(1, b"/r/m.py:1\xff\x1b]0;x\x07: error: false when calling f()"),
    ],
)
def test_anything_else_is_no_answer(result: JailResult) -> None:
    found = heard(result)
    assert found.why
    assert (found.violations, found.confirmed) == ((), False)


def test_texts_of_the_code_are_bounded_and_clean() -> None:
    found = heard(ended(1, VIOLATED.replace(b"1230", b"\x1b[31m" + b"9" * 10_000)))
    assert [len(v.call) for v in found.violations] == [400]
    assert "\x1b" not in found.violations[0].call


def asked(old: str, new: str) -> Verification:
    pytest.importorskip("crosshair", reason="the extra [crosshair] is not installed")
    test = "from m import f\n\n\ndef test_f():\n    assert f(3) == 3\n"
    files = {"m.py": old, "test_m.py": test}
    found = verified(files, patch(files, {"m.py": new}), crosshair=True)
    assert found.contracts is not None, found.reason
    assert found.full is not None
    assert found.full.accepted  # the tests have nothing against it
    return found


POST = 'def f(x: int) -> int:\n    """Same.\n\n    post: __return__ == x\n    """\n    return x\n'
WRONG = "    return abs(x)\n"


@pytest.mark.slow
def test_a_contract_that_held_and_is_broken_refuses() -> None:
    found = asked(POST, POST.replace("    return x\n", WRONG))
    assert (found.verdict, found.exit) == (VerifyVerdict.REFUSED, 1), found.reason
    assert "f breaks its contract `post: __return__ == x`: false when calling f(-" in found.reason
    assert found.contracts is not None
    (one,) = found.contracts
    assert (one.said, [b.held for b in one.broken], one.dropped) == (ContractResult.BROKEN, [True], ())


@pytest.mark.slow
def test_an_assert_that_never_failed_and_now_does_refuses() -> None:
    old = "def f(x: int) -> int:\n    assert x > 0\n    y = x + 1\n    assert y > 1\n    return y - 1\n"
    new = old.replace("y = x + 1\n", "y = 2 * x - 2\n")
    found = asked(old, new)
    assert found.verdict is VerifyVerdict.REFUSED, found.reason
    assert "`assert y > 1`" in found.reason


@pytest.mark.slow
def test_a_contract_that_is_kept_says_nothing_against_the_patch() -> None:
    found = asked(POST, POST.replace("return x", "return x + 0"))
    assert found.verdict is not VerifyVerdict.REFUSED, found.reason
    assert [c.said for c in found.contracts or ()] == [ContractResult.HELD]


@pytest.mark.slow
def test_one_that_was_broken_already_is_told_and_decides_nothing() -> None:
    old = POST.replace("    return x\n", WRONG)
    found = asked(old, old.replace("abs(x)", "abs(x) + 0"))
    assert found.verdict not in (VerifyVerdict.REFUSED, VerifyVerdict.NEEDS_PERSON), found.reason
    assert [c.said for c in found.contracts or ()] == [ContractResult.WAS_BROKEN]


@pytest.mark.slow
@pytest.mark.parametrize("post", ["", "\n    post: __return__ >= x - 200000\n    "])
def test_one_that_is_taken_away_or_rewritten_needs_a_person(post: str) -> None:
    new = POST.replace("    return x\n", WRONG).replace("\n    post: __return__ == x\n    ", post)
    found = asked(POST, new)
    assert found.verdict is VerifyVerdict.NEEDS_PERSON, found.reason
    assert "no longer has the contract `post: __return__ == x`" in found.reason


@pytest.mark.slow
@pytest.mark.parametrize(
    ("head", "pre", "answer"),
    [("x: int", "", "abs(x - 1) + 1"), ("x: int, y: int = 0", "    pre: x > 0\n", "x + y")],
)
def test_calls_that_were_not_meant_before_do_not_refuse(head: str, pre: str, answer: str) -> None:
    before = POST.replace("    post", "    pre: x > 0\n    post")
    after = POST.replace("    post", f"{pre}    post").replace("x: int", head).replace("return x", f"return {answer}")
    found = asked(before, after)
    assert found.verdict is VerifyVerdict.NEEDS_PERSON, found.reason
    assert [b.held for c in found.contracts or () for b in c.broken] == [False]


@pytest.mark.slow
def test_one_that_the_patch_brings_and_breaks_needs_a_person() -> None:
    found = asked("def f(x: int) -> int:\n    return x\n", POST.replace("    return x\n", WRONG))
    assert found.verdict is VerifyVerdict.NEEDS_PERSON, found.reason
    assert [b.held for c in found.contracts or () for b in c.broken] == [False]


@pytest.mark.slow
def test_what_cannot_be_imported_there_is_told_and_decides_nothing() -> None:
    old = (
        POST + "\n\ntry:\n    import pytest_of_the_project\nexcept ImportError:\n    import sys\n\n"
        "    assert 'crosshair' not in sys.modules\n"
    )
    found = asked(old, old.replace("return x", "return x + 0"))
    assert [c.said for c in found.contracts or ()] == [ContractResult.COULD_NOT]
    assert all(c.why for c in found.contracts or ())
    assert found.verdict is not VerifyVerdict.REFUSED, found.reason
