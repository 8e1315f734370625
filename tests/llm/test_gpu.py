"""Layers on a GPU: what is asked for, refused or gone on without, and that devices are shown to one process alone."""

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from support.jail_backends import WAYS, walled_by
from support.model_replay import READY, ReplayJail

from localagent.app.fix.model_setup import open_model
from localagent.app.fix.request import FixRequest
from localagent.app.settings import Settings
from localagent.domain.jailspec import Access, Bind, JailSpec
from localagent.domain.outcome import JailOutcome
from localagent.domain.task import Event
from localagent.errors import CannotEnforce, UsageFault
from localagent.jail.api import open_jail
from localagent.llm.model.gpu import (
    ALL,
    ASKED,
    NO_BACKEND,
    NO_DEVICE,
    SEEN,
    UNSEEN,
    Offload,
    _opens,
    came_of,
    devices,
    offload_of,
    offloads,
)
from localagent.llm.model.registry import ModelFile
from localagent.llm.process.child_jail import child_spec
from localagent.llm.scoring.scorer import ModelScorer

CUDA = "CUDA0 NVIDIA H100; CPU (AVX2)"


@pytest.fixture
def nodes(tmp_path: Path) -> Path:
    for name in ("nvidia0", "nvidiactl", "nvidia-uvm", "dri/renderD128", "sda", "dri/card0", "nvidia-modeset"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def asked(text: str, root: Path, backend: str = CUDA) -> Offload:
    return offload_of(text, backend=lambda: backend, root=root, opens=lambda _path: True)


def test_what_is_asked_for_is_had_where_it_can_be(nodes: Path) -> None:
    shown = tuple(str(nodes / name) for name in ("nvidia0", "nvidiactl", "nvidia-uvm", "dri/renderD128"))
    assert asked("auto", nodes) == Offload(layers=ALL, devices=shown, said=ASKED)
    assert asked("12", nodes) == Offload(layers=12, devices=shown, said=ASKED)
    assert asked("", nodes) == asked("0", nodes) == Offload()
    assert devices(nodes) == ()  # a regular file is no device, whatever it is called


def test_what_cannot_be_had_is_refused_or_gone_on_without(
    nodes: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    nothing = tmp_path_factory.mktemp("dev")
    for root, backend, why in ((nodes, "CPU (AVX2)", NO_BACKEND), (nothing, CUDA, NO_DEVICE)):
        assert asked("auto", root, backend) == Offload(said=why)
        with pytest.raises(CannotEnforce, match="--gpu-layers 4: not offloaded") as refused:
            asked("4", root, backend)
        assert why in str(refused.value)
    for text in ("all", "-1", "1001", "1.5", "٣", " 4"):
        with pytest.raises(UsageFault, match="neither `auto` nor a number"):
            asked(text, nodes)


def test_what_only_computes_on_the_processor_is_no_gpu() -> None:
    assert not offloads("CPU (AVX2)")
    assert not offloads("BLAS OpenBLAS; CPU")
    assert offloads("BLAS OpenBLAS; Vulkan0 Radeon; CPU")


@pytest.fixture
def model(tmp_path: Path) -> ModelFile:
    path = tmp_path / "m.gguf"
    path.write_bytes(b"GGUF")
    return ModelFile(name="m", path=path, bytes=4, sha256="0" * 64, licence="MIT")


def test_the_models_own_process_is_shown_devices_and_told_how_many_layers(model: ModelFile) -> None:
    plain = child_spec(model)
    assert all(bind.access is Access.READ_ONLY for bind in plain.binds)
    jail = ReplayJail(READY)
    scorer = ModelScorer(model, jail, threads=1, offload=Offload(layers=ALL, devices=("/dev/nvidia0",)))
    assert scorer.ready(20)
    assert jail.started[0].requests[0]["gpu_layers"] == ALL
    assert scorer.remarks == (f"model m was {UNSEEN}",)  # its process did not say that it saw one
    (node,) = [bind for bind in jail.specs[0].binds if bind not in plain.binds]
    assert node == Bind(source="/dev/nvidia0", target="/dev/nvidia0", access=Access.DEVICE)
    assert jail.specs[0].limits.resident_bytes == plain.limits.resident_bytes + (2 << 30)
    assert scorer.memory_limit_bytes == jail.specs[0].limits.resident_bytes
    scorer.close()
    silent = ReplayJail(READY)
    scorer = ModelScorer(model, silent, threads=1, offload=Offload(said=NO_BACKEND))
    assert scorer.ready(20)
    assert "gpu_layers" not in silent.started[0].requests[0]
    assert scorer.remarks == (f"model m was {NO_BACKEND}",)
    scorer.close()


def test_what_came_of_it_is_what_the_process_saw(model: ModelFile) -> None:
    jail = ReplayJail({**READY, "gpus": 1})
    scorer = ModelScorer(model, jail, threads=1, offload=Offload(layers=4, devices=("/dev/nvidia0",), said=ASKED))
    assert scorer.ready(20)
    assert scorer.remarks == (f"model m was {SEEN}",)
    scorer.close()
    assert came_of(Offload(said=NO_DEVICE), 1) == Offload(said=NO_DEVICE)
    assert came_of(Offload(), 0) == Offload()


def test_a_capability_that_is_closed_to_others_is_no_device_to_show(tmp_path: Path) -> None:
    """Jails run as other users; such nodes are for parts of a GPU alone."""
    if os.getuid() != 0:
        pytest.skip("only root makes device nodes")
    place = tmp_path / "nvidia-caps"
    place.mkdir()
    for name, mode in (("nvidia-cap1", 0o400), ("nvidia-cap2", 0o444)):
        try:
            os.mknod(place / name, stat.S_IFCHR | mode, os.makedev(1, 3))
        except OSError as fault:
            pytest.skip(f"no device can be made here: {fault.strerror}")
        (place / name).chmod(mode)
    assert [_opens(place / f"nvidia-cap{k}") for k in (1, 2)] == [False, True]
    assert devices(tmp_path) == (str(place / "nvidia-cap2"),)


class Unheard:
    def emit(self, event: Event) -> None:
        """Nobody listens."""


@pytest.mark.model
def test_a_task_that_asks_for_it_says_what_came_of_it(
    monkeypatch: pytest.MonkeyPatch, bundled_model: ModelFile
) -> None:
    monkeypatch.setattr("localagent.app.fix.model_setup.offload_of", lambda text: asked(text, Path("/nowhere"), "CPU"))
    settings = Settings.from_environ()
    with pytest.raises(CannotEnforce, match="no GPU backend"):
        open_model(FixRequest(repo=Path(), gpu_layers="9"), settings, ReplayJail(), Unheard())
    for request, given in ((FixRequest(repo=Path(), gpu_layers="auto"), settings), (FixRequest(repo=Path()), settings)):
        opened = open_model(request, given, ReplayJail(READY), Unheard())
        assert opened.scorer is not None
        assert opened.scorer.offload == Offload(said=NO_BACKEND if request.gpu_layers else "")
        opened.scorer.close()


@pytest.mark.parametrize("way", WAYS)
def test_a_device_that_is_shown_can_be_written_and_no_other_can(way: str) -> None:
    """A plain device stands for a GPU's: none is here."""
    found = open_jail()
    jail = walled_by(found, way) if found._backend.landlock is not None else found
    code = (
        "import os; n = os.open('/dev/dri/renderD128', os.O_RDWR); print(os.write(n, b'x'), os.read(n, 1));"
        "print(sorted(os.listdir('/dev/dri')), os.path.exists('/dev/nvidia0'))"
    )
    shown = Bind(source="/dev/null", target="/dev/dri/renderD128", access=Access.DEVICE)
    done = jail.run(JailSpec(argv=("/usr/bin/python3", "-I", "-S", "-c", code), cwd="/", binds=(shown,)))
    assert (done.ending, done.stderr) == (JailOutcome.EXITED, b"")
    assert done.stdout.decode().splitlines() == ["1 b''", "['renderD128'] False"]
    for odd in (
        replace(shown, target="/dev/sda"), replace(shown, target="/dev/dri/renderD1/../../sda"),
        replace(shown, source="/etc/passwd"), replace(shown, access=Access.READ_WRITE),
        replace(shown, target="/dev/mem"), replace(shown, target="/srv/null"),
    ):  # fmt: skip
        with pytest.raises(CannotEnforce, match="the jail was refused"):
            jail.run(JailSpec(argv=("/usr/bin/python3", "-c", "1"), cwd="/", binds=(odd,)))
    none = jail.run(JailSpec(argv=("/usr/bin/python3", "-I", "-S", "-c", code), cwd="/"))
    assert b"No such file" in none.stderr
