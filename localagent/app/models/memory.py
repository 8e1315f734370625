"""`model bench --memory`: the most that a model's process takes when it is asked for all that a task may ask.

It orders edits, and then writes many answers to a question as long as the model reads, so that both contexts are full.
Not promised: that another llama.cpp takes as much.
"""

from collections.abc import Callable
from dataclasses import dataclass

from localagent.app.jail_level import open_policy_jail
from localagent.app.models.tuning import reference_edits
from localagent.app.settings import Settings
from localagent.errors import CannotEnforce
from localagent.llm.model.gpu import offload_of
from localagent.llm.model.quantized_store import serving, spare_of
from localagent.llm.model.registry import Registry
from localagent.llm.process.batched_sampling import Draw
from localagent.llm.scoring.scorer import ModelScorer
from localagent.llm.writing.sample_client import ModelSampler, text_prompt

_SECONDS = 600.0
_ANSWERS = 8
_ANSWER_TOKENS = 96
_LINE = "x = 1\n"
_LEAST_LINES = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class Peak:
    """What one process took at most, and the limit of its jail, in bytes; `weights_bytes` is the file that served."""

    name: str
    form: str
    weights_bytes: int
    resident_bytes: int
    limit_bytes: int


def peak_of(name: str, settings: Settings, say: Callable[[str], None]) -> Peak:
    """Measure one model ("": the default) as it serves here. CannotEnforce where it cannot be used."""
    model = Registry(settings.models_dir, settings.data_dir).verify(name)
    tuned = serving(model, settings.data_dir)
    reference = reference_edits(settings)
    jail = open_policy_jail(settings)
    scorer = ModelScorer(tuned, jail, spare=spare_of(tuned, model), offload=offload_of(settings.gpu_layers))
    try:
        scorer.score(reference.source, "", reference.edits, timeout_seconds=_SECONDS)
        scorer.mend(reference.source, "", reference.edits, timeout_seconds=_SECONDS)
        sampler = ModelSampler(scorer)
        lines, refused = sampler.path_tokens, "do not fit"
        while "do not fit" in refused and lines >= _LEAST_LINES:
            lines = lines * 3 // 4
            how = Draw(seeds=tuple(range(_ANSWERS)), most_tokens=_ANSWER_TOKENS, temperature=1.0)
            refused = sampler.draw(text_prompt(_LINE * lines), how, timeout_seconds=_SECONDS).refused
        scorer.refuse_if_dropped()
        if refused:
            raise CannotEnforce(f"{model.name} could not be asked: {refused}")
        if scorer.remark:
            say(scorer.remark)
        served = model if scorer.remark else tuned
        return Peak(
            name=model.name,
            form=served.quantization,
            weights_bytes=served.bytes,
            resident_bytes=scorer.resident_bytes,
            limit_bytes=scorer.memory_limit_bytes,
        )
    finally:
        scorer.close()
