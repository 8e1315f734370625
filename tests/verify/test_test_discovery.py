"""What is said where nothing can be collected."""

from pathlib import Path

from localagent.domain.outcome import Failure
from localagent.verify.baseline.test_discovery import no_pytest, refusal_answer
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
