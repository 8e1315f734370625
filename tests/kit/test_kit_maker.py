"""Making a kit: what it needs is read off the wheels, every component brings its licence, the key stays the maker's."""

import base64
import hashlib
import json
import sys
import zipfile
from pathlib import Path

import pytest
from support.kit_builder import MAKER, PUBLIC, copied, make_kit, payload, script
from support.kit_builder import wheel as builder_wheel

maker, seal, licences, bootstrap = (script(name) for name in ("make_kit", "kit_seal", "kit_licences", "bootstrap"))
shim = script("chat_shim")


def wheel(folder: Path, name: str, files: dict[str, bytes]) -> Path:
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / name, "w") as packed:
        for path, data in files.items():
            packed.writestr(path, data)
    return folder / name


def metadata(licence: str) -> bytes:
    return f"Metadata-Version: 2.4\nName: Some_Part\nVersion: 1\nLicense-Expression: {licence}\n".encode()


def test_the_oldest_c_library_is_read_off_tags_and_symbols(tmp_path: Path) -> None:
    pure = wheel(tmp_path, "a-1-py3-none-any.whl", {})
    tagged = wheel(tmp_path, "b-1-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl", {})
    assert maker.least_glibc([pure]) == "2.17"
    assert maker.least_glibc([pure, tagged]) == "2.27"
    made = wheel(tmp_path, "c-1-py3-none-linux_x86_64.whl", {"c/lib.so": b"GLIBC_2.4 GLIBC_2.34\0 GLIBC_PRIVATE"})
    assert maker.least_glibc([pure, tagged, made]) == "2.34"


def test_a_component_without_a_licence_text_stops_the_making(tmp_path: Path) -> None:
    name = "some_part-1-py3-none-any.whl"
    info = "some_part-1.dist-info"
    wheel(tmp_path / "wheels", name, {f"{info}/METADATA": metadata("Strange-1.0")})
    with pytest.raises(bootstrap.SetupError, match="carries no licence text"):
        licences.licences(tmp_path / "kit", tmp_path / "wheels")


def test_texts_and_the_offer_of_source(tmp_path: Path) -> None:
    name = "some_part-1-py3-none-any.whl"
    files = {
        "some_part-1.dist-info/METADATA": metadata("LGPL-2.0-or-later"),
        "some_part-1.dist-info/licenses/COPYING": b"short notice",
        "some_part.libs/libnl-3-1abc.so.200": b"",
    }
    wheel(tmp_path / "wheels", name, files)
    licences.licences(tmp_path / "kit", tmp_path / "wheels")
    texts = {path.name for path in (tmp_path / "kit" / "licences" / "some-part-1").iterdir()}
    assert texts == {"00-COPYING", "LGPL-2.0-or-later.txt", "LGPL-2.1-only.txt"}
    offer = (tmp_path / "kit" / "licences" / "SOURCES.txt").read_text()
    assert "Some_Part 1 (LGPL-2.0-or-later)" in offer
    assert "holds the library libnl-3-1abc.so.200 LGPL-2.1-only" in offer


def test_the_makers_key_is_made_once_and_must_be_kept(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "maker.pem"
    first = seal.maker_key(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert seal.maker_key(path).public_key() == first.public_key()
    path.chmod(0o644)
    with pytest.raises(bootstrap.SetupError, match="can be read by others"):
        seal.maker_key(path)
    path.chmod(0o600)
    path.write_text("words")
    with pytest.raises(bootstrap.SetupError, match="not an unencrypted private key"):
        seal.maker_key(path)


def test_an_archive_is_the_same_again(tmp_path: Path) -> None:
    kit = make_kit(tmp_path / "kit", "1")
    first = seal.packed(kit, MAKER, 1_000_000_000).read_bytes()
    (kit / "docs" / "kit.md").touch()
    assert seal.packed(kit, MAKER, 1_000_000_000).read_bytes() == first
    script("verify").checked_archive(tmp_path / "kit.tar", PUBLIC)


def test_setup_takes_a_kit_only_when_it_is_sound(tmp_path: Path) -> None:
    kit = make_kit(tmp_path / "kit", "1")
    sound = bootstrap.verified_kit(kit, PUBLIC)
    taken = bootstrap.taken_kit(sound, tmp_path / "taken")
    assert sorted(p.name for p in taken.rglob("*.whl")) == sorted(p.name for p in (kit / "wheels").iterdir())
    model = kit / "models" / "m.gguf"
    model.write_bytes(model.read_bytes()[::-1])
    with pytest.raises(bootstrap.SetupError, match="changed after it was verified"):
        bootstrap.taken_kit(sound, tmp_path / "not taken")
    model.write_bytes(model.read_bytes()[::-1])
    with pytest.raises(bootstrap.SetupError, match="whose kit is it"):
        bootstrap.verified_kit(kit, "")
    spoiled = copied(kit, tmp_path / "spoiled")
    (spoiled / "wheels" / "more.whl").write_bytes(b"")
    with pytest.raises(bootstrap.SetupError, match="nothing of it was used"):
        bootstrap.verified_kit(spoiled, PUBLIC)


def test_every_program_of_a_kit_is_carried_and_vouched_for(tmp_path: Path) -> None:
    programs = {path.name for path in seal.PROGRAMS.glob("*.py")}
    assert {*seal.NEIGHBOURS, "install.py"} == programs
    kit = make_kit(tmp_path / "kit", "1")
    assert {path.name for path in (kit / "program").iterdir()} == {*programs, "localagent-kit"}
    text = (kit / "program" / "install.py").read_text(encoding="utf-8")
    for name in seal.NEIGHBOURS:
        assert f"{name}={hashlib.sha256((kit / 'program' / name).read_bytes()).hexdigest()}" in text


def test_llama_is_never_built_for_one_processor() -> None:
    assert maker.PORTABLE["GGML_NATIVE"] == "OFF"
    assert maker.PORTABLE["GGML_CPU_ALL_VARIANTS"] == "ON"


def test_a_kit_says_what_itself_installs_not_what_its_maker_has(tmp_path: Path) -> None:
    kit = tmp_path / "kit"
    payload(kit, "1")
    (kit / "models" / "m.gguf").unlink()
    builder_wheel(kit / "wheels", "localagent", "1", {"localagent.py": ""}, "Requires-Dist: numpy\n")
    builder_wheel(kit / "wheels", "numpy", "0.1", {"numpy.py": ""})
    builder_wheel(kit / "wheels", "for_tests", "2", {"for_tests.py": ""})
    (kit / "locks" / "installed.txt").write_text(maker.installed(kit / "wheels"), encoding="utf-8")
    maker.say_what_it_is(kit)
    bill = json.loads((kit / "sbom.cdx.json").read_text(encoding="utf-8"))
    own = bill["metadata"]["component"]
    assert (own["name"], own["version"]) == ("localagent", "1")
    found = {c["name"]: (c["version"], c["scope"]) for c in bill["components"]}
    assert found == {"numpy": ("0.1", "required"), "pip": ("99", "required"), "for-tests": ("2", "excluded")}
    assert own["hashes"][0]["content"] in (kit / "locks" / "installed.txt").read_text()
    assert {p["name"]: p["value"] for p in bill["metadata"]["properties"]}["localagent:commit"] == json.loads(
        (kit / "kit.json").read_text(encoding="utf-8")
    )["commit"]


@pytest.mark.slow
def test_localagents_wheel_is_the_same_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "VENV", Path(sys.prefix))
    monkeypatch.setattr(bootstrap, "LOG", tmp_path / "log")
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    assert maker.own_wheel(tmp_path / "one").read_bytes() == maker.own_wheel(tmp_path / "two").read_bytes()


def test_llama_comes_into_a_kit_with_the_chat_shim_or_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"llama_cpp/lib/libllama.so": b"x", "llama_cpp_python-1.dist-info/RECORD": b"llama_cpp/lib/libllama.so,,\n"}
    llama, copy = wheel(tmp_path / "made", "llama_cpp_python-1-py3-none-any.whl", files), tmp_path / "copy.whl"
    assert "without its chat code" in shim.copy_wheel(llama, copy, tmp_path)
    assert copy.read_bytes() == llama.read_bytes()

    def compiled(venv: Path, downloads: Path) -> str:
        (venv / "lib/python3/site-packages/llama_cpp/lib" / shim.library_name()).write_bytes(b"shim")
        return ""

    monkeypatch.setattr(shim, "build", compiled)
    assert shim.copy_wheel(llama, copy, tmp_path) == ""
    with zipfile.ZipFile(copy) as packed:
        name = f"llama_cpp/lib/{shim.library_name()}"
        assert packed.read(name) == b"shim"
        record = packed.read("llama_cpp_python-1.dist-info/RECORD").decode()
    digest = base64.urlsafe_b64encode(hashlib.sha256(b"shim").digest()).rstrip(b"=").decode()
    assert f"{name},sha256={digest},4\n" in record
    assert files["llama_cpp_python-1.dist-info/RECORD"].decode() in record
