"""The daemon's settings file (TOML): every key is there, unknown ones refuse, all faults are told together.

Without `[[grant]]` tables, the user and the group of the socket may submit and nobody may do more.
"""

import grp
import pwd
from dataclasses import dataclass
from pathlib import Path

from localagent.daemon.http.peer_auth import Grant, PeerRole
from localagent.domain.chat import chat_model_fault
from localagent.errors import UsageFault
from localagent.fs.bounded_read import read_prefix
from localagent.policy.table import Faults, Table, parse_toml
from localagent.protocol.task_order import NAME

SCHEMA = "localagent/daemon/1"
_MOST_BYTES = 1 << 20
_REMEDY = "docs/daemon.md describes every key"


@dataclass(frozen=True, kw_only=True, slots=True)
class Quota:
    """What one user may have at a time, and spend a day (UTC)."""

    open_tasks: int
    stored_bytes: int
    seconds_a_day: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Rates:
    """How much one user may ask: requests a second over time and at once, connections."""

    requests_a_second: int
    burst: int
    connections: int
    all_connections: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Keeping:
    """How long what is over is kept."""

    task_days: int
    tasks: int
    blob_days: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ServedChatModel:
    """A model that writes, by the name that orders use. `model` is as `do --model` has it; `max_tokens`: of a task."""

    name: str
    model: str
    max_tokens: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Configuration:
    """Everything that the file says. `interpreters` are paths on the daemon's machine by the names orders use."""

    workers: int
    jobs: int
    task_seconds: float
    drain_seconds: float
    reserve_bytes: int
    hold: bool
    quota: Quota
    rates: Rates
    keeping: Keeping
    interpreters: tuple[tuple[str, str], ...] = ()
    grants: tuple[Grant, ...] = ()
    chat_models: tuple[ServedChatModel, ...] = ()

    def chat_model(self, name: str) -> ServedChatModel | None:
        """The one of that name, the first for ""; None where there is none."""
        return next((one for one in self.chat_models if name in ("", one.name)), None)


def load_configuration(path: Path) -> Configuration:
    """The settings in a file. UsageFault with every fault, each with the dotted path of its key."""
    data = read_prefix(path, _MOST_BYTES)
    found, _ = parse_toml(data, str(path), most_bytes=_MOST_BYTES, remedy=_REMEDY)
    faults = Faults(str(path))
    table = Table(found, "", faults)
    if table.take_text("schema") != SCHEMA:
        table.fault("schema", f"must be {SCHEMA}")
    made = _configuration(table)
    table.close()
    if faults.lines:
        raise UsageFault(faults.lines, remedy=_REMEDY)
    return made


def _configuration(table: Table) -> Configuration:
    queue, quota, rates, keeping = (table.take_table(name) for name in ("queue", "quota", "rates", "keeping"))
    made = Configuration(
        workers=queue.take_count("workers", most=64),
        jobs=queue.take_count("jobs", most=64),
        task_seconds=float(queue.take_count("task_seconds", most=86400)),
        drain_seconds=float(queue.take_count("drain_seconds", most=86400)),
        reserve_bytes=queue.take_count("reserve_mib", most=1 << 30) << 20,
        hold=queue.take_flag("hold"),
        quota=Quota(
            open_tasks=quota.take_count("open_tasks", most=1_000_000),
            stored_bytes=quota.take_count("stored_mib", most=1 << 30) << 20,
            seconds_a_day=float(quota.take_count("seconds_a_day", most=10_000_000)),
        ),
        rates=Rates(
            requests_a_second=rates.take_count("requests_a_second", most=1_000_000),
            burst=rates.take_count("burst", most=1_000_000),
            connections=rates.take_count("connections", most=100_000),
            all_connections=rates.take_count("all_connections", most=100_000),
        ),
        keeping=Keeping(
            task_days=keeping.take_count("task_days", most=36500),
            tasks=keeping.take_count("tasks", most=1_000_000),
            blob_days=keeping.take_count("blob_days", most=36500),
        ),
        interpreters=tuple(_interpreter(t) for t in table.take_tables("interpreter")),
        grants=tuple(_grant(t) for t in table.take_tables("grant")),
        chat_models=tuple(_chat_model(t) for t in table.take_tables("chat_model")),
    )
    if len({model.name for model in made.chat_models}) < len(made.chat_models):
        table.fault("chat_model", "two have one name")
    for part in (queue, quota, rates, keeping):
        part.close()
    return made


def _interpreter(table: Table) -> tuple[str, str]:
    name, path = table.take_text("name"), table.take_text("path")
    if not path.startswith("/"):
        table.fault("path", "must be an absolute path")
    table.close()
    return name, path


def _chat_model(table: Table) -> ServedChatModel:
    made = ServedChatModel(
        name=table.take_text("name"),
        model=table.take_text("model"),
        max_tokens=table.take_count("max_tokens", instead=2_000_000, most=1_000_000_000),
    )
    if not NAME.fullmatch(made.name):
        table.fault("name", f"{made.name!r} is no name: at most 64 letters, digits, `.`, `_`, `-`")
    if fault := chat_model_fault(made.model):
        table.fault("model", fault)
    table.close()
    return made


def _grant(table: Table) -> Grant:
    users = table.take_texts("users", required=False)
    groups = table.take_texts("groups", required=False)
    names = table.take_texts("roles", required=True, valid=_role_fault)
    made = Grant(
        uids=frozenset(_number(table, "users", n, name) for n, name in enumerate(users)),
        gids=frozenset(_number(table, "groups", n, name) for n, name in enumerate(groups)),
        roles=frozenset(PeerRole(name) for name in names if not _role_fault(name)),
    )
    if not users and not groups:
        table.fault("users", "a grant names users or groups")
    table.close()
    return made


def _role_fault(name: str) -> str:
    return "" if name in {role.value for role in PeerRole} else f"must be one of {', '.join(PeerRole)}, not {name!r}"


def _number(table: Table, key: str, place: int, name: str) -> int:
    """A name or a number in digits; somebody who does not exist is a fault, not a grant to nobody."""
    if name.isascii() and name.isdigit() and int(name) < 2**32 - 1:
        return int(name)
    try:
        return pwd.getpwnam(name).pw_uid if key == "users" else grp.getgrnam(name).gr_gid
    except KeyError:
        table.fault(f"{key}[{place}]", f"there is no {key.removesuffix('s')} {name!r}")
        return -1
