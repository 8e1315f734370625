"""CrossHair's answers, as it wrote them; what it never wrote; and the real one where it is installed."""

import importlib.util

import pytest
from support.verify_builder import patch, verified

from localagent.domain.jailspec import JailResult
from localagent.domain.outcome import JailOutcome
from localagent.domain.verification import InputOrigin, SymbolicResult, VerifyVerdict
from localagent.errors import UsageFault
from localagent.verify.evidence.crosshair_equivalence import read_answer, require_crosshair

DIFFERS = b"Given: (n=123456),\n  e.f : raises ZeroDivisionError('division by zero')\n  e.g : returns 123456\n"
SAME = b"No differences found. (attempted 6 iterations)\nAll paths exhausted, functions are likely the same!\n"
NOTHING = b"No differences found. (attempted 60 iterations)\n"
OLD = "def f(n: int) -> int:\n    return n\n"


def ended(code: int, out: bytes, err: bytes = b"", ending: JailOutcome = JailOutcome.EXITED) -> JailResult:
    return JailResult(ending=ending, returncode=code, stdout=out, stderr=err, wall_seconds=1.0, backend="b", level="L2")


def test_what_it_writes_is_read() -> None:
    said, _, found = read_answer(ended(1, DIFFERS))
    assert said is SymbolicResult.DIFFERS
    assert found == (("n=123456", "raises ZeroDivisionError('division by zero')", "returns 123456"),)
    assert read_answer(ended(0, SAME))[0] is SymbolicResult.LIKELY_SAME
    assert read_answer(ended(0, NOTHING))[0] is SymbolicResult.NOTHING_FOUND


@pytest.mark.parametrize(
    "result",
    [
        ended(0, b""),
        ended(0, DIFFERS),
        ended(1, SAME),
        ended(1, b"", b"Traceback\ncrosshair.fnutil.NotFound: no\n"),
        ended(2, SAME),
        ended(-9, SAME),
        ended(0, SAME, ending=JailOutcome.WALL),
        ended(1, b"Given: (\xff\x1b]0;x\x07"),
    ],
)
def test_anything_else_is_no_answer(result: JailResult) -> None:
    said, why, found = read_answer(result)
    assert said is SymbolicResult.COULD_NOT
    assert why
    assert found == ()


def test_texts_of_the_code_are_bounded_and_clean() -> None:
    _, _, found = read_answer(ended(1, DIFFERS.replace(b"123456", b"\x1b[31m" + b"9" * 10_000) * 100))
    assert 0 < len(found) <= 5
    assert all(len(part) <= 400 and "\x1b" not in part for parts in found for part in parts)


def test_without_the_extra_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(UsageFault, match="CrossHair is not installed") as caught:
        require_crosshair()
    assert "[crosshair]" in caught.value.remedy
    with pytest.raises(UsageFault, match="CrossHair is not installed"):
        verified({"m.py": OLD}, "", crosshair=True)


@pytest.mark.slow
def test_it_finds_what_nobody_draws() -> None:
    pytest.importorskip("crosshair", reason="the extra [crosshair] is not installed")
    old = "T = 123456\n\n\ndef f(n: int) -> int:\n    return max(n, 0) // T\n"
    text = patch({"m.py": old}, {"m.py": old.replace("max(n, 0)", "(max(n, 0) + 1)")})
    found = verified({"m.py": old}, text, crosshair=True)
    assert found.verdict is VerifyVerdict.NEEDS_PERSON, found.reason
    assert found.symbolic is not None
    assert [s.said for s in found.symbolic] == [SymbolicResult.DIFFERS]
    assert found.differential is not None
    calls = [d.call for d in found.differential.differences if d.origin is InputOrigin.SYMBOLIC]
    assert calls
    assert all(int(call.removeprefix("f(n=").removesuffix(")")) % 123456 == 123455 for call in calls)
