"""Whether the default model runs on this machine: it is loaded in its jail, as a task loads it, and asked once."""

from localagent.app.jail_level import open_policy_jail
from localagent.app.models.tuning import reference_edits
from localagent.app.settings import Settings
from localagent.errors import CannotEnforce
from localagent.llm.model.quantized_store import serving, spare_of
from localagent.llm.model.registry import ModelFile
from localagent.llm.scoring.scorer import ModelScorer

_SECONDS = 60.0
_EDITS = 4


def try_model(model: ModelFile, settings: Settings) -> str:
    """How fast it loaded and what had to be left out for that. CannotEnforce where it does not run here."""
    served = serving(model, settings.data_dir)
    reference = reference_edits(settings)
    scorer = ModelScorer(served, open_policy_jail(settings), spare=spare_of(served, model))
    try:
        found = scorer.score(reference.source, "", reference.edits[:_EDITS], timeout_seconds=_SECONDS)
        scorer.refuse_if_dropped()
        if None in found:
            raise CannotEnforce(
                f"{model.name} ranked {sum(s is not None for s in found)} of {_EDITS} edits in {_SECONDS:.0f} s",
                remedy="the machine may be busy: try again, or leave the model out with --no-model",
            )
        return f"loaded in {scorer.load_seconds:.1f} s" + (f"; {scorer.remark}" if scorer.remark else "")
    finally:
        scorer.close()
