"""A kit's scripts end with 0 where their program said that it did its work, and nowhere else, whatever byte flips."""

import random
import sys
from pathlib import Path

import pytest
from support.kit_wrappers import SCRIPTS, SHELLS, Wrappers, believed, original

EACH = 30  # changes to each script under each shell; bench/kit.py tries more, behind a real Python


@pytest.mark.long
@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("name", SCRIPTS)
def test_each_says_what_its_program_said(tmp_path: Path, name: str, shell: str) -> None:
    for number, python in enumerate((None, sys.executable)):
        place = Wrappers(tmp_path / str(number), python)
        assert place.run(shell, name, original(name), "did it") == (0, True)
        assert place.run(shell, name, original(name), "refuses") == (1, False)
        assert place.run(shell, name, original(name), "is silent") == (1, False)
    gone = Wrappers(tmp_path / "gone", str(tmp_path / "no python"))
    assert gone.run(shell, name, original(name), "did it") == (127, False)


@pytest.mark.long
def test_no_changed_byte_makes_a_success(tmp_path: Path) -> None:
    assert list(believed(Wrappers(tmp_path / "place"), random.Random(7), EACH)) == []


def test_a_script_that_believes_any_end_is_found(tmp_path: Path) -> None:
    """What the scripts are kept from: a status that is handed on takes a Python that did nothing for one that did."""
    place = Wrappers(tmp_path / "place")
    handing_on = original("verify").split(b"case $? in")[0] + b"exit\n"
    assert place.run(SHELLS[0], "verify", handing_on, "is silent") == (0, False)
    for option in (b"-h", b"-V"):
        flipped = handing_on.replace(b"-B", option)
        assert place.run(SHELLS[0], "verify", flipped, "did it") == (0, False)
        flipped = original("verify").replace(b"-B", option)
        assert place.run(SHELLS[0], "verify", flipped, "did it") == (1, False)
