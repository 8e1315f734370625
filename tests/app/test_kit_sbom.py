"""The bill of a kit: what its own wheels install, by the digests that it carries, and what it carries beside."""

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from support.kit_builder import MODEL, payload, wheel

from localagent.app.inventory.kit_sbom import bill_of_kit
from localagent.cli.main import main
from localagent.deps.archive import WheelRefused
from localagent.errors import UsageFault

MANIFEST = """schema = 1
name = "small"
file = "m.gguf"
bytes = {size}
sha256 = "{sha256}"
licence = "Apache-2.0"
context_tokens = 64
dialect = "plain"
quantization = "Q4_1"
default = true
[origin]
upstream = "its maker's page"
"""
NEEDS = """License-Expression: MIT
Requires-Dist: runs>=1
Requires-Dist: other-python; python_version < "3.0"
Requires-Dist: other-system; sys_platform == "win32"
Requires-Dist: extras; extra == "more"
"""
INSIDE = json.dumps(
    {"components": [{"name": "runs"}, {"name": "libthing", "version": "2", "purl": "pkg:deb/x/libthing"}]}
)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def locked(kit: Path, *wheels: Path) -> None:
    """The lock of what an installation gets."""
    rows = [(*path.name.split("-")[:2], digest(path)) for path in wheels]
    lines = (f"{name}=={version} --hash=sha256:{sha}\n" for name, version, sha in rows)
    (kit / "locks" / "installed.txt").write_text("".join(lines), encoding="utf-8")


@pytest.fixture
def kit(tmp_path: Path) -> Path:
    """Localagent that needs `runs`, beside it a wheel for tests, pip, the source and a model."""
    folder = tmp_path / "a kit"
    payload(folder, "1.0")
    wheels = folder / "wheels"
    own = wheel(wheels, "localagent", "1.0", {"localagent/__init__.py": ""}, NEEDS)
    runs = wheel(
        wheels, "runs", "1.5", {"runs.py": "", "runs-1.5.dist-info/sboms/made.cdx.json": INSIDE}, "Author: Somebody\n"
    )
    wheel(wheels, "tests_only", "3", {"tests_only.py": ""}, "Requires-Dist: runs\n")
    locked(folder, own, runs)
    (folder / "models" / "small.toml").write_text(
        MANIFEST.format(size=len(MODEL), sha256=hashlib.sha256(MODEL).hexdigest()), encoding="utf-8"
    )
    (folder / "source").mkdir()
    (folder / "source" / "localagent-1.tar.gz").write_bytes(b"the checkout")
    return folder


def billed(kit: Path) -> dict[str, Any]:
    found = json.loads(bill_of_kit(kit))
    assert isinstance(found, dict)
    return found


def by_name(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {c["name"]: c for c in [document["metadata"]["component"], *document["components"]]}


@pytest.mark.long
def test_fits_the_schema_strictly(kit: Path) -> None:
    text = bill_of_kit(kit)
    validator = JsonStrictValidator(SchemaVersion.V1_6)
    assert validator.validate_str(text) is None
    assert validator.validate_str(text.replace('"excluded"', '"left out"')) is not None


def test_each_package_is_the_wheel_that_the_kit_carries(kit: Path) -> None:
    parts = by_name(billed(kit))
    carried = {path.name.split("-")[0].replace("_", "-"): path for path in (kit / "wheels").iterdir()}
    assert set(carried) == {"localagent", "runs", "tests-only", "pip"} < set(parts)
    for name, path in carried.items():
        (hashed,), (file,) = parts[name]["hashes"], parts[name]["externalReferences"]
        assert (hashed["content"], file["url"]) == (digest(path), f"wheels/{path.name}")
    assert parts["runs"]["version"] == "1.5"
    assert parts["runs"]["supplier"] == {"name": "Somebody"}
    assert [(c["name"], c["version"]) for c in parts["runs"]["components"]] == [("libthing", "2")]
    assert parts["localagent"]["licenses"] == [{"license": {"id": "MIT"}}]


def test_what_is_installed_is_told_from_what_is_carried(kit: Path) -> None:
    document = billed(kit)
    scopes = {name: part.get("scope") for name, part in by_name(document).items() if "scope" in part}
    assert scopes == {
        "localagent": "required",
        "runs": "required",
        "tests-only": "excluded",
        "pip": "excluded",
        "source/localagent-1.tar.gz": "excluded",
    }
    graph = {d["ref"]: d.get("dependsOn", []) for d in document["dependencies"]}
    assert graph["pkg:pypi/localagent@1.0"] == ["model:small", "pkg:pypi/runs@1.5"]
    assert by_name(document)["source/localagent-1.tar.gz"]["hashes"][0]["content"] == digest(
        kit / "source" / "localagent-1.tar.gz"
    )


def test_the_model_is_the_file_that_the_kit_carries(kit: Path) -> None:
    model = by_name(billed(kit))["small"]
    assert model["type"] == "machine-learning-model"
    assert model["hashes"][0]["content"] == digest(kit / "models" / "m.gguf")
    (kit / "models" / "m.gguf").write_bytes(MODEL[::-1])
    with pytest.raises(UsageFault, match=r"models/m\.gguf is not the file that its manifest names"):
        bill_of_kit(kit)
    (kit / "models" / "small.toml").unlink()
    with pytest.raises(UsageFault, match=r"no manifest speaks of models/m\.gguf"):
        bill_of_kit(kit)


def test_one_kit_one_text_wherever_it_lies(kit: Path, tmp_path: Path) -> None:
    text = bill_of_kit(kit)
    other = tmp_path / "elsewhere" / "deeper"
    shutil.copytree(kit, other, copy_function=shutil.copyfile)
    os.utime(other / "kit.json", (0, 0))
    assert bill_of_kit(other) == text
    assert str(tmp_path) not in text
    assert "record-sha256" not in text
    about = json.loads((other / "kit.json").read_text())
    (other / "kit.json").write_text(json.dumps({**about, "commit_time": about["commit_time"] + 1}))
    assert billed(other)["serialNumber"] != json.loads(text)["serialNumber"]


def test_a_package_that_an_installation_would_miss_is_named(kit: Path) -> None:
    own, runs = (next((kit / "wheels").glob(f"{name}-*")) for name in ("localagent", "runs"))
    locked(kit, own)
    with pytest.raises(UsageFault, match=r"needed: runs \(of localagent\)"):
        bill_of_kit(kit)
    locked(kit, runs)
    with pytest.raises(UsageFault, match="needed: localagent"):
        bill_of_kit(kit)


def test_a_lock_and_wheels_that_do_not_agree(kit: Path) -> None:
    lock = kit / "locks" / "installed.txt"
    text = lock.read_text()
    for damage, reason in (
        (text.replace("sha256:", "sha256:0"), "a line that no kit has"),
        (text + f"gone==1 --hash=sha256:{'0' * 64}\n", "no wheel of the kit is the file that gone 1 names"),
    ):
        lock.write_text(damage)
        with pytest.raises(UsageFault, match=reason):
            bill_of_kit(kit)
    lock.unlink()
    with pytest.raises(UsageFault, match=r"installed.txt: No such file"):
        bill_of_kit(kit)


def test_a_wheel_that_cannot_be_read_or_is_of_another_is_refused(kit: Path) -> None:
    wheels = kit / "wheels"
    found = next(wheels.glob("tests_only-*"))
    found.rename(wheels / found.name.replace("tests_only", "another"))
    with pytest.raises(UsageFault, match="its metadata is of 'tests_only'"):
        bill_of_kit(kit)
    (wheels / found.name.replace("tests_only", "another")).write_bytes(b"no archive")
    with pytest.raises(WheelRefused, match="not a ZIP file"):
        bill_of_kit(kit)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"commit_time": "soon"}', "[" * 100_000])
def test_a_folder_that_is_no_kit(kit: Path, text: str) -> None:
    (kit / "kit.json").write_text(text)
    with pytest.raises(UsageFault, match=r"kit\.json"):
        bill_of_kit(kit)


def test_the_command(kit: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sbom", "--kit", str(kit), "--out", str(tmp_path / "out.json")]) == 0
    assert (tmp_path / "out.json").read_text(encoding="utf-8") == bill_of_kit(kit)
    assert main(["sbom", "--kit", str(tmp_path / "nowhere")]) == 2
    assert "what to do" in capsys.readouterr().err
