"""The one place where policies are loaded: a base by name or file, the system's layers, the repository's.

The system's layers are believed only where nobody but the machine's owner can have written them. The repository's
pyproject.toml is hostile: it is read bounded, never through a link, and can only tighten.
"""

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from localagent.app.settings import Settings, data_root
from localagent.domain.policy import Policy
from localagent.errors import CannotEnforce, UsageFault
from localagent.fs import openat
from localagent.gate.rule_catalogue import own_ids
from localagent.policy.load import MOST_BYTES, REMEDY, parse_policy, parse_policy_toml, read_bounded
from localagent.policy.policy_layers import LAYER_SCHEMA, Layered, PolicySource, allowed_bases, combine
from localagent.text.strict_json import dump, load

DEFAULT = "default"
PROJECT = "pyproject.toml"
_RECORDED = "localagent-policy-record-1"
_LAYERS, _BASES = "policy.d", "policies"
_SUFFIX = ".toml"
_SEALED = "chown root:root and chmod go-w what is named, and put files there instead of links"


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenPolicy:
    """The policy that holds, with its layers. `path` is the base's file, `source` its bytes."""

    layered: Layered
    path: Path
    source: bytes
    system: tuple[PolicySource, ...] = ()
    project: PolicySource | None = None

    @property
    def policy(self) -> Policy:
        """What all layers allow."""
        return self.layered.policy

    def recorded(self) -> bytes:
        """All layers as they were read, for the record of a task; `reopened` makes the same policy of it."""
        return dump(
            {
                "schema": _RECORDED,
                "base": _source_json(PolicySource(name=str(self.path), data=self.source)),
                "system": [_source_json(layer) for layer in self.system],
                "project": None if self.project is None else _source_json(self.project),
            },
            indent=2,
        )


def reopened(data: bytes) -> Policy:
    """The policy that `OpenPolicy.recorded` was made of. ValueError if this is not such a record."""
    found = load(data)
    try:
        if found["schema"] != _RECORDED:
            raise ValueError(f"schema {found['schema']!r}")
        base, system = _heard(found["base"]), [_heard(layer) for layer in found["system"]]
        project = None if found["project"] is None else _heard(found["project"])
    except (TypeError, KeyError, AttributeError) as fault:
        raise ValueError(f"not a recorded policy: {fault!r}") from fault
    return combine(base, system, project, base.data).policy


def _source_json(source: PolicySource) -> dict[str, str]:
    return {"name": source.name, "text": source.data.decode("utf-8", "surrogateescape")}


def _heard(told: dict[str, str]) -> PolicySource:
    return PolicySource(name=str(told["name"]), data=told["text"].encode("utf-8", "surrogateescape"))


def open_policy(settings: Settings, named: Path | None = None, repo: Path | None = None) -> OpenPolicy:
    """The policy for a repository (None: for no repository). `named` is what `--policy` says: a name or a file.

    UsageFault with every fault of every layer; CannotEnforce where the system's layers cannot be believed.
    """
    owned = _Owned(settings)
    system = owned.layers()
    faults: list[str] = []
    path = owned.base(named, system, faults)
    reference = (settings.policies_dir / f"{DEFAULT}{_SUFFIX}").read_bytes()
    source = reference if path is None else _base_bytes(path, owned, reference, faults)
    project = _project(repo, faults)
    owned.refuse_unsealed()
    try:
        layered = combine(PolicySource(name=str(path), data=source), system or (), project, reference, own_ids())
    except UsageFault as fault:
        raise UsageFault((*faults, *fault.faults), remedy=fault.remedy) from fault
    if faults or path is None:
        raise UsageFault(faults, remedy=REMEDY)
    return OpenPolicy(layered=layered, path=path, source=source, system=tuple(system or ()), project=project)


def check_file(path: Path) -> str:
    """What a right file is: a policy, a layer, or a repository's pyproject.toml. UsageFault with every fault of it."""
    source = PolicySource(name=str(path), data=read_bounded(path))
    if path.name == PROJECT:
        combined = combine(_reference(), (), source, _reference().data, own_ids())
        keys = "no" if len(combined.layers) < 2 else "a right"
        return f"holds {keys} [tool.localagent]"
    values, _ = parse_policy_toml(source.data, source.name)
    if values.get("schema") == LAYER_SCHEMA:
        combine(_reference(), (source,), None, _reference().data, own_ids())
        return "a layer that is right"
    policy = parse_policy(source.data, source.name, own_ids())
    return f"policy {policy.name!r} is right ({len(policy.dangers)} rules of dangers)"


def _reference() -> PolicySource:
    path = data_root() / "policies" / f"{DEFAULT}{_SUFFIX}"
    return PolicySource(name=str(path), data=path.read_bytes())


def _base_bytes(path: Path, owned: "_Owned", reference: bytes, faults: list[str]) -> bytes:
    """The base; with a fault that it cannot be read, the reference, so that the faults of the layers are told too."""
    if path.parent == owned.bases:
        return owned.read(path) or b""
    try:
        return read_bounded(path)
    except UsageFault as fault:
        faults += fault.faults
        return reference


def _project(repo: Path | None, faults: list[str]) -> PolicySource | None:
    """The repository's pyproject.toml; what stands there and cannot be read is a fault, since it could ask for more."""
    if repo is None or not repo.is_dir():
        return None
    name = str(repo / PROJECT)
    try:
        with openat.root_directory(repo) as root:
            data, _ = openat.read_regular(PROJECT, root, MOST_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        faults.append(f"{name}: cannot be read for its [tool.localagent]: {error.strerror or error}")
        return None
    return PolicySource(name=name, data=data)


class _Owned:
    """What lies below the system's folder. Notes everything that somebody else could have written."""

    def __init__(self, settings: Settings) -> None:
        self._root = settings.system_dir
        self._owner = settings.system_owner
        self._built_in = settings.policies_dir
        self._unsealed: list[str] = []
        self.bases = self._root / _BASES

    def layers(self) -> tuple[PolicySource, ...] | None:
        """The layers in the order of their names; None where the machine's owner has no say."""
        folder = self._root / _LAYERS
        names = self._names(folder)
        if names is None:
            return None
        found = []
        for name in names:
            if not name.endswith(_SUFFIX):
                continue
            data = self.read(folder / name)
            if data is not None:
                found.append(PolicySource(name=str(folder / name), data=data))
        return tuple(found)

    def base(self, named: Path | None, system: Sequence[PolicySource] | None, faults: list[str]) -> Path | None:
        """The base's file; where there are layers, by a name that they allow alone (the first one by default)."""
        allowed: tuple[str, ...] | None = None
        if system is not None:
            allowed = allowed_bases(system)
            allowed = (DEFAULT,) if allowed is None else allowed
        if allowed == ():
            faults.append(f"{self._root / _LAYERS}: `base.allowed` of its files leaves no policy that may be chosen")
            return None
        name = Path(allowed[0] if allowed else DEFAULT) if named is None else named
        plain = len(name.parts) == 1 and not name.suffix
        if allowed is not None and (not plain or str(name) not in allowed):
            faults.append(
                f"--policy {name}: not among the policies that {self._root / _LAYERS} allows: {', '.join(allowed)}"
            )
            return None
        if not plain:
            return name
        built_in, own = self._built_in / f"{name}{_SUFFIX}", self.bases / f"{name}{_SUFFIX}"
        owned = self._names(self.bases) or ()
        if own.name in owned and built_in.is_file():
            faults.append(f"--policy {name}: {own} has the name of a built-in policy; give it another")
            return None
        if own.name in owned:
            return own
        if built_in.is_file():
            return built_in
        known = sorted(p.removesuffix(_SUFFIX) for p in (*owned, *(q.name for q in self._built_in.glob(f"*{_SUFFIX}"))))
        faults.append(f"--policy {name}: no policy of that name; there are {', '.join(known)}; a file needs its suffix")
        return None

    def read(self, path: Path) -> bytes | None:
        """A file's bytes, None (and noted) where it is not the owner's alone."""
        try:
            with openat.root_directory(path.parent) as folder:
                data, status = openat.read_regular(path.name, folder, MOST_BYTES)
        except OSError as error:
            self._unsealed.append(f"{path}: {error.strerror or error}")
            return None
        return data if self._sealed(path, status) else None

    def refuse_unsealed(self) -> None:
        """CannotEnforce with everything that cannot be believed."""
        if self._unsealed:
            told = "; ".join(dict.fromkeys(self._unsealed))
            raise CannotEnforce(f"the machine's policy cannot be believed: {told}", remedy=_SEALED)

    def _names(self, folder: Path) -> tuple[str, ...] | None:
        """The names in a folder of the owner's, None where it is not there."""
        for place in (self._root, folder):
            try:
                at = openat.open_directory(place)
            except FileNotFoundError:
                return None
            except OSError as error:
                self._unsealed.append(f"{place}: not a folder that can be read: {error.strerror}")
                return ()
            try:
                if not self._sealed(place, os.fstat(at)):
                    return ()
                names = tuple(sorted(os.listdir(at)))  # noqa: PTH208 - pathlib knows no descriptors
            finally:
                os.close(at)
        return names

    def _sealed(self, path: Path, status: os.stat_result) -> bool:
        wrong = []
        if status.st_uid != self._owner:
            wrong.append(f"belongs to uid {status.st_uid}, not to {self._owner}")
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            wrong.append("others than its owner may write it")
        if wrong:
            self._unsealed.append(f"{path}: {' and '.join(wrong)}")
        return not wrong
