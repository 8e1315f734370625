"""FLEET.toml becomes a `Fleet`, or a UsageFault that lists every fault with its line.

Strict as policies are: unknown keys, wrong types and places that cannot be are refused together. `look=False` leaves
out the looks at the file system: a run that goes on reads the same bytes again, whatever became of the folders.
"""

import re
import shutil
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import time
from pathlib import Path

from localagent.batch.certificates import CertificateRole, faults_of
from localagent.batch.fleet import Cluster, DiskPriority, Fleet, FleetMember, TimeWindow, TreeSource, WorkKind
from localagent.domain.chat import PREFIX, chat_model_fault
from localagent.domain.edit import digest_of
from localagent.domain.guard import DEFAULT_SECONDS, guard_faults
from localagent.domain.instruction import instruction_fault
from localagent.domain.policy import JailLevel
from localagent.errors import UsageFault
from localagent.fs.bounded_read import read_prefix
from localagent.policy.table import Faults, Table, parse_toml
from localagent.protocol.task_order import command_fault

SCHEMA = "localagent/fleet/1"
MAX_BYTES = 4 << 20
MAX_MEMBERS = 10_000
_MAX_SECONDS = 7 * 86_400.0
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_REVISION = re.compile(r"(?!.*(\.\.|@\{|//|\.lock(/|$)))[A-Za-z0-9][A-Za-z0-9._/-]{0,250}")
_SCHEDULER = re.compile(r"tls://[A-Za-z0-9._\[\]:-]{1,253}:\d{1,5}")
_CLOCK = re.compile(r"([01]\d|2[0-3]):[0-5]\d")
_REMEDY = "docs/batch.md describes every key and shows a whole fleet"


@dataclass(frozen=True, kw_only=True, slots=True)
class _ParseContext:
    """What reading one file needs to know. `rules` are the hook's; `folder` is where relative paths begin."""

    folder: Path
    rules: Collection[str]
    look: bool


def read_fleet(path: Path) -> bytes:
    """The bytes of a fleet's file. UsageFault where it cannot be read."""
    return read_prefix(path, MAX_BYTES, _REMEDY)


def parse_fleet(data: bytes, source: str, folder: Path, rules: Collection[str], *, look: bool = True) -> Fleet:
    """The fleet in some bytes; `source` names them in faults, relative paths begin at `folder`."""
    values, text = parse_toml(data, source, most_bytes=MAX_BYTES, remedy=_REMEDY)
    faults = Faults(source, text, default_line=1)
    fleet = _fleet(Table(values, "", faults), _ParseContext(folder=folder, rules=rules, look=look), digest_of(data))
    if faults.lines:
        raise UsageFault(faults.lines, remedy=_REMEDY)
    return fleet


def _fleet(top: Table, place: _ParseContext, digest: str) -> Fleet:
    schema = top.take_text("schema")
    if schema not in (SCHEMA, "missing"):
        top.fault("schema", f"must be {SCHEMA!r}, not {schema!r}")
    name = _name(top, "name", top.take_text("name"))
    total, polite, each = (top.take_table(key, required=False) for key in ("total", "polite", "each"))
    window = _window(top.take_table("window", required=False)) if top.holds("window") else None
    defaults = _member_keys(each, place, None)
    each.close()
    entries = top.take_tables("repository")
    if not entries:
        top.fault("repository", "is missing: at least one [[repository]]")
    if len(entries) > MAX_MEMBERS:
        top.fault("repository", f"more than {MAX_MEMBERS:,}")
    members = [_member(entry, place, defaults) for entry in entries[:MAX_MEMBERS]]
    _unlike(entries, members)
    far = top.holds("cluster") and any(member.chat_model.startswith(PREFIX) for member in members)
    if far:
        top.fault("cluster", "a model server's socket is of this machine: name a model registered on the workers")
    disk = polite.take_choice("disk", DiskPriority, instead=DiskPriority.IDLE)
    if place.look and disk is not DiskPriority.NORMAL and shutil.which("ionice") is None:
        polite.fault("disk", 'there is no ionice on this machine: install util-linux, or say disk = "normal"')
    fleet = Fleet(
        name=name,
        members=tuple(members),
        jobs=total.take_count("jobs", instead=1, least=1, most=256),
        max_seconds=total.take_seconds("max_seconds", instead=None, most=_MAX_SECONDS),
        window=window,
        nice=polite.take_count("nice", instead=10, least=0, most=19),
        disk=disk,
        cluster=_cluster(top.take_table("cluster", required=False), place) if top.holds("cluster") else None,
        digest=digest,
    )
    for table in (total, polite, top):
        table.close()
    return fleet


def _name(table: Table, key: str, name: str) -> str:
    if not _NAME.fullmatch(name):
        table.fault(key, f"{name!r} is no name: up to 100 letters, digits, `.`, `_`, `-`, the first a letter or digit")
    return name


def _window(table: Table) -> TimeWindow | None:
    texts = [table.take_text(key) for key in ("from", "until")]
    for key, text in zip(("from", "until"), texts, strict=True):
        if text != "missing" and not _CLOCK.fullmatch(text):
            table.fault(key, f"{text!r} is no time of the day, as 22:00")
    table.close()
    if not all(_CLOCK.fullmatch(text) for text in texts):
        return None
    if texts[0] == texts[1]:
        table.fault("until", "the window is empty: leave [window] out to work at any time")
    return TimeWindow(start=time.fromisoformat(texts[0]), end=time.fromisoformat(texts[1]))


def _cluster(table: Table, place: _ParseContext) -> Cluster:
    scheduler = table.take_text("scheduler")
    if not _SCHEDULER.fullmatch(scheduler):
        table.fault("scheduler", f"{scheduler!r} is no tls://HOST:PORT: nothing goes to a cluster without TLS")
    folder = _path(table, "certificates", place)
    for fault in faults_of(folder, CertificateRole.CLIENT) if place.look else ():
        table.fault("certificates", fault)
    level = table.take_choice("level", JailLevel, instead=JailLevel.L1)
    table.close()
    return Cluster(scheduler=scheduler, certificates=folder, level=level.value)


def _member_keys(table: Table, place: _ParseContext, defaults: FleetMember | None) -> FleetMember:
    """What may stand in [each] and in [[repository]] alike."""
    default = defaults or FleetMember(name="", source=TreeSource(folder=Path()), work=(WorkKind.FAILING_TESTS,))
    return FleetMember(
        name="",
        source=TreeSource(folder=Path()),
        work=_work(table, default.work),
        max_seconds=table.take_seconds("max_seconds", instead=default.max_seconds, most=_MAX_SECONDS)
        or default.max_seconds,
        max_candidates=table.take_count("max_candidates", instead=default.max_candidates, least=1, most=1_000_000),
        memory_bytes=table.take_count("memory_mib", instead=default.memory_bytes >> 20, least=512, most=1 << 20) << 20,
        use_model=table.take_flag("model", instead=default.use_model),
        policy=_file(table, "policy", place) if table.holds("policy") else default.policy,
        rules=table.take_texts(
            "rules", required=False, instead=default.rules, valid=lambda rule: _rule_fault(rule, place)
        ),
        seed=table.take_count("seed", instead=default.seed, least=0, most=1 << 31),
        instruction=_checked(table, "instruction", default.instruction, instruction_fault),
        chat_model=_checked(table, "chat_model", default.chat_model, chat_model_fault),
        assume=table.take_flag("assume", instead=default.assume),
        max_tokens=table.take_count("max_tokens", instead=default.max_tokens, most=1_000_000_000),
    )


def _checked(table: Table, key: str, instead: str, fault_of: Callable[[str], str]) -> str:
    if not table.holds(key):
        return instead
    found = table.take_text(key)
    if fault := fault_of(found):
        table.fault(key, fault)
    return found


def _rule_fault(rule: str, place: _ParseContext) -> str:
    return (
        ""
        if rule in place.rules or not place.look
        else f"there is no rule {rule!r}: `localagent hook check --rules` lists them"
    )


def _work(table: Table, default: tuple[WorkKind, ...]) -> tuple[WorkKind, ...]:
    def fault(name: str) -> str:
        return "" if name in set(WorkKind) else f"{name!r} is no work: one of {', '.join(WorkKind)}"

    names = table.take_texts("work", required=False, instead=tuple(default), valid=fault)
    if not names:
        table.fault("work", f"names nothing to do: {', '.join(WorkKind)}")
    if len(set(names)) < len(names):
        table.fault("work", "names something twice")
    if WorkKind.INSTRUCTION.value in names and len(names) > 1:
        table.fault("work", f"{WorkKind.INSTRUCTION.value!r} goes alone: other work is for a fleet of its own")
    return tuple(work for work in WorkKind if work.value in names)


def _member(table: Table, place: _ParseContext, defaults: FleetMember) -> FleetMember:
    given = [key for key in ("path", "mirror") if table.holds(key)]
    if len(given) != 1:
        table.fault("path", "either `path`, a working tree, or `mirror`, an object store with a `revision`")
    folder = _folder(table, given[0], place) if given else Path()
    revision = ""
    if "mirror" in given:
        revision = table.take_text("revision")
        if not _REVISION.fullmatch(revision):
            table.fault("revision", f"{revision!r} is no revision: the name of a branch or tag, refs/…, or a commit")
        if place.look and not ((folder / "objects").is_dir() and (folder / "HEAD").is_file()):
            table.fault("mirror", f"{folder} is no bare repository: `git clone --mirror` makes one")
    shared = _member_keys(table, place, defaults)
    member = replace(
        shared,
        name=_name(table, "name", table.take_text("name", instead=folder.name.removesuffix(".git"))),
        source=TreeSource(folder=folder, revision=revision),
        tests=table.take_texts("tests", required=False),
        guard=_guard(table),
        checks=table.take_texts("checks", required=False, valid=command_fault),
        python=_python(table, place),
        sarif=_logs(table, place),
        sarif_was_at=_was_at(table),
    )
    if WorkKind.SARIF in member.work and not member.sarif:
        table.fault("sarif", "is missing: the logs whose findings are to be repaired")
    if member.sarif and WorkKind.SARIF not in member.work:
        table.fault("sarif", f"is for the work {WorkKind.SARIF.value!r}, which is not asked for")
    if WorkKind.INSTRUCTION in member.work and not member.instruction:
        table.fault("instruction", "is missing: what is to be changed, in words")
    if WorkKind.INSTRUCTION in member.work and member.guard:
        table.fault("guard", "is for repairs: an instruction keeps every test passing")
    if table.holds("instruction") and WorkKind.INSTRUCTION not in member.work:
        table.fault("instruction", f"is for the work {WorkKind.INSTRUCTION.value!r}, which is not asked for")
    table.close()
    return member


def _guard(table: Table) -> tuple[str, ...]:
    found = table.take_texts("guard", required=False)
    for fault in guard_faults(found, DEFAULT_SECONDS):
        table.fault("guard", fault.removeprefix("--guard: "))
    return found


def _logs(table: Table, place: _ParseContext) -> tuple[Path, ...]:
    def fault(name: str) -> str:
        if "\0" in name:
            return "a path holds no NUL"
        return "" if not place.look or (place.folder / name).is_file() else f"{place.folder / name} is not a file"

    return tuple(place.folder / name for name in table.take_texts("sarif", required=False, valid=fault))


def _was_at(table: Table) -> str:
    found = table.take_text("sarif_was_at", instead="")
    if found and ("\0" in found or not Path(found).is_absolute()):
        table.fault("sarif_was_at", f"{found!r} is not absolute")
    return found


def _folder(table: Table, key: str, place: _ParseContext) -> Path:
    path = _path(table, key, place)
    if place.look and not path.is_dir():
        table.fault(key, f"{path} is not a directory")
    return path


def _file(table: Table, key: str, place: _ParseContext) -> Path:
    path = _path(table, key, place)
    if place.look and not path.is_file():
        table.fault(key, f"{path} is not a file")
    return path


def _path(table: Table, key: str, place: _ParseContext) -> Path:
    text = table.take_text(key)
    if "\0" in text:
        table.fault(key, "a path holds no NUL")
        return place.folder
    return place.folder / text


def _python(table: Table, place: _ParseContext) -> str:
    """An interpreter or a virtual environment's folder, not resolved: a link in an environment has a meaning."""
    if not table.holds("python"):
        return ""
    path = _path(table, "python", place)
    if place.look and not path.exists():
        table.fault("python", f"{path}: no such interpreter or virtual environment")
    return str(path)


def _unlike(entries: list[Table], members: list[FleetMember]) -> None:
    """No name and no tree stands twice."""
    names: dict[str, str] = {}
    sources: dict[tuple[str, str], str] = {}
    for entry, member in zip(entries, members, strict=False):
        place = (str(member.source.folder), member.source.revision)
        other = names.setdefault(member.name.casefold(), entry.at(""))
        if other != entry.at(""):
            entry.fault("name", f"{member.name!r} is the name of {other.rstrip('.')} as well: give one a `name`")
        other = sources.setdefault(place, entry.at(""))
        if other != entry.at(""):
            entry.fault("path", f"{place[0]} stands at {other.rstrip('.')} as well")
