"""Environments that tools keep outside the tree, each planted in a home of its own as its tool would make it."""

import base64
import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from localagent.app.fix.environment import own_python
from localagent.repo.outside_environments import outside_environments, shim_target


def digest(kind: str, text: object) -> str:
    return base64.urlsafe_b64encode(hashlib.new(kind, str(text).encode()).digest())[:8].decode()


def plant(folder: Path, *, tests: bool = True) -> Path:
    """An environment that looks like one."""
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch(mode=0o755)
    (folder / "lib/python3.12/site-packages" / ("_pytest" if tests else "x")).mkdir(parents=True)
    return python


TOOLS: dict[str, tuple[dict[str, str], Callable[[Path, Path], Path]]] = {
    "uv": ({"uv.lock": ""}, lambda home, repo: home / "uv-env"),
    "poetry": (
        {"pyproject.toml": '[tool.poetry]\nname = "shop"\n'},
        lambda home, repo: home / f".cache/pypoetry/virtualenvs/shop-{digest('sha256', repo)}-py3.12",
    ),
    "pdm": (
        {"pdm.lock": ""},
        lambda home, repo: home / f".local/share/pdm/venvs/{repo.name}-{digest('md5', repo)}-3.12",
    ),
    "hatch": (
        {"pyproject.toml": "[tool.hatch.envs.default]\n"},
        lambda home, repo: home / f".local/share/hatch/env/virtual/shop/{digest('sha256', repo)}/shop",
    ),
    "pipenv": (
        {"Pipfile": ""},
        lambda home, repo: home / f".local/share/virtualenvs/shop-{digest('sha256', repo / 'Pipfile')}",
    ),
    "pixi": ({"pixi.toml": ""}, lambda home, repo: repo / ".pixi/envs/test"),
    "conda": ({"environment.yml": "name: shop-dev # ours\n"}, lambda home, repo: home / "miniforge3/envs/shop-dev"),
    "tox": ({"tox.ini": "[testenv]\n"}, lambda home, repo: repo / ".tox/py312"),
    "nox": ({"noxfile.py": ""}, lambda home, repo: repo / ".nox/tests-3-12"),
    "pyenv": ({".python-version": "3.12\n"}, lambda home, repo: home / ".pyenv/versions/3.12.4"),
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    (home / "repo").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("UV_PROJECT_ENVIRONMENT", str(home / "uv-env"))
    for name in ("POETRY_CACHE_DIR", "WORKON_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "CONDA_PREFIX", "PYENV_ROOT"):
        monkeypatch.delenv(name, raising=False)
    return home


@pytest.mark.parametrize("tool", TOOLS)
def test_an_environment_outside_the_tree_is_found_or_what_was_looked_for_is_said(tool: str, home: Path) -> None:
    repo = home / "repo"
    files, where = TOOLS[tool]
    for name, text in files.items():
        (repo / name).write_text(text)
    (looked,) = outside_environments(repo, home, {"UV_PROJECT_ENVIRONMENT": str(home / "uv-env")})
    assert (looked.tool, looked.found, bool(looked.searched)) == (tool, (), True)
    python = plant(where(home, repo))
    assert own_python(repo) == str(python)
    for name in files:
        (repo / name).unlink()
    assert own_python(repo) is None  # a project that does not use the tool gets none of its environments


def test_variables_of_the_user_move_the_folders(home: Path) -> None:
    repo = home / "repo"
    (repo / "poetry.lock").touch()
    python = plant(home / f"elsewhere/virtualenvs/shop-{digest('sha256', repo)}-py3.9")
    assert outside_environments(repo, home, {"POETRY_CACHE_DIR": str(home / "elsewhere")})[0].found == (python,)
    assert outside_environments(repo, home, {"POETRY_CACHE_DIR": "elsewhere"})[0].found == ()


def test_an_environment_of_a_linter_runs_no_tests(home: Path) -> None:
    repo = home / "repo"
    (repo / "setup.cfg").write_text("[tox:tox]\n")
    plant(repo / ".tox/lint", tests=False)
    plant(repo / ".tox/.pkg")
    assert own_python(repo) is None
    for name in ("py310", "py313", "pypy3"):  # of a project without pytest
        plant(repo / f".tox/{name}", tests=False)
    assert own_python(repo) == str(repo / ".tox/py313/bin/python")


def test_what_can_run_tests_comes_first_then_the_newest_python(home: Path) -> None:
    repo = home / "repo"
    (repo / "poetry.lock").touch()
    at = home / ".cache/pypoetry/virtualenvs"
    name = f"shop-{digest('sha256', repo)}-py"
    new, old, bare = (plant(at / f"{name}{v}", tests=v != "3.13") for v in ("3.12", "3.9", "3.13"))
    assert outside_environments(repo, home, {})[0].found == (new, old, bare)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (".python-version", "../../secret\n/home/secret\n..\n"),
        (".python-version", "*\n"),
        ("environment.yml", "name: ../../../secret\n"),
        ("environment.yml", "name: '*'\n"),
    ],
)
def test_a_repository_names_no_folder_of_its_choice(name: str, text: str, home: Path) -> None:
    plant(home / "secret")
    plant(home / ".pyenv/versions/3.12.4")
    plant(home / "miniforge3/envs/other")
    (home / ".pyenv/versions/secret").symlink_to(home / "secret")
    (home / "repo" / name).write_text(text)
    assert own_python(home / "repo") is None


def test_a_pyenv_without_pytest_is_not_taken_and_a_shim_leads_to_its_version(home: Path) -> None:
    repo = home / "repo"
    bare = plant(home / ".pyenv/versions/3.11.9", tests=False)
    (repo / ".python-version").write_text("3.11.9\n")
    assert own_python(repo) is None
    shim = home / ".pyenv/shims/python3"
    assert shim_target(shim, repo, home, {}) == bare
    (repo / ".python-version").unlink()
    assert shim_target(shim, repo, home, {}) == shim
    (home / ".pyenv/version").write_text("3.11\n")
    assert shim_target(shim, repo, home, {}) == bare


def test_a_member_of_a_workspace_of_uvs_runs_in_the_workspaces_environment(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("UV_PROJECT_ENVIRONMENT")
    root = home / "repo"
    member = root / "packages/shop"
    member.mkdir(parents=True)
    (root / ".git").mkdir()
    python = plant(root / ".venv")
    assert own_python(member) is None  # any folder with an environment above is no workspace
    (root / "pyproject.toml").write_text('[tool.uv.workspace]\nmembers = ["packages/*"]\n')
    assert own_python(member) == str(python)
    (member / ".git").mkdir()
    assert own_python(member) is None  # a repository of its own, which only lies there
