"""`fix` by way of the daemon: what only works without it is refused, the rest is ordered."""

from pathlib import Path

from localagent.app.fix.request import FixOutcome, FixRequest
from localagent.app.settings import Settings
from localagent.daemon.client.task_client import RemoteRequest, run_task
from localagent.errors import UsageFault
from localagent.ports import Sink
from localagent.protocol.task_order import TaskOrder


def run_remote(request: FixRequest, socket: Path, settings: Settings, sink: Sink, *, priority: int = 0) -> FixOutcome:
    """The task at the daemon. UsageFault for what only works without it; DaemonGone when nobody is there."""
    _refuse(request)
    asked = RemoteRequest(
        repo=request.repo,
        order=order_for(request, priority),
        task=request.task(),
        policy=request.policy,
        out=request.out,
        report=request.report,
        apply=request.apply,
    )
    done = run_task(asked, socket, settings, sink)
    return FixOutcome(
        exit=done.exit,
        reason=done.reason,
        remedy=done.remedy,
        task_id=done.task_id,
        diff=done.diff,
        report=done.report,
        warnings=done.warnings,
        applied=done.applied,
    )


def _refuse(request: FixRequest) -> None:
    faults = []
    if request.policy is not None:
        faults.append("--policy: the daemon's policy holds for all its tasks (`GET /v1/policy` shows it)")
    if request.backend is not None:
        faults.append("--backend: the daemon chooses its jail")
    if request.ways:
        faults.append("--write-by: the daemon's model writes as it was measured")
    if request.gpu_layers:
        faults.append("--gpu-layers: said to the daemon's service (`serve --gpu-layers`, LOCALAGENT_GPU_LAYERS)")
    if faults:
        raise UsageFault(faults, remedy="leave it away, or work without --daemon")


def order_for(request: FixRequest, priority: int) -> TaskOrder:
    """The request as an order without its snapshot; what is a path here is a name there, which the daemon may know."""
    return TaskOrder(
        snapshot="",
        tests=request.tests,
        checks=request.checks,
        text=request.text,
        python=request.python,
        seed=request.seed,
        max_candidates=request.budget.max_candidates,
        max_seconds=request.budget.max_seconds,
        jobs=request.budget.jobs,
        use_model=request.use_model,
        model=request.model,
        priority=priority,
        choosing=request.choosing,
        guard=request.guard.specs,
        guard_seconds=request.guard.seconds,
        min_confidence=request.min_confidence,
    )
