"""A repository that has mypy, ruff or bandit say "nothing found": in `batch` and the hook nobody believes it."""

import contextlib
import sys
from collections.abc import Iterator, Mapping

import pytest
from support.fix_builder import CHECKOUT
from support.verify_builder import scratch_home

from localagent.domain.paths import RepoPath
from localagent.jail.api import open_jail
from localagent.jail.limits.profile import load
from localagent.verify.checks.static_tools import Silence, lint, probe_name, type_errors
from localagent.verify.worker.jail_pool import JailPool
from localagent.verify.worker.worker_spec import WorkerSpec, WorkerUse

WRONG = "import os\n\n\ndef f() -> int:\n    return ''\n\n\neval(input())\n"
CLEAN = "def f() -> int:\n    return 1\n"
EVIL = "import os\n\nprint('Success: no issues found in 1 source file')\nos._exit(0)\n"
EVERY = 'module = "*"\nignore_errors = true\n'
SECONDS = 60.0


@contextlib.contextmanager
def jails_of(files: Mapping[str, str]) -> Iterator[JailPool]:
    with scratch_home() as root:
        for path, text in files.items():
            (root / "store" / path).parent.mkdir(parents=True, exist_ok=True)
            (root / "store" / path).write_text(text)
        limits = {use: load(CHECKOUT / "sandbox" / f"{use.value}.toml").limits for use in WorkerUse}
        place = WorkerSpec.make(
            jail=open_jail(),
            repo=str(root / "repo"),
            store=root / "store",
            scratch=root,
            python=sys.executable,
            limits=limits,
        )
        jails = JailPool(place)
        try:
            yield jails
        finally:
            jails.cancel()
            jails.close()


@pytest.mark.long
@pytest.mark.parametrize(
    "sabotage",
    [
        {"mypy.ini": "[mypy]\nignore_errors = True\n"},
        {"mypy.ini": "[mypy]\nfiles = pkg\n[mypy-*]\nignore_errors = True\n"},
        {".mypy.ini": "[mypy]\nexclude = .*\n"},
        {"setup.cfg": "[mypy]\nfiles = pkg\nexclude = .*\n"},
        {"pyproject.toml": '[tool.mypy]\nfiles = ["pkg"]\nignore_errors = true\n'},
        {"pyproject.toml": '[tool.mypy]\npackages = "pkg"\n[[tool.mypy.overrides]]\n' + EVERY},
        {"mypy.ini": "[mypy]\nfollow_imports = skip\nfiles = no/such/*.py\n"},
        {"typing.py": "Any = int\n"},
        {"builtins.pyi": "from typing import Any\nint: Any\nstr: Any\n"},
    ],
    ids=lambda files: " ".join(files),
)
def test_mypy_that_was_kept_from_judging_is_not_believed(sabotage: Mapping[str, str]) -> None:
    with jails_of({"pkg/__init__.py": "", "pkg/m.py": WRONG, **sabotage}) as jails:
        found = type_errors(jails, {})
    if isinstance(found, Silence):
        assert "is not believed" in found.why or "mypy does not run on the tree" in found.why
    else:  # it judged all the same
        assert RepoPath("pkg/m.py") in {one.path for one in found}


@pytest.mark.long
@pytest.mark.parametrize(
    "harmless",
    [
        {"mypy/__init__.py": "", "mypy/__main__.py": EVIL},
        {"ast.py": EVIL, "json.py": EVIL, "sitecustomize.py": EVIL, "usercustomize.py": EVIL},
        {"mypy.ini": "[mypy]\nplugins = evil.py\n", "evil.py": EVIL},
        {"mypy.ini": "[mypy]\nfiles = pkg\n"},
        {"pyproject.toml": '[tool.mypy]\nmodules = ["pkg.m"]\n'},
        {"pyproject.toml": '[tool.mypy]\npackages = ["pkg"]\n'},
        {"setup.cfg": "[mypy]\nfiles =\n    pkg,\n    other\n", "other/__init__.py": ""},
    ],
    ids=lambda files: " ".join(files),
)
def test_mypy_judges_what_it_is_configured_to_and_none_of_ours_is_told(harmless: Mapping[str, str]) -> None:
    files = {"pkg/__init__.py": "", **harmless}
    with jails_of({**files, "pkg/m.py": WRONG}) as jails:
        found = type_errors(jails, {})
    assert not isinstance(found, Silence), found
    assert RepoPath("pkg/m.py") in {one.path for one in found}
    assert not [one for one in found if "localagent" in one.path]
    with jails_of({**files, "pkg/m.py": CLEAN}) as jails:
        found = type_errors(jails, {})
    assert not isinstance(found, Silence), found
    assert RepoPath("pkg/m.py") not in {one.path for one in found}


@pytest.mark.long
@pytest.mark.parametrize(
    "sabotage",
    [
        {"ruff.toml": 'exclude = ["*"]\n'},
        {"pyproject.toml": '[tool.ruff]\nextend-exclude = ["pkg"]\n'},
        {".ruff.toml": 'include = ["*.nothing"]\nforce-exclude = true\nexclude = ["*.py"]\n'},
        {"pkg/ruff.toml": 'exclude = ["*.py"]\n'},
        {"ruff.toml": 'required-version = "==0.0.1"\n'},
    ],
    ids=lambda files: " ".join(files),
)
def test_ruff_that_was_kept_from_judging_is_not_believed(sabotage: Mapping[str, str]) -> None:
    with jails_of({"pkg/__init__.py": "", "pkg/m.py": WRONG, **sabotage}) as jails:
        found = lint(jails, "ruff", [RepoPath("pkg/m.py")], {}, seconds=SECONDS)
    assert isinstance(found, Silence), found
    assert "ruff finds nothing and is not believed" in found.why or "ruff does not run on the tree" in found.why


@pytest.mark.long
@pytest.mark.parametrize("tool", ["ruff", "bandit"])
@pytest.mark.parametrize(
    "harmless",
    [
        {},
        {".bandit": "[bandit]\nexclude = *\nskips = B307\n", "bandit.yaml": "skips: ['B307']\n"},
        {"pyproject.toml": '[tool.bandit]\nexclude_dirs = ["."]\nskips = ["B307"]\n'},
        {"ruff/__main__.py": EVIL, "bandit/__main__.py": EVIL, "yaml.py": EVIL, "ast.py": EVIL, "typing.py": EVIL},
    ],
    ids=lambda files: " ".join(files),
)
def test_ruff_and_bandit_judge_and_none_of_ours_is_told(tool: str, harmless: Mapping[str, str]) -> None:
    paths = [RepoPath("pkg/m.py"), RepoPath("top.py")]
    with jails_of({"pkg/__init__.py": "", "pkg/m.py": WRONG, "top.py": CLEAN, **harmless}) as jails:
        found = lint(jails, tool, paths, {}, seconds=SECONDS)
        clean = lint(jails, tool, [RepoPath("top.py")], {}, seconds=SECONDS)
    assert not isinstance(found, Silence), found
    assert {one.path for one in found} == {RepoPath("pkg/m.py")}
    assert clean == ()


def test_a_name_of_ours_is_not_foreseen() -> None:
    assert len({probe_name() for _ in range(9)}) == 9
