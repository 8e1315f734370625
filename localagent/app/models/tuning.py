"""`model tune`: the reference edits that formats of a model are compared by, and the parts that measuring needs."""

from collections.abc import Callable
from pathlib import Path

from localagent.app.fix.prior import load_prior
from localagent.app.jail_level import open_policy_jail
from localagent.app.settings import Settings
from localagent.domain.paths import RepoPath
from localagent.edit.space import open_edit_space
from localagent.errors import InternalFault
from localagent.llm.model.quantization_benchmark import MOST_MEMORY_BYTES, ReferenceEdits, tune
from localagent.llm.model.quantized_store import Tuned
from localagent.llm.model.registry import Registry

_PACKAGE = Path(__file__).resolve().parents[2]
_REFERENCE = RepoPath("localize/spectrum.py")
_EDITS = 200


def reference_edits(settings: Settings) -> ReferenceEdits:
    """So many edits of a small file of our own, spread evenly over its edit space."""
    source = (_PACKAGE / _REFERENCE).read_bytes()
    space = open_edit_space(load_prior(settings.models_dir / "prior.json"))
    found = list(space.edits(_REFERENCE, {_REFERENCE: source}, lines=None, failures=()))
    if len(found) < _EDITS:
        raise InternalFault(f"{_REFERENCE} has only {len(found)} edits")
    return ReferenceEdits(source=source, edits=tuple(found[k * len(found) // _EDITS] for k in range(_EDITS)))


def tune_model(
    name: str, settings: Settings, say: Callable[[str], None], *, memory_bytes: int = MOST_MEMORY_BYTES
) -> Tuned:
    """Find the fastest format of a registered model on this machine and keep it ("": the default model).

    `memory_bytes` as `llm.tune.tune`.
    """
    model = Registry(settings.models_dir, settings.data_dir).verify(name)
    jail = open_policy_jail(settings)
    return tune(model, settings.data_dir, jail, reference_edits(settings), say, memory_bytes=memory_bytes)
