"""The registry: what is added is verified, what is altered is refused, and nothing is left half done."""

import hashlib
import json
import os
import re
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from support.gguf_builder import TinyGguf

from localagent.errors import AnswerIsNo, CannotEnforce, UsageFault
from localagent.llm.model.adapter import AdapterFile
from localagent.llm.model.gguf import GgufFault
from localagent.llm.model.manifest import Mender, ModelManifest, ModelSource, load_manifest, manifest_text
from localagent.llm.model.registry import Registry

TINY = TinyGguf().bytes


def manifest(
    *,
    name: str = "tiny",
    file: str = "Tiny.gguf",
    sha256: str = hashlib.sha256(TINY).hexdigest(),
    licence: str = "MIT",
) -> ModelManifest:
    return ModelManifest(
        name=name,
        file=file,
        bytes=len(TINY),
        sha256=sha256,
        licence=licence,
        context_tokens=512,
        dialect="plain",
        quantization="F32",
        default=True,
        origin=ModelSource(package="some", version="1"),
    )


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    models, data = tmp_path / "models", tmp_path / "data"
    models.mkdir()
    (models / "tiny.toml").write_text(manifest_text(manifest()))
    return models, data


@pytest.fixture
def registry(folders: tuple[Path, Path]) -> Registry:
    return Registry(*folders)


@pytest.fixture
def tiny_file(tmp_path: Path) -> Path:
    path = tmp_path / "Any Name (v1).gguf"
    path.write_bytes(TINY)
    return path


def test_a_manifest_without_its_file_is_listed_and_not_resolved(registry: Registry) -> None:
    [model] = registry.list()
    assert (model.name, model.path, model.default) == ("tiny", None, True)
    for name in ("tiny", ""):
        with pytest.raises(CannotEnforce, match="not installed"):
            registry.resolve(name)


def test_a_known_digest_takes_its_manifests_name_and_file(
    registry: Registry, tiny_file: Path, folders: tuple[Path, Path]
) -> None:
    model = registry.add(tiny_file, "other")
    assert model.name == "tiny"
    assert model.path == folders[1] / "models" / "Tiny.gguf"
    assert registry.verify("tiny") == registry.default() == registry.resolve("") == model
    assert registry.verify(str(tiny_file)).path == tiny_file


def test_an_unknown_file_is_registered_under_a_name_of_its_own(
    registry: Registry, tmp_path: Path, folders: tuple[Path, Path]
) -> None:
    other = tmp_path / "My Coder 1B.Q4.gguf"
    other.write_bytes(TinyGguf(data=bytes(400)).bytes)
    with pytest.raises(CannotEnforce, match="not registered"):
        registry.resolve(str(other))
    model = registry.add(other)
    assert model.name == "my-coder-1b.q4"
    assert model.licence == "apache-2.0"
    assert not model.default
    assert Registry(*folders).resolve("my-coder-1b.q4").sha256 == hashlib.sha256(other.read_bytes()).hexdigest()
    assert sorted(p.name for p in (folders[1] / "models").iterdir()) == ["my-coder-1b.q4.gguf", "my-coder-1b.q4.toml"]
    assert registry.add(other, "again").name == "my-coder-1b.q4"


ODD_NAMES = (
    b"\xff\xfe.gguf", b"a\nb.gguf", b"\x1b[31mred.gguf", "naïve ☃.gguf".encode(), b"--name.gguf", b"...gguf", b" .gguf",
    b"a" * 250 + b".gguf", b"CON.gguf", b"x;rm -rf $HOME`.gguf", "\u202egpj.gguf".encode(), b"no-suffix", b"x.GGUF",
    b"tiny.toml", b"'\"\\.gguf",
)  # fmt: skip


@pytest.mark.parametrize("odd", ODD_NAMES)
def test_a_file_of_any_name_gets_a_plain_one(
    registry: Registry, tmp_path: Path, folders: tuple[Path, Path], odd: bytes
) -> None:
    source = tmp_path / "from"
    source.mkdir()
    path = source / os.fsdecode(odd)
    path.write_bytes(TinyGguf(data=bytes(400)).bytes)
    model = registry.add(path)
    assert re.fullmatch("[a-z0-9][a-z0-9._-]{0,63}", model.name)
    assert model.path == folders[1] / "models" / f"{model.name}.gguf"
    assert Registry(*folders).verify(model.name) == model
    assert sorted(p.name for p in (folders[1] / "models").iterdir()) == [f"{model.name}.gguf", f"{model.name}.toml"]


@pytest.mark.parametrize("name", ["", "A", "a b", "a/b", "..", ".a", "a\n", "é", "a" * 65, "\0", "-a", "a\u202e"])
def test_a_name_that_is_given_is_plain_or_refused(
    registry: Registry, tiny_file: Path, folders: tuple[Path, Path], name: str
) -> None:
    with pytest.raises(UsageFault, match="lower case letters"):
        registry.add(tiny_file, name)
    assert not (folders[1] / "models").exists()


@pytest.mark.parametrize("label", ["Tiny.gguf", "tiny.GGUF"])
def test_a_file_called_as_a_known_one_with_another_digest_is_refused_without_a_name(
    registry: Registry, tmp_path: Path, folders: tuple[Path, Path], label: str
) -> None:
    damaged = tmp_path / label
    damaged.write_bytes(TINY[:-1] + b"\x01")
    wheel = tmp_path / "some-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as out:
        out.write(damaged, f"some/{label.replace('GGUF', 'gguf')}")
    for source in (damaged, wheel):
        with pytest.raises(AnswerIsNo, match=r"is not the file of tiny: .* the manifest says") as refused:
            registry.add(source)
        assert refused.value.remedy == "get it again, or add it as another model with --name"
        assert list((folders[1] / "models").iterdir()) == []
    assert registry.add(damaged, "another").name == "another"
    assert registry.list()[0].path is None  # the default one is as absent as before


def test_weights_that_lie_beyond_the_file_are_refused_wherever_they_end(registry: Registry, tmp_path: Path) -> None:
    for k in (1, 67, 68, 69, 200, len(TINY) - 30):
        cut = tmp_path / f"cut{k}.gguf"
        cut.write_bytes(TINY[:-k])
        with pytest.raises(AnswerIsNo, match=r"ends after the file|ends inside its header"):
            registry.add(cut)
    assert [m.path for m in registry.list()] == [None]


def test_a_name_taken_by_another_model_is_refused(registry: Registry, tmp_path: Path) -> None:
    other = tmp_path / "x.gguf"
    other.write_bytes(TinyGguf(data=bytes(400)).bytes)
    with pytest.raises(UsageFault, match="belongs to another model"):
        registry.add(other, "tiny")
    with pytest.raises(UsageFault, match="lower case"):
        registry.add(other, "../evil")


def test_a_wheel_gives_its_only_gguf(registry: Registry, tmp_path: Path) -> None:
    wheel = tmp_path / "some-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("some/__init__.py", "raise SystemExit")
        out.writestr("../../escape/Tiny.gguf", TINY)
    model = registry.add(wheel)
    assert model.path is not None
    assert model.path.read_bytes() == TINY
    assert not (tmp_path.parent / "escape").exists()


@pytest.mark.parametrize(("members", "count"), [([], 0), (["a.gguf", "b.gguf"], 2)])
def test_a_wheel_without_exactly_one_gguf_is_refused(
    registry: Registry, tmp_path: Path, members: list[str], count: int
) -> None:
    wheel = tmp_path / "some-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as out:
        out.writestr("some/__init__.py", "")
        for name in members:
            out.writestr(name, TINY)
    with pytest.raises(AnswerIsNo, match=f"holds {count} .gguf files"):
        registry.add(wheel)


def refusals(tmp_path: Path) -> dict[str, tuple[Path, str]]:
    fifo, folder, noise, broken = (tmp_path / n for n in ("fifo.gguf", "folder.gguf", "noise.gguf", "broken.whl"))
    os.mkfifo(fifo)
    folder.mkdir()
    noise.write_bytes(b"\x7fELF" * 100)
    broken.write_bytes(b"PK\x03\x04 no")
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(TINY[:-1])
    return {
        "absent": (tmp_path / "absent.gguf", "cannot open"),
        "fifo": (fifo, "not a regular file"),
        "folder": (folder, "not a regular file"),
        "noise": (noise, "magic bytes are missing"),
        "cut off": (cut, "ends after the file"),
        "broken wheel": (broken, "not a wheel"),
        "endless": (Path("/dev/zero"), "not a regular file"),
    }


@pytest.mark.parametrize("case", ["absent", "fifo", "folder", "noise", "cut off", "broken wheel", "endless"])
def test_what_is_no_model_is_refused_and_leaves_nothing(
    registry: Registry, tmp_path: Path, folders: tuple[Path, Path], case: str
) -> None:
    path, reason = refusals(tmp_path)[case]
    with pytest.raises(AnswerIsNo, match=reason):
        registry.add(path)
    assert list((folders[1] / "models").iterdir()) == []


def test_an_altered_file_is_refused_by_name_and_by_path(registry: Registry, tiny_file: Path) -> None:
    model = registry.add(tiny_file)
    assert model.path is not None
    altered = bytearray(TINY)
    altered[-1] ^= 1
    model.path.write_bytes(altered)
    for name in ("tiny", str(model.path), ""):
        with pytest.raises(AnswerIsNo, match=r"not the file that was registered|not registered"):
            registry.verify(name)
    with pytest.raises(CannotEnforce, match="tiny"):
        registry.resolve("tiny")
    model.path.write_bytes(TINY[:-1])
    with pytest.raises(CannotEnforce, match="altered or cut off"):
        registry.default()


def test_a_users_manifest_cannot_become_the_default_or_replace_ours(
    registry: Registry, folders: tuple[Path, Path]
) -> None:
    user = folders[1] / "models"
    user.mkdir(parents=True)
    (user / "evil.toml").write_text(manifest_text(manifest(sha256="0" * 64)))
    (user / "more.toml").write_text(manifest_text(manifest(name="more", file="More.gguf", sha256="1" * 64)))
    assert [(m.name, m.default, m.sha256[0]) for m in registry.list()] == [
        ("tiny", True, hashlib.sha256(TINY).hexdigest()[0]),
        ("more", False, "1"),
    ]


def test_every_fault_of_a_manifest_is_named_at_once(tmp_path: Path) -> None:
    path = tmp_path / "m.toml"
    path.write_text(
        'schema = 2\nname = "../x"\nfile = "/etc/passwd"\nbytes = -1\nsha256 = "AB"\nextra = 1\ndefault = 1\n'
    )
    with pytest.raises(UsageFault) as refused:
        load_manifest(path)
    said = " ".join(refused.value.faults)
    for part in ("schema is 2", "name is malformed", "file is malformed", "bytes is negative", "sha256 is malformed",
                 "unknown key 'extra'", "default must be given as bool", "licence must be given"):  # fmt: skip
        assert part in said


MENDER = Mender(file="Tiny.mender", bytes=5, sha256="3" * 64)


def test_a_mender_is_taken_from_beside_our_manifest_alone(
    registry: Registry, tiny_file: Path, folders: tuple[Path, Path]
) -> None:
    ours, users = folders[0], folders[1] / "models"
    registry.add(tiny_file, "other")
    (ours / "tiny.toml").write_text(manifest_text(replace(manifest(), default=True, mender=MENDER)))
    (users / "Tiny.mender").write_bytes(b"12345")
    assert registry.default().mender is None
    (ours / "Tiny.mender").write_bytes(b"1234")
    assert registry.default().mender is None  # cut off
    (ours / "Tiny.mender").write_bytes(b"12345")
    found = registry.default()
    assert found.mender == AdapterFile(path=ours / "Tiny.mender", bytes=5, sha256="3" * 64, about={})
    assert found.loaded == f"{found.sha256}+{'3' * 64}"


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("mender = 1", "mender must be a table of file, bytes, sha256"),
        ('[mender]\nfile = "a.mender"\nbytes = 1', "mender must be a table"),
        ('[mender]\nfile = "a.mender"\nbytes = "1"\nsha256 = "x"', "mender.bytes must be given as int"),
        (f'[mender]\nfile = "a.mender"\nbytes = -1\nsha256 = "{"3" * 64}"', "mender.bytes is negative"),
        (f'[mender]\nfile = "../a.mender"\nbytes = 1\nsha256 = "{"3" * 64}"', "mender.file is malformed"),
        (f'[mender]\nfile = "a.gguf"\nbytes = 1\nsha256 = "{"3" * 64}"', "mender.file is malformed"),
        ('[mender]\nfile = "a.mender"\nbytes = 1\nsha256 = "3"', "mender.sha256 is malformed"),
    ],
)
def test_a_mender_is_read_strictly(tmp_path: Path, table: str, said: str) -> None:
    path = tmp_path / "m.toml"
    text = manifest_text(manifest()).replace("[origin]", "").strip()
    path.write_text(f"{text}\n{table}\n")
    with pytest.raises(UsageFault) as refused:
        load_manifest(path)
    assert any(said in fault for fault in refused.value.faults)
    path.write_text(manifest_text(replace(manifest(), mender=MENDER)))
    assert load_manifest(path).mender == MENDER


@pytest.mark.parametrize("odd", ['quote " and \\', "new\nline", "\x7f\x00", "\udcff", "naïve", "😀"])
def test_a_manifest_reads_back_as_written(tmp_path: Path, odd: str) -> None:
    path = tmp_path / "m.toml"
    path.write_text(manifest_text(manifest(licence=odd)))
    assert load_manifest(path) == manifest(licence="".join(c if ord(c) < 0xD800 else "?" for c in odd))


def test_the_shipped_manifest_is_sound() -> None:
    here = Path(__file__).resolve().parents[2] / "models"
    [model] = [m for m in Registry(here, Path("/nonexistent")).list() if m.default]
    assert (model.bytes, model.licence) == (98_362_432, "Apache-2.0")
    assert model.sha256 == "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
    assert json.dumps(model.name) == '"smollm2-135m-instruct"'


def test_gguf_faults_are_answers_not_crashes() -> None:
    assert issubclass(GgufFault, AnswerIsNo)
