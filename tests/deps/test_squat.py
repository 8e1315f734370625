"""Which names are taken for imitations, family by family, and how many wrongly."""

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.utils import canonicalize_name

from localagent.deps.confusables import fold
from localagent.deps.known_distributions import load_known
from localagent.deps.squat import KnownNames
from localagent.domain.dependency import Family
from localagent.errors import UsageFault

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bench import squats  # noqa: E402

KNOWN = load_known(squats.KNOWN)
NAMES = st.sampled_from(sorted(KNOWN.names))


@pytest.mark.parametrize(
    ("written", "known", "family"),
    [
        ("reqeusts", "requests", Family.DISTANCE),
        ("nunpy", "numpy", Family.DISTANCE),
        ("sklear", "", None),
        ("pythondateutil", "python-dateutil", Family.SEPARATOR),
        ("scikit_learn", "", None),
        ("sci-kit.learn", "scikit-learn", Family.SEPARATOR),
        ("djang0", "django", Family.LOOKALIKE),
        ("c1ick", "click", Family.LOOKALIKE),
        ("nurnpy", "numpy", Family.LOOKALIKE),
        ("learn-scikit", "scikit-learn", Family.WORD_ORDER),
        ("python-requests", "requests", Family.AFFIX),
        ("requests-python", "requests", Family.AFFIX),
        ("pynumpy", "numpy", Family.AFFIX),
        ("numpy2", "numpy", Family.AFFIX),
        ("pandass", "pandas", Family.AFFIX),
        ("beautifulsoup", "beautifulsoup4", Family.AFFIX),
        ("dateutil", "python-dateutil", Family.AFFIX),
        ("r\u0435quests", "requests", Family.HOMOGLYPH),
        ("\u0501j\u0430ng\u043e", "django", Family.HOMOGLYPH),
        ("\uff52\uff49\uff43\uff48", "rich", Family.HOMOGLYPH),
        ("req\u200buests", "requests", Family.HOMOGLYPH),
        ("xn--rquests-bya", "requests", Family.HOMOGLYPH),
        ("xn-rquests-bya", "requests", Family.HOMOGLYPH),
        ("xn--", "", None),
        ("\u0440\u0443test2", "pytest", Family.HOMOGLYPH),
        ("frobnicate-acme", "", None),
        ("\u4f60\u597d", "", None),
    ],
)
def test_families(written: str, known: str, family: Family | None) -> None:
    found = KNOWN.look_alike(written)
    assert (found.known, found.family) == (known, family) if found else family is None


@given(NAMES, st.sampled_from([str.upper, str.title, lambda n: n.replace("-", "_"), lambda n: n.replace("-", "-.-")]))
def test_a_known_name_is_never_suspicious_however_it_is_written(name: str, write: object) -> None:
    assert callable(write)
    assert KNOWN.look_alike(write(name)) is None


@given(st.text(max_size=30))
def test_any_text_has_an_answer(text: str) -> None:
    found = KNOWN.look_alike(text)
    assert found is None or (found.known in KNOWN.names and canonicalize_name(text) not in KNOWN.names)


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz0123456789-", max_size=20))
def test_folding_leaves_plain_names_alone(text: str) -> None:
    assert fold(text) == text or text.startswith("xn-")


def test_mixed_scripts_are_named() -> None:
    found = KNOWN.look_alike("r\u0435quests")
    assert found is not None
    assert found.detail == "mixed scripts (LATIN, CYRILLIC)"


def test_short_names_are_not_taken_for_each_other() -> None:
    assert KnownNames(["six", "rq"]).look_alike("sux") is None
    assert KnownNames(["six", "rq"]).look_alike("pysix") is None


@pytest.mark.long
def test_detection_is_at_least_95_percent_in_every_family() -> None:
    for family, (seen, asked) in squats.detection(KNOWN, every=4).items():
        assert asked > 50, family
        assert seen / asked >= 0.95, (family, seen, asked)


@pytest.mark.slow
def test_few_known_names_are_near_each_other() -> None:
    near = squats.near(KNOWN)
    assert len(near) / len(KNOWN.names) < 0.15, near
    assert near["pyqt5"] == "pyqt6"


def test_known_names_are_enough_and_hold_what_localagent_locks() -> None:
    assert len(KNOWN.names) > 1000
    locked = set()
    for lock in (ROOT / "requirements").glob("*.txt"):
        locked |= {line.split("==")[0] for line in lock.read_text().splitlines() if "==" in line and line[0] != " "}
    assert locked <= KNOWN.names


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no name stands there"),
        ("# nothing", "no name stands there"),
        ("Flask", "'Flask' is not a normalised name"),
        ("a_b", "'a_b' is not a normalised name"),
        ("r\u0435quests", "is not a normalised name"),
        ("a " * 50_001, "more than 50,000 names"),
    ],
)
def test_a_wrong_list_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "known.txt"
    path.write_text(text)
    with pytest.raises(UsageFault, match=reason):
        load_known(path)
