"""The jail of a model's process: interpreter, packages and the one model read-only, no network, bounds by its size."""

import sys
from pathlib import Path

from localagent.domain.jailspec import Access, Bind, JailLimits, JailSpec
from localagent.errors import CannotEnforce
from localagent.jail.api import interpreter_binds
from localagent.llm.model.gpu import Offload, beside_bytes
from localagent.llm.model.memory_estimate import Needs, needs_of_file
from localagent.llm.model.registry import ModelFile
from localagent.llm.process.protocol import ADAPTER, MENDER, TARGET, WEIGHTS

PACKAGE = Path(__file__).resolve().parents[2]
_DEVICE_ADDRESSES_BYTES = 1 << 46  # drivers of GPUs set aside addresses for all memory there is
_A_DAY_SECONDS = 86_400.0


def child_spec(
    model: ModelFile,
    program: str = "localagent.llm.process.child",
    *,
    target: Path | None = None,
    writes_bytes: int = 1 << 20,
    needs: Needs | None = None,
    offload: Offload = Offload(),  # noqa: B008 - a value
) -> JailSpec:
    """The child's jail: interpreter, packages and the one model read-only, no TCP, nothing else.

    `target` is the one file that it may write, `writes_bytes` the largest it may become. `needs` are read from the
    model's file where they are not given, `offload` says which devices are shown. CannotEnforce or OSError when that
    file is not there.
    """
    if model.path is None:
        raise CannotEnforce(f"the file of {model.name} is not installed")
    needs = needs or needs_of_model(model)
    python, shown = interpreter_binds(sys.executable)
    inside = any(str(PACKAGE).startswith(bind.target + "/") for bind in shown)
    package = () if inside else (Bind(source=str(PACKAGE), target=str(PACKAGE)),)
    return JailSpec(
        argv=(python, "-s", "-P", "-m", program, "{channel}"),
        cwd="/",
        binds=(
            *shown,
            *package,
            Bind(source=str(model.path), target=WEIGHTS),
            *(
                Bind(source=str(file.path), target=place)
                for file, place in ((model.adapter, ADAPTER), (model.mender, MENDER))
                if file is not None
            ),
            *((Bind(source=str(target), target=TARGET, access=Access.READ_WRITE),) if target else ()),
            *(Bind(source=node, target=node, access=Access.DEVICE) for node in offload.devices),
        ),
        env=(
            ("PATH", "/usr/bin:/bin"),
            ("PYTHONPATH", str(PACKAGE.parent)),
            ("PYTHONDONTWRITEBYTECODE", "1"),
            ("OMP_WAIT_POLICY", "passive"),
        ),
        limits=JailLimits(
            wall_seconds=_A_DAY_SECONDS,
            cpu_seconds=_A_DAY_SECONDS,
            address_space_bytes=_DEVICE_ADDRESSES_BYTES if offload.devices else needs.address_space_bytes,
            resident_bytes=needs.resident_bytes + beside_bytes(offload),
            file_bytes=writes_bytes,
            tmp_bytes=writes_bytes,  # also the bound of what lies behind a writable bind
        ),
        loopback=False,
    )


def needs_of_model(model: ModelFile) -> Needs:
    """What its process needs, what is beside it included. CannotEnforce or OSError when a file is not there."""
    if model.path is None:
        raise CannotEnforce(f"the file of {model.name} is not installed")
    beside = sum(file.path.stat().st_size for file in model.beside)
    return needs_of_file(model.path, beside, mends=model.mender is not None)
