"""`--gpu-layers` of every verb that loads a model: one line says what becomes of it; what cannot be had is refused."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from support.fix_builder import home

from localagent.app import Settings
from localagent.cli.gpu_layers import describe_layers
from localagent.llm.model.gpu import ASKED, NO_BACKEND, NO_DEVICE, devices, offloads
from localagent.llm.model.llama_build import backend_name

FLEET = """
schema = "localagent/fleet/1"
name = "x"
[each]
work = ["failing-tests"]
[[repository]]
path = "{repo}"
"""
VERBS: dict[str, Sequence[str]] = {
    "fix": ("fix", "--repo", "{repo}"),
    "serve": ("serve", "--socket", "{root}/x.sock"),
    "batch": ("batch", "run", "{root}/fleet.toml", "--anytime"),
    "train": ("train", "--from", "{repo}"),
    "bench": ("model", "bench", "--bugs", "1", "--no-repairs"),
}


def command(verb: str, root: str, repo: str, layers: str) -> list[str]:
    return [*(part.format(root=root, repo=repo) for part in VERBS[verb]), "--gpu-layers", layers]


@pytest.mark.parametrize("verb", VERBS)
def test_what_is_neither_auto_nor_a_number_is_a_usage_fault(verb: str) -> None:
    with home() as h:
        (h.root / "fleet.toml").write_text(FLEET.format(repo=h.repo))
        ran = h.run(*command(verb, str(h.root), str(h.repo), "all"))
        assert ran.code == 2
        assert "'all' is neither `auto` nor a number from 0 to 1000" in ran.err


@pytest.mark.model
@pytest.mark.skipif(offloads(backend_name()) and bool(devices()), reason="a GPU can be had here")
@pytest.mark.parametrize("verb", ["serve", "batch", "train"])
def test_a_number_that_cannot_be_had_is_refused_before_anything_runs(verb: str) -> None:
    with home() as h:
        (h.root / "fleet.toml").write_text(FLEET.format(repo=h.repo))
        ran = h.run(*command(verb, str(h.root), str(h.repo), "4"))
        assert ran.code == 4
        assert "--gpu-layers 4: not offloaded: " in ran.err
        assert "leave it out, or say `auto`" in ran.err


@pytest.mark.parametrize(
    "verb", ["hook check", "remediate --sarif x", "model tune", "model add x", "model list", "model verify", "replay x"]
)
def test_verbs_that_load_none_or_compute_on_the_processor_take_no_such_option(verb: str) -> None:
    with home() as h:
        ran = h.run(*verb.split(), "--gpu-layers", "auto")
        assert ran.code == 2
        assert "unrecognized arguments: --gpu-layers" in ran.err


@pytest.mark.model
@pytest.mark.parametrize(("layers", "lines"), [("auto", 1), ("", 0), ("0", 0)])
def test_one_line_says_what_becomes_of_them(layers: str, lines: int) -> None:
    said: list[str] = []
    describe_layers(replace(Settings.from_environ({}), gpu_layers=layers), said.append)
    assert len(said) == lines
    assert all(line.removeprefix("--gpu-layers: ") in (NO_BACKEND, NO_DEVICE, ASKED) for line in said)
