"""Plots and data frames with the real libraries, where an interpreter has them: ours, or the one that is named.

`LOCALAGENT_TEST_RICH_PYTHON` names a virtual environment with matplotlib and pandas; without any the tests skip.
"""

import importlib.util
import os
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.jail_backends import KINDS, jail_by
from support.session_builder import Kept, kept

from localagent.app import Settings
from localagent.app.execute.run import code_of, execute
from localagent.domain.execution import Executed, Execution, Language
from localagent.domain.jailspec import JailLimits
from localagent.domain.outcome import JailOutcome
from localagent.jail.api import BackendKind
from localagent.text.secret_redaction import Sanitizer

LIMITS = JailLimits(wall_seconds=120.0, cpu_seconds=60.0, resident_bytes=768 << 20, processes=32)
NEEDED = ("matplotlib", "pandas")


@pytest.fixture(scope="module")
def python() -> str:
    named = os.environ.get("LOCALAGENT_TEST_RICH_PYTHON", "")
    if not named and not all(importlib.util.find_spec(name) for name in NEEDED):
        pytest.skip("no matplotlib and pandas here; name an environment that has them: LOCALAGENT_TEST_RICH_PYTHON")
    return named or sys.executable


@pytest.fixture(scope="module")
def place() -> Iterator[Kept]:
    with kept() as made:
        yield made


def run(text: str, kind: BackendKind, python: str, folder: Path) -> Executed:
    settings = Settings.from_environ({"HOME": str(folder), "TMPDIR": "/tmp"})
    request = Execution(limits=LIMITS, code=code_of(text.encode(), Language.PYTHON), python=python)
    return execute(request, settings, jail_by(kind), Sanitizer(), out=folder / "out")


def png_size(path: Path) -> tuple[int, int]:
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert data.endswith(b"IEND\xaeB`\x82")
    width, height = struct.unpack(">II", data[16:24])
    return width, height


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_figures_that_are_shown_or_saved_are_files(kind: BackendKind, python: str, tmp_path: Path) -> None:
    text = (
        "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.title('\u00fc')\nplt.show()\n"
        "figure, axes = plt.subplots(figsize=(2, 1), dpi=50)\naxes.bar([1], [2])\nfigure.savefig('own.png')\nplt.show()"
    )
    executed = run(text, kind, python, tmp_path)
    assert (executed.ending, executed.returncode) == (JailOutcome.EXITED, 0), executed.stderr
    assert executed.stdout == "[the figure is in figure-1.png]\n[the figure is in figure-2.png]\n"
    assert "Fontconfig" not in executed.stderr
    assert [f.name for f in executed.files] == ["figure-1.png", "figure-2.png", "own.png"]
    assert png_size(tmp_path / "out/figure-1.png") == (640, 480)
    assert png_size(tmp_path / "out/figure-2.png") == png_size(tmp_path / "out/own.png") == (100, 50)


@pytest.mark.slow
def test_frames_and_figures_of_a_session_are_files(place: Kept, python: str, tmp_path: Path) -> None:
    request, limits = {"python": python}, {"wall_seconds": 120.0, "resident_bytes": 768 << 20}
    text = "import pandas as pd\nt = pd.DataFrame({'a': [1, 2], 'b': ['x', '\u00fc']})\nt"
    first = place.step(text, name="rich", request=request, limits=limits, out=str(tmp_path))
    assert first.stdout.endswith("[the data frame is in frame-1.csv]\n"), first.stderr
    assert (tmp_path / "frame-1.csv").read_text() == ",a,b\n0,1,x\n1,2,\u00fc\n"
    second = place.step("t.plot()\nimport matplotlib.pyplot as plt\nplt.show()\nt.a", name="rich", out=str(tmp_path))
    assert [f.name for f in second.files] == ["figure-1.png", "frame-2.csv"], second.stderr
    assert png_size(tmp_path / "figure-1.png") == (640, 480)
    assert (tmp_path / "frame-2.csv").read_text() == ",a\n0,1\n1,2\n"
