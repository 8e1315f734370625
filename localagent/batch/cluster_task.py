"""One repository as a task of a cluster: JSON and bytes in, JSON out. The worker's half, and how it is said.

The worker trusts none of it: it makes the tree anew and takes its digest, opens the policy under its own machine's
layers, and refuses where tool, policy or level are not the run's. Then it works as on one machine: a run of one
repository, in a process of its own, with its budget.
"""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from localagent.app.jail_level import least_level, open_policy_jail
from localagent.app.policies import OpenPolicy, open_policy
from localagent.app.settings import Settings
from localagent.batch.batch_ports import WorkerCommands
from localagent.batch.cache_key import CacheBasis, basis_of, policy_of
from localagent.batch.fleet import Fleet, FleetMember
from localagent.batch.parse_fleet import SCHEMA as FLEET_SCHEMA
from localagent.batch.parse_fleet import parse_fleet
from localagent.batch.run import BatchRun, Begun
from localagent.batch.runs import BatchPlan, RunStore
from localagent.batch.snapshot_archive import InvalidArchive, unpack
from localagent.batch.task_result import RepositoryResult, RepositoryState, parse_answer
from localagent.domain.chat import PREFIX
from localagent.domain.edit import digest_of
from localagent.domain.policy import JailLevel
from localagent.errors import AnswerIsNo, CannotEnforce, LocalagentError
from localagent.jail.api import scratch_folder
from localagent.text.strict_json import dump, load

SCHEMA = "localagent/batch-task/1"


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What is asked of a worker. `fleet` is a FLEET.toml of one repository without its place; digests are the run's.

    `logs` are SARIF logs by their number, `policy` the base policy's text, `level` the least level of a jail.
    """

    name: str
    fleet: str
    tree: str
    tool: str
    policy: str
    policy_digest: str
    level: str
    logs: tuple[str, ...] = ()

    def json(self) -> bytes:
        """As it is sent."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return dump({"schema": SCHEMA, **values})


def parse_request(data: bytes) -> Request:
    """Strictly. ValueError where it is not what we wrote."""
    found = load(data)
    names = set(Request.__slots__)
    if not isinstance(found, dict) or set(found) != names | {"schema"} or found.pop("schema") != SCHEMA:
        raise ValueError("not a task of localagent batch, or one of another version")
    logs = found.pop("logs")
    if not isinstance(logs, list) or not all(isinstance(value, str) for value in (*logs, *found.values())):
        raise ValueError("not a task of localagent batch: texts are wanted")
    JailLevel(found["level"])
    return Request(**found, logs=tuple(logs))


def request_of(fleet: Fleet, number: int, tree: str, seconds: float, tool: str, settings: Settings) -> Request:
    """What to ask of a worker for a repository that has so many seconds left. `tool` is the run's."""
    member = fleet.members[number]
    level = fleet.cluster.level if fleet.cluster else JailLevel.L1.value
    opened = open_policy(settings, policy_of(member))
    values: dict[str, Any] = {
        "name": member.name,
        "path": "tree",
        "work": [work.value for work in member.work],
        "max_seconds": round(max(0.001, seconds), 3),
        "max_candidates": member.max_candidates,
        "memory_mib": member.memory_bytes >> 20,
        "model": member.use_model,
        "seed": member.seed,
        "policy": "policy.toml",
    }
    lists = {"tests": member.tests, "guard": member.guard, "checks": member.checks, "rules": member.rules}
    values |= {name: list(texts) for name, texts in lists.items() if texts}
    texts = {"python": member.python, "instruction": member.instruction, "chat_model": member.chat_model}
    values |= {name: text for name, text in texts.items() if text}
    values |= {"assume": member.assume, "max_tokens": member.max_tokens} if member.instruction else {}
    logs = tuple(path.read_bytes().decode("utf-8") for path in member.sarif)
    if logs:
        values["sarif"] = [f"{n}.sarif" for n in range(len(logs))]
        values["sarif_was_at"] = member.sarif_was_at or str(member.source.folder.resolve())
    polite = ["[polite]", f"nice = {fleet.nice}", 'disk = "normal"']  # ionice is not on every machine
    lines = [f'schema = "{FLEET_SCHEMA}"', 'name = "cluster"', *polite, "[[repository]]"]
    return Request(
        name=member.name,
        fleet="\n".join((*lines, *(f"{key} = {_toml(value)}" for key, value in values.items()))) + "\n",
        tree=tree,
        tool=tool,
        policy=opened.source.decode("utf-8"),
        policy_digest=substance(opened),
        level=max(level, least_level(settings, opened.policy)),
        logs=logs,
    )


def _toml(value: object) -> str:
    """Texts, numbers, flags and lists of texts: JSON says them as TOML does, but for DEL."""
    return json.dumps(value, ensure_ascii=True).replace("\x7f", "\\u007f")


def substance(opened: OpenPolicy) -> str:
    """A digest of what a policy and its machine's layers say, wherever their files lie."""
    layers: list[Mapping[str, str]] = [{"layer": digest_of(layer.data)} for layer in opened.system]
    return digest_of(dump({"base": digest_of(opened.source), "system": layers}))


def answer_task(data: bytes, tree: bytes, ways: WorkerCommands, settings: Settings) -> bytes:
    """The worker: an answer as JSON, always; what may not be done here is its reason."""
    name = ""
    try:
        request = parse_request(data)
        name = request.name
        with scratch_folder(settings.scratch_dir) as scratch:
            return dump(_answered(request, tree, ways, settings, scratch).json())
    except LocalagentError as no:
        return dump(_refused(name, 0, no).json())
    except ValueError as fault:
        return dump(
            RepositoryResult(
                number=0, name=name, state=RepositoryState.FAULT, reason=f"a task was refused: {fault}"
            ).json()
        )


def unsent(member: FleetMember, number: int, no: LocalagentError) -> RepositoryResult:
    """The client's answer for a repository that cannot be sent."""
    answer = _refused(member.name, number, no)
    return replace(answer, reason=answer.reason.replace(str(member.source.folder), "the repository"))


def _refused(name: str, number: int, no: LocalagentError) -> RepositoryResult:
    cannot = isinstance(no, CannotEnforce)
    state = (
        RepositoryState.CANNOT_ENFORCE
        if cannot
        else RepositoryState.REFUSED
        if isinstance(no, AnswerIsNo)
        else RepositoryState.FAULT
    )
    return RepositoryResult(number=number, name=name, state=state, reason=str(no), remedy=no.remedy)


def _answered(
    request: Request, tree: bytes, ways: WorkerCommands, settings: Settings, scratch: Path
) -> RepositoryResult:
    (scratch / "policy.toml").write_text(request.policy, encoding="utf-8")
    for n, log in enumerate(request.logs):
        (scratch / f"{n}.sarif").write_text(log, encoding="utf-8")
    _same(unpack(tree, scratch / "tree"), request)
    fleet = parse_fleet(request.fleet.encode("utf-8"), "the task", scratch, ways.rules)
    basis = basis_of(fleet.members, settings)
    _recheck(request, fleet.members[0], basis, settings)
    plan = BatchPlan(
        text=request.fleet,
        source="the task",
        folder=str(scratch),
        fleet=fleet.name,
        basis=basis,
        began="",
    )
    run = RunStore(settings.state_dir).create(plan)
    try:
        BatchRun(Begun(run=run, fleet=fleet), settings, ways, jobs=1, told=lambda _: None).work(anytime=True)
        answer = run.answer(0)
    finally:
        shutil.rmtree(run.dir, ignore_errors=True)
    if answer is None:
        raise CannotEnforce("the worker left no answer", remedy="see its machine's memory and processes")
    if answer.tree:  # it was looked at: then what was seen there decides, not what was sent
        _same(answer.tree, request)
    return replace(answer, tree=request.tree, same_as="")


def _same(found: str, request: Request) -> None:
    if found != request.tree:
        raise InvalidArchive(f"the tree that came is {found}, not {request.tree}")


def _recheck(request: Request, member: FleetMember, basis: CacheBasis, settings: Settings) -> None:
    """CannotEnforce where this machine would not do what the run was begun to do."""
    if member.chat_model.startswith(PREFIX):
        raise CannotEnforce(
            "a task of the cluster names a socket of this machine as its model",
            remedy="name a model that is registered on the workers",
        )
    opened = open_policy(settings, policy_of(member))
    if basis.tool != request.tool:
        raise CannotEnforce(
            "a worker's localagent is not the run's: the answers would not fit together",
            remedy="install the same version, code and data on every machine of the cluster",
        )
    if substance(opened) != request.policy_digest:
        raise CannotEnforce(
            "the policy that holds on a worker is not the run's: its machine has other layers",
            remedy="give every machine of the cluster the same /etc/localagent/policy.d",
        )
    least = max(request.level, least_level(settings, opened.policy))
    open_policy_jail(settings, opened.policy, least=least)


def received(data: bytes, member: FleetMember, number: int, tree: str) -> RepositoryResult:
    """The client: an answer from a worker, put in its place. ValueError where it is not one for this tree."""
    answer = parse_answer(load(data))
    if answer.name != member.name or answer.tree not in ("", tree):
        raise ValueError("the answer of another repository")
    return replace(answer, number=number, tree=tree)
