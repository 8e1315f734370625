"""What is said where nothing can be collected."""

import shutil
import venv
from pathlib import Path

import pytest
from support.fix_builder import home

from localagent.domain.outcome import Failure
from localagent.verify.baseline.test_discovery import declared_settings, no_pytest, refusal_answer
from localagent.verify.worker.worker_messages import CollectionRefusal, CollectionRefused

UV = "home = /usr/bin\nuv = 0.13.9\n"


def _python(folder: Path) -> str:
    """An interpreter's name in an environment that uv made, which holds no pip."""
    (folder / ".venv").mkdir()
    (folder / ".venv" / "pyvenv.cfg").write_text(UV, "utf-8")
    return str(folder / ".venv" / "bin" / "python")


def test_missing_plugins_are_named_once_with_the_command_that_installs_them(tmp_path: Path) -> None:
    text = (
        "ERROR: usage: pytest [options]\n"
        "pytest: error: unrecognized arguments: --cov=shop --cov-report html --cov-report term -n2 tests/test_cart.py\n"
    )
    refused = CollectionRefused(why=CollectionRefusal.USAGE, text=text, failure=Failure(exception="", message=""))
    python = _python(tmp_path)
    said = refusal_answer(refused, python)
    assert str(said).endswith("a plugin that is missing: --cov=shop --cov-report -n2")
    assert f"`uv pip install --python {python} pytest-cov pytest-xdist`" in said.remedy


def test_pytest_is_brought_in_as_the_environment_and_the_project_have_it(tmp_path: Path) -> None:
    python = _python(tmp_path)
    assert f"`uv pip install --python {python} pytest`" in no_pytest(python, tmp_path).remedy
    (tmp_path / "pyproject.toml").write_text('[project.optional-dependencies]\ntest = ["pytest"]\n', "utf-8")
    assert f"`uv pip install --python {python} -e '.[test]'`" in no_pytest(python, tmp_path).remedy


def test_the_settings_of_a_manage_py_beside_the_tests_are_theirs_and_an_examples_are_not(tmp_path: Path) -> None:
    for folder, module in (("shop_tests", "test_settings"), ("examples/a", "a.settings")):
        (tmp_path / folder).mkdir(parents=True)
        text = f"os.environ.setdefault('DJANGO_SETTINGS_MODULE', '{module}')\n"
        (tmp_path / folder / "manage.py").write_text(text, "utf-8")
    found = declared_settings(tmp_path, ["shop_tests/cart/tests.py"])
    assert found == ("test_settings", "shop_tests/manage.py")
    assert declared_settings(tmp_path, ["tests/test_a.py"]) is None


@pytest.mark.long
def test_a_copy_of_the_project_in_its_environment_hides_no_edit() -> None:
    files = {
        "src/shop/__init__.py": "",
        "src/shop/core.py": "def add(a, b):\n    return a - b\n",
        "tests/test_core.py": "import unittest\nfrom shop.core import add\n\n\nclass Adds(unittest.TestCase):\n"
        "    def test_adds(self):\n        self.assertEqual(add(1, 2), 3)\n"
        "\n    def test_zero(self):\n        self.assertEqual(add(4, 4), 8)\n",
    }
    with home(files) as h:
        venv.create(h.repo / ".venv", symlinks=True)
        (site,) = (h.repo / ".venv").glob("lib/python3*/site-packages")
        shutil.copytree(h.repo / "src/shop", site / "shop")
        ran = h.fix("--assume")
        assert ran.code == 0, ran
        assert "the environment holds a copy of the project: put on PYTHONPATH: src" in ran.report["warnings"]
        assert "return a + b" in ran.report["patch"]
