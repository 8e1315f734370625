"""The wheel works in an empty folder with the checkout gone."""

import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(*argv: str | Path, cwd: Path) -> str:
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(cwd)}
    ended = subprocess.run(argv, cwd=cwd, env=environ, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy of the tracked files, which is then deleted."""
    work = tmp_path_factory.mktemp("wheel")
    copy = work / "a copy"
    listed = run("git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", cwd=ROOT)
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, copy / name)
    (copy / "models" / "weights.gguf").write_bytes(b"GGUF")
    pip = (sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-index", "--no-build-isolation", "--no-cache-dir")
    run(*pip, "--wheel-dir", work, copy, cwd=work)
    shutil.rmtree(copy)
    return next(work.glob("*.whl"))


@pytest.mark.slow
def test_carries_data_but_no_weights(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "localagent/_data/policies/default.toml" in names
    assert "localagent/_data/policies/known-packages.txt" in names
    assert any(name.startswith("localagent/_data/models/") for name in names)
    assert any(name.startswith("localagent/_data/sandbox/") for name in names)
    assert not [name for name in names if name.endswith(".gguf") or name.startswith(("tests", "bench", "examples"))]
    assert any(name.endswith("licenses/LICENSE") for name in names)


@pytest.mark.slow
def test_works_in_an_empty_folder(wheel: Path, tmp_path: Path) -> None:
    home = tmp_path / "environment"
    venv.create(home, with_pip=False)
    python = home / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index")
    run(*pip, wheel, cwd=tmp_path)
    # Dependencies come from the environment of this test; a plain path line does not bring its editable install along.
    site = next((home / "lib").glob("python*/site-packages"))
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    empty = tmp_path / "empty"
    empty.mkdir()
    where = run(python, "-c", "import localagent; print(localagent.__file__)", cwd=empty)
    assert Path(where.strip()).is_relative_to(home)
    tool = home / "bin" / "localagent"
    assert run(tool, "--version", cwd=empty).startswith("localagent ")
    assert run(tool, "policy", "show", cwd=empty).strip()
    assert run(tool, "model", "list", cwd=empty).strip()
