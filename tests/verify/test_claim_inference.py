"""What a patch is for, where nobody said it."""

from localagent.domain.claim import Claim
from localagent.domain.paths import RepoPath
from localagent.domain.verification import Difference, Differential, FunctionReach, InputOrigin
from localagent.verify.evidence.changed_lines import ChangedFile
from localagent.verify.evidence.claim_inference import inferred_claim, only_adds

PATH = RepoPath("m.py")
OLD = "def f(x):\n    return x\n"
SAME = Differential(functions=(FunctionReach(path=PATH, function="f", compared=9, agreed=9, answered=9),))
OTHER = Differential(
    functions=SAME.functions,
    differences=(Difference(path=PATH, function="f", call="f(1)", old="1", new="2", origin=InputOrigin.NEAR),),
)


def file(after: str, before: str = OLD) -> ChangedFile:
    return ChangedFile(path=PATH, source=PATH, before=before.encode(), after=after.encode())


MENDED, GROWN = file("def f(x):\n    return x + 1\n"), file(OLD + "\n\ndef g(x):\n    return x\n")


def claim(
    one: ChangedFile, turned: tuple[str, ...], near: Differential | None, *added: str, data: bool = False
) -> Claim:
    return inferred_claim([one], turned=turned, added=added, near=near, data=data)


def test_what_turned_is_a_fix_unless_the_patch_brought_it_and_only_adds() -> None:
    assert claim(MENDED, ("t",), SAME) is Claim.FIXES
    assert claim(MENDED, ("t",), SAME, "t") is Claim.FIXES
    assert claim(GROWN, ("t",), SAME) is Claim.FIXES
    assert claim(GROWN, ("t",), SAME, "t") is Claim.ADDS
    assert claim(GROWN, ("t", "u"), SAME, "t") is Claim.FIXES


def test_where_nothing_turned_one_difference_is_unknown() -> None:
    assert claim(MENDED, (), OTHER) is Claim.UNKNOWN
    assert claim(MENDED, (), SAME) is Claim.PRESERVES
    assert claim(MENDED, (), None) is Claim.UNKNOWN
    assert claim(MENDED, (), SAME, data=True) is Claim.UNKNOWN
    assert claim(GROWN, (), SAME) is Claim.UNKNOWN


def test_text_and_tests_alone_preserve_and_data_may_not() -> None:
    assert inferred_claim([], turned=(), added=(), near=None, data=False) is Claim.PRESERVES
    assert inferred_claim([], turned=(), added=(), near=None, data=True) is Claim.UNKNOWN


def test_only_adds_means_that_no_statement_of_a_function_went() -> None:
    assert only_adds([GROWN])
    assert only_adds([file("def f(x, y=1):\n    if y != 1:\n        return y\n    return x\n")])
    assert not only_adds([file("def f(x, y=1):\n    return x + y\n")])
    assert not only_adds([file("def f(x):\n    x = x + 0\n    return x\n")])
    assert not only_adds([MENDED, GROWN])
    assert not only_adds([file("")])
