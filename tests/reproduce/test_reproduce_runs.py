"""Real runs: a test is reduced and still fails alike in a jail, an order is found, and the tree stays as it was."""

from pathlib import Path

import pytest

from localagent.app import Settings
from localagent.app.reproduce.request import ReproduceRequest
from localagent.app.reproduce.run import run_reproduce
from localagent.domain.reproduction import FlakyCause, ReproductionStatus
from localagent.domain.task import Event
from localagent.report.reproduce_report import reproduction_text

pytestmark = pytest.mark.long
SHOP = "def parse(text):\n    return dict(line.split('=') for line in text.splitlines())\n"
TESTS = """\
import pytest
from shop import parse


@pytest.fixture
def text():
    return "a=1\\nb=2\\nbroken\\nc=3\\n"


def test_other():
    assert parse("a=1") == {"a": "1"}


def test_parse(text):
    unused = [1, 2, 3]
    values = parse(text)
    assert len(values) == 3
"""
ORDER = "import shop\n\ndef test_first():\n    pass\n\n"
ORDER += "def test_adds():\n    shop.parse = None\n\ndef test_last():\n    assert shop.parse\n"


class Silent:
    def emit(self, event: Event) -> None:
        return None


def _tree(repo: Path, files: dict[str, str]) -> dict[str, bytes]:
    for name, text in files.items():
        (repo / name).write_text(text)
    return {p.name: p.read_bytes() for p in repo.iterdir()}


def test_a_crash_is_reduced_with_its_data_and_fails_alike_from_nothing(tmp_path: Path) -> None:
    before = _tree(tmp_path, {"shop.py": SHOP, "test_shop.py": TESTS})
    request = ReproduceRequest(repo=tmp_path, target="test_shop.py::test_parse", max_seconds=120, runs=2)
    found = run_reproduce(request, Settings.from_environ(), Silent())
    assert found.status is ReproductionStatus.REPRODUCED
    assert found.signature is not None
    assert (found.signature.exception, found.signature.path) == ("ValueError", "shop.py")
    assert b"test_other" not in found.file
    assert b"unused" not in found.file
    assert b"a=1" not in found.file
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_a_test_whose_outcome_never_changes_is_not_called_flaky(tmp_path: Path) -> None:
    _tree(tmp_path, {"test_steady.py": "def test_steady():\n    assert 1 == 2\n"})
    request = ReproduceRequest(repo=tmp_path, target="test_steady.py::test_steady", flaky=True, runs=4, max_seconds=20)
    found = run_reproduce(request, Settings.from_environ(), Silent())
    assert found.flaky is not None
    assert (found.flaky.cause, found.status, found.exit) == (FlakyCause.NONE, ReproductionStatus.NOT_FLAKY, 1)
    assert reproduction_text(found).startswith("test_steady.py::test_steady: not-flaky\n")


def test_order_dependence_names_the_test_that_it_takes(tmp_path: Path) -> None:
    before = _tree(tmp_path, {"shop.py": SHOP, "test_order.py": ORDER})
    request = ReproduceRequest(repo=tmp_path, target="test_order.py::test_last", flaky=True, runs=12, max_seconds=200)
    found = run_reproduce(request, Settings.from_environ(), Silent())
    assert found.flaky is not None
    assert (found.flaky.cause, found.flaky.polluters) == (FlakyCause.ORDER, ("test_order.py::test_adds",))
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before
