"""The model of a `fix` task: which one, in what process, and what it reads in front of a source."""

import os
from dataclasses import dataclass

from localagent.app.fix.request import FixRequest
from localagent.app.settings import Settings
from localagent.domain.outcome import Baseline
from localagent.domain.paths import RepoPath
from localagent.domain.task import Event, Task
from localagent.errors import CannotEnforce, UsageFault
from localagent.llm.model.gpu import Offload, offload_of
from localagent.llm.model.quantized_store import serving, spare_of, tuned_on_another_machine
from localagent.llm.model.registry import ModelFile, Registry
from localagent.llm.process.shared_model_client import Hosted
from localagent.llm.scoring.scorer import ModelScorer
from localagent.llm.scoring.test_context import build_context
from localagent.ports import Jail, Sink, Sources
from localagent.repair.search.partial_progress import baseline_failures

_ELSEWHERE = (
    "model {name} was tuned on another processor or with another build of llama.cpp, and runs here as it came, which"
    " may be slower; `localagent model tune` measures anew"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenModel:
    """A model with what scores by it; neither, and in `warnings` why, where the default one is not there."""

    file: ModelFile | None = None
    scorer: ModelScorer | None = None
    warnings: tuple[str, ...] = ()


def open_model(request: FixRequest, settings: Settings, jail: Jail, sink: Sink) -> OpenModel:
    """Nothing runs yet: the scorer starts its process when it is asked. To be closed by the caller."""
    file, said = _model(request, settings)
    if file is not None and tuned_on_another_machine(settings.data_dir, file.sha256):
        said = _ELSEWHERE.format(name=file.name)
    if said:
        sink.emit(Event(kind="warning", at_seconds=0.0, data={"text": said}))
    scorer = _scorer(file, settings, jail, request) if file is not None else None
    return OpenModel(file=file, scorer=scorer, warnings=(said,) if said else ())


def context_of(path: RepoPath, baseline: Baseline, sources: Sources, task: Task) -> str:
    """What the model reads in front of the source: the visible tests that fail, first."""
    failing = set(baseline.failing)
    tests = dict.fromkeys(t.path for t in baseline.tests if t.id in failing and t.path is not None)
    texts = [(p, sources[p]) for p in tests if p in sources]
    return build_context(texts, baseline_failures(baseline), path, task=task.text, source=sources[path])


def free_cores() -> int:
    """Cores that nobody uses right now, at least one."""
    cores = len(os.sched_getaffinity(0))
    return max(1, min(cores, round(cores - os.getloadavg()[0])))


def _model(request: FixRequest, settings: Settings) -> tuple[ModelFile | None, str]:
    """The model, or why there is none. The default one may be missing or altered; one that was named may not."""
    if not request.use_model:
        return None, ""
    registry = Registry(settings.models_dir, settings.data_dir)
    try:
        return (registry.resolve(request.model) if request.model else registry.default()), ""
    except (CannotEnforce, UsageFault) as fault:  # of the second kind is a manifest that cannot be read
        if request.model:
            raise
        return None, f"no model: {fault}; {fault.remedy}"


def _scorer(model: ModelFile, settings: Settings, jail: Jail, request: FixRequest) -> ModelScorer:
    """With the format of the weights that is fastest on this machine, where that was measured."""
    tuned = serving(model, settings.data_dir)
    starter = jail if request.model_line is None else Hosted(descriptor=request.model_line)
    hosted = request.model_line is not None
    offload = Offload() if hosted else offload_of(request.gpu_layers or settings.gpu_layers)
    return ModelScorer(
        tuned,
        starter,
        threads=request.threads,
        spare=spare_of(tuned, model),
        hosted=hosted,
        offload=offload,
    )
