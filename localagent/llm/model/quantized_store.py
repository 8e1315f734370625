"""A model's weights rewritten for one machine: the record of what was measured, and the file that won.

Kept below the user's models, named by the digest of the registered file it was made from. It serves only on the
machine it was measured on, and only while it has the size and (checked by whoever loads it) the digest on record.
"""

import hashlib
import importlib.util
import json
import platform
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from localagent.llm.model import adapter
from localagent.llm.model.registry import ModelFile

FOLDER = "tuned"
AS_IT_IS = "as it is"
_SCHEMA = 2
_MAX_BYTES = 64 << 10
_HEAD_BYTES = 4096


@dataclass(frozen=True, kw_only=True, slots=True)
class Tuned:
    """What `model tune` found. `form` is AS_IT_IS where nothing beats the registered file; then there is no file.

    `rates` are tokens per second of processor time on one thread, `agreement` rank correlations with the scores of the
    registered file, `memory` the bytes that the process took at most, `failed` why a form could not be measured, all by
    form. Records of before memory was measured have none.
    """

    source_sha256: str
    machine: str
    form: str
    bytes: int
    sha256: str
    rates: dict[str, float]
    agreement: dict[str, float]
    failed: dict[str, str]
    memory: dict[str, int] = field(default_factory=dict)

    @property
    def faster(self) -> float:
        """How many times as fast as the registered file."""
        return self.rates.get(self.form, 0.0) / max(1e-9, self.rates.get(AS_IT_IS, 0.0))


@cache
def machine() -> str:
    """What the measured speeds depend on, as 16 hexadecimal digits: the processor's name and features, llama.cpp."""
    try:
        rows = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split("\n\n", 1)[0].split("\n")
    except OSError:
        rows = []
    told = [row for row in rows if row.split("\t")[0].strip() in ("model name", "flags", "Features", "CPU part")]
    digest = hashlib.sha256("\n".join([platform.machine(), *told]).encode())
    spec = importlib.util.find_spec("llama_cpp")
    for place in (spec.submodule_search_locations or ()) if spec is not None else ():
        for library in sorted(Path(place, "lib").glob("*.so*")):
            with library.open("rb") as stream:  # the build's identity stands near the beginning
                digest.update(f"{library.name} {library.stat().st_size}".encode() + stream.read(_HEAD_BYTES))
    return digest.hexdigest()[:16]


def folder(data_dir: Path) -> Path:
    """Where tuned files lie."""
    return data_dir / "models" / FOLDER


def weights_path(data_dir: Path, source_sha256: str) -> Path:
    """The rewritten weights of a registered file."""
    return folder(data_dir) / f"{source_sha256}.gguf"


def record_path(data_dir: Path, source_sha256: str) -> Path:
    """The record of a registered file."""
    return folder(data_dir) / f"{source_sha256}.json"


def load(data_dir: Path, source_sha256: str) -> Tuned | None:
    """The record, or None where there is none that can be read and belongs to this machine."""
    found = _read(data_dir, source_sha256)
    return found if found is not None and found.machine == machine() else None


def tuned_on_another_machine(data_dir: Path, source_sha256: str) -> bool:
    """Whether another form was found faster on a machine that this one is not, or not any more."""
    found = _read(data_dir, source_sha256)
    return found is not None and found.form != AS_IT_IS and found.machine != machine()


def _read(data_dir: Path, source_sha256: str) -> Tuned | None:
    try:
        with record_path(data_dir, source_sha256).open("rb") as stream:
            table = json.loads(stream.read(_MAX_BYTES))
        found = _parsed(table)
    except (OSError, ValueError, RecursionError):
        return None
    return found if found.source_sha256 == source_sha256 else None


def text(tuned: Tuned) -> str:
    """The JSON of a record; `load` reads back an equal one."""
    return json.dumps({"schema": _SCHEMA, **asdict(tuned)}, indent=1, sort_keys=True) + "\n"


def serving(model: ModelFile, data_dir: Path) -> ModelFile:
    """What to load for a registered model: its tuned weights where they stand, and the adapter learned on it."""
    tuned, learned = _rewritten(model, data_dir), adapter.load(data_dir, model.sha256)
    if learned is None:
        return tuned
    return replace(
        tuned,
        adapter=learned,
        quantization=f"{tuned.quantization}, with an adapter",
        registered_sha256=tuned.registered_sha256 or model.sha256,
    )


def spare_of(served: ModelFile, registered: ModelFile) -> ModelFile | None:
    """What to load where `served` does not load: the registered file with nothing beside it; None if that is it."""
    bare = replace(registered, mender=None)
    return None if bare == served else bare


def _rewritten(model: ModelFile, data_dir: Path) -> ModelFile:
    tuned = load(data_dir, model.sha256)
    if tuned is None or tuned.form == AS_IT_IS or model.path is None:
        return model
    path = weights_path(data_dir, model.sha256)
    try:
        size = path.stat().st_size
    except OSError:
        return model
    if size != tuned.bytes:
        return model
    return replace(
        model,
        path=path,
        bytes=tuned.bytes,
        sha256=tuned.sha256,
        quantization=f"{tuned.form}, rewritten from {model.quantization}",
        registered_sha256=model.sha256,
    )


def stands(tuned: Tuned, model: ModelFile, data_dir: Path) -> bool:
    """Whether a record is complete and its file, read to the end, is the one that was measured."""
    if tuned.failed:
        return False
    if tuned.form == AS_IT_IS:
        return True
    try:
        with weights_path(data_dir, model.sha256).open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest() == tuned.sha256
    except OSError:
        return False


def _parsed(table: Any) -> Tuned:
    """ValueError for anything but a record."""
    names = {field.name for field in fields(Tuned)}
    if isinstance(table, dict) and table.get("schema") == 1:
        table = {"memory": {}, **table, "schema": _SCHEMA}
    if not isinstance(table, dict) or set(table) != {*names, "schema"} or table["schema"] != _SCHEMA:
        raise ValueError("not a record of a tuned model")
    del table["schema"]
    numbers = {k: table[k] for k in ("rates", "agreement", "memory")}
    if type(table["bytes"]) is not int or not all(isinstance(v, dict) for v in (*numbers.values(), table["failed"])):
        raise ValueError("not a record of a tuned model")
    if not all(isinstance(v, str) for v in table["failed"].values()):
        raise ValueError("not a record of a tuned model")
    for found in numbers.values():
        if not all(isinstance(v, int | float) for v in found.values()):
            raise ValueError("not a record of a tuned model")
    if not all(isinstance(table[k], str) for k in ("source_sha256", "machine", "form", "sha256")):
        raise ValueError("not a record of a tuned model")
    return Tuned(**table)
