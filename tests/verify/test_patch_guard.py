"""The guard of `verify`: tests outside the named ones must stay, and are witnesses of the change like those."""

import re
from pathlib import Path

import pytest
from support.verify_builder import patch, verified

from localagent.domain.claim import Claim
from localagent.domain.guard import Guard, GuardScope
from localagent.domain.paths import RepoPath
from localagent.domain.strength import Grade
from localagent.domain.verification import Verification, VerifyVerdict
from localagent.verify.checks import guard_comparison, patch_guard
from localagent.verify.checks.patch_guard import near_files

CUT = RepoPath("cut.py")
SOURCE = "def cut(text, size):\n    if size < 0:\n        return text\n    return text[: size + 1]\n"
NAMED = "from cut import cut\n\n\ndef test_cut():\n    assert cut('abcdef', 2) == 'ab'\n"
BESIDE = """\
from pathlib import Path

import pytest
from cut import cut


@pytest.mark.parametrize('text', ['abc', 'xyz', 'longer', 'much longer'])
def test_all(text):
    assert cut(text, -1) == text


def test_always_bad():
    assert cut('abc', 1) == 'c'
"""
FILES = {"cut.py": SOURCE, "test_cut.py": NAMED, "test_more.py": BESIDE, "test_far.py": "def test():\n    assert 1\n"}
RIGHT = SOURCE.replace("size + 1", "size")
WRONG = RIGHT.replace("size < 0", "size > 0").replace("return text\n", "return text[:size]\n")


def asked(after: str, guard: Guard | None = None) -> Verification:
    more = {"guard": guard} if guard is not None else {}
    text = patch(FILES, {"cut.py": after})
    return verified(FILES, text, tests=("test_cut.py",), claim=Claim.FIXES, **more)


@pytest.mark.long
def test_tests_beside_the_named_ones_must_not_break_and_are_witnesses() -> None:
    right = asked(RIGHT)
    assert right.verdict is VerifyVerdict.VERIFIED, right
    assert right.full is not None
    assert right.full.guard is not None
    assert (right.full.guard.ran, right.full.guard.passed, right.full.guard.broken) == (5, 4, ())
    assert len(right.full.pass_to_pass) == 0, "the named tests alone are counted there"
    near = right.differential
    assert near is not None
    assert near.functions[0].reached
    assert right.strength is not None
    assert not [limit for limit in right.strength.limits if "no test that passed before" in limit]
    wrong = asked(WRONG)
    assert wrong.verdict is VerifyVerdict.REFUSED
    assert wrong.reason.startswith("breaks tests outside --test: test_more.py::test_all[abc]")


@pytest.mark.long
@pytest.mark.parametrize("refuses", [False, True])
def test_a_file_that_no_longer_collects_is_broken(refuses: bool) -> None:
    uses = {"conftest.py": "from cut import paste\n"} if refuses else {}
    test = "import cut\n" if refuses else "from cut import paste\n"
    files = {
        "cut.py": SOURCE + "\n\ndef paste(text):\n    return text\n",
        "test_cut.py": NAMED,
        **{f"far/{name}": text for name, text in uses.items()},
        "far/test_paste.py": f"{test}\n\ndef test_it():\n    assert True\n",
    }
    text = patch(files, {"cut.py": RIGHT + "\n\ndef glue(text):\n    return text\n"})
    found = verified(files, text, tests=("test_cut.py",), claim=Claim.FIXES)
    assert found.verdict is VerifyVerdict.REFUSED, found.reason
    place = "far/conftest.py" if refuses else "far/test_paste.py"
    assert found.reason == f"breaks tests outside --test: collect:{place}"


@pytest.mark.long
def test_a_collection_that_hangs_with_the_patch_alone_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard_comparison, "COLLECTING_SECONDS", 1.0)
    monkeypatch.setattr(guard_comparison, "COLLECTING_SLOWER", 2.0)
    monkeypatch.setattr(patch_guard, "COLLECTING_SECONDS", 600.0)
    waits = "import time\nfrom cut import cut\n\nwhile cut('ab', 1) == 'a':\n    time.sleep(0.1)\n"
    files = {**FILES, "test_more.py": f"{waits}\n\ndef test_it():\n    assert True\n"}
    found = verified(files, patch(files, {"cut.py": RIGHT}), tests=("test_cut.py",), claim=Claim.FIXES)
    assert found.verdict is VerifyVerdict.REFUSED, found.reason
    assert re.fullmatch(
        r"breaks tests outside --test: collect:\. "
        r"\(collecting took more than \d+ s, and \d+\.\d s without the patch\)",
        found.reason,
    )


@pytest.mark.long
def test_none_runs_none_and_nothing_shows_what_is_to_stay() -> None:
    wrong = asked(WRONG, Guard(scope=GuardScope.NONE))
    assert wrong.strength is not None
    assert [limit for limit in wrong.strength.limits if "no test that passed before" in limit]
    assert wrong.strength.grade >= Grade.C
    assert wrong.full is not None
    assert wrong.full.guard is None
    assert wrong.verdict is not VerifyVerdict.REFUSED


@pytest.mark.long
@pytest.mark.parametrize(("begin", "limited"), [("a", True), ("ab", False)])
def test_what_a_failing_test_called_before_it_failed_shows_what_is_to_stay(begin: str, limited: bool) -> None:
    """Two results, of calls that run what changed."""
    kept = "".join(f"    assert cut('{letter}', 2) == '{letter}'\n" for letter in begin)
    files = {"cut.py": SOURCE, "test_cut.py": NAMED.replace("    assert", f"{kept}    assert", 1)}
    found = verified(files, patch(files, {"cut.py": RIGHT}), tests=("test_cut.py",), claim=Claim.FIXES)
    assert found.strength is not None
    assert bool([limit for limit in found.strength.limits if "no test that passed before" in limit]) is limited, found


def test_files_are_those_that_import_what_changed_nearest_first(tmp_path: Path) -> None:
    for name, text in {**FILES, "use.py": "import cut\n", "test_a.py": "import use\n"}.items():
        (tmp_path / name).write_text(text)
    assert near_files(tmp_path, [CUT], ("test_cut.py::test_cut",)) == ("test_more.py", "test_a.py")
    assert near_files(tmp_path, [CUT], (".",)) == ()
