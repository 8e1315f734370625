"""The locks: every file hashed, all locks agree, nothing in them says where packages come from."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
PIN = re.compile(
    r"^([a-z0-9-]+)(?:\[[a-z,]+\])?==([^\s;]+)(?: ; ([^\\]+))? ?\\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n?)+)",
    re.M,
)
ADDRESS = re.compile(r"://|--index|--extra-index|--find-links|--trusted-host|\bfile:|\b\w+\.(?:org|com|io|net)\b", re.I)


def pins(path: Path) -> dict[str, str]:
    return {name: version for name, version, _, _ in PIN.findall(path.read_text(encoding="utf-8"))}


def bare(requirement: str) -> str:
    return re.split(r"[\[<>=!~; ]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def wanted(path: Path) -> set[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return {bare(line) for line in lines if line and not line.startswith("#")}


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", LOCKS, ids=lambda p: p.name)
def test_nothing_but_hashed_pins(path: Path) -> None:
    assert pins(path)
    assert PIN.sub("", path.read_text(encoding="utf-8")).strip() == ""


@pytest.mark.parametrize("path", [*LOCKS, *sorted((ROOT / "requirements").glob("*.in"))], ids=lambda p: p.name)
def test_no_address_of_an_index(path: Path) -> None:
    assert ADDRESS.search(path.read_text(encoding="utf-8")) is None


def test_locks_agree_with_each_other() -> None:
    seen: dict[str, str] = {}
    for path in LOCKS:
        for name, version in pins(path).items():
            assert seen.setdefault(name, version) == version, f"{path.name}: {name}"


def test_every_wish_is_locked() -> None:
    for path in (ROOT / "requirements").glob("*.in"):
        locked = set(pins(path.with_suffix(".txt"))) | set(pins(ROOT / "requirements" / "llama.txt"))
        assert wanted(path) <= locked, path.name


def test_the_project_asks_for_what_is_locked() -> None:
    table = project()["project"]
    assert {bare(r) for r in table["dependencies"]} == wanted(ROOT / "requirements" / "runtime.in")
    for extra in ("cluster", "dev", "languages"):
        assert {bare(r) for r in table["optional-dependencies"][extra]} == wanted(ROOT / "requirements" / f"{extra}.in")
    assert {bare(r) for r in project()["build-system"]["requires"]} <= wanted(ROOT / "requirements" / "build.in")


def test_a_lock_names_many_files() -> None:
    """One hash would be one platform's: the compiled packages must carry those of several."""
    text = (ROOT / "requirements" / "runtime.txt").read_text(encoding="utf-8")
    hashes = {name: block.count("sha256:") for name, _, _, block in PIN.findall(text)}
    assert min(hashes[name] for name in ("libcst", "numpy", "pyyaml", "markupsafe")) > 20
