"""FLEET.toml becomes a `Fleet`, or a UsageFault that lists every fault with its line.

Strict as policies are: unknown keys, wrong types and places that cannot be are refused together. `look=False` leaves
out the looks at the file system: a run that goes on reads the same bytes again, whatever became of the folders.
"""

import re
import shlex
import shutil
import tomllib
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import time
from pathlib import Path

from localagent.batch.certificates import CertificateRole, faults_of
from localagent.batch.fleet import Cluster, DiskPriority, Fleet, FleetMember, TimeWindow, TreeSource, WorkKind
from localagent.batch.toml_table import LineFaults, Sheet
from localagent.domain.edit import digest_of
from localagent.domain.guard import DEFAULT_SECONDS, guard_faults
from localagent.domain.policy import JailLevel
from localagent.errors import UsageFault

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
class _Place:
    """What reading one file needs to know. `rules` are the hook's; `folder` is where relative paths begin."""

    folder: Path
    rules: Collection[str]
    look: bool


def read_fleet(path: Path) -> bytes:
    """The bytes of a fleet's file. UsageFault where it cannot be read."""
    try:
        with path.open("rb") as stream:
            return stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise UsageFault(f"{path}: cannot be read: {error.strerror or error}", remedy=_REMEDY) from error


def parse_fleet(data: bytes, source: str, folder: Path, rules: Collection[str], *, look: bool = True) -> Fleet:
    """The fleet in some bytes; `source` names them in faults, relative paths begin at `folder`."""
    if len(data) > MAX_BYTES:
        raise UsageFault(f"{source}: larger than {MAX_BYTES:,} bytes", remedy=_REMEDY)
    try:
        text = data.decode("utf-8")
        values = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageFault(f"{source}: not TOML: {error}", remedy=_REMEDY) from error
    faults = LineFaults(source, text)
    fleet = _fleet(Sheet(values, "", faults), _Place(folder=folder, rules=rules, look=look), digest_of(data))
    if faults.lines:
        raise UsageFault(faults.lines, remedy=_REMEDY)
    return fleet


def _fleet(top: Sheet, place: _Place, digest: str) -> Fleet:
    schema = top.take_text("schema")
    if schema not in (SCHEMA, "missing"):
        top.fault("schema", f"must be {SCHEMA!r}, not {schema!r}")
    name = _name(top, "name", top.take_text("name"))
    total, polite, each = top.below("total"), top.below("polite"), top.below("each")
    window = _window(top.below("window")) if top.holds("window") else None
    defaults = _member_keys(each, place, None)
    each.close()
    entries = [Sheet.of(entry) for entry in top.take_tables("repository")]
    if not entries:
        top.fault("repository", "is missing: at least one [[repository]]")
    if len(entries) > MAX_MEMBERS:
        top.fault("repository", f"more than {MAX_MEMBERS:,}")
    members = [_member(entry, place, defaults) for entry in entries[:MAX_MEMBERS]]
    _unlike(entries, members)
    disk = polite.choice("disk", DiskPriority, DiskPriority.IDLE)
    if place.look and disk is not DiskPriority.NORMAL and shutil.which("ionice") is None:
        polite.fault("disk", 'there is no ionice on this machine: install util-linux, or say disk = "normal"')
    fleet = Fleet(
        name=name,
        members=tuple(members),
        jobs=total.count("jobs", 1, least=1, most=256),
        max_seconds=total.seconds("max_seconds", None, most=_MAX_SECONDS),
        window=window,
        nice=polite.count("nice", 10, least=0, most=19),
        disk=disk,
        cluster=_cluster(top.below("cluster"), place) if top.holds("cluster") else None,
        digest=digest,
    )
    for table in (total, polite, top):
        table.close()
    return fleet


def _name(table: Sheet, key: str, name: str) -> str:
    if not _NAME.fullmatch(name):
        table.fault(key, f"{name!r} is no name: up to 100 letters, digits, `.`, `_`, `-`, the first a letter or digit")
    return name


def _window(table: Sheet) -> TimeWindow | None:
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


def _cluster(table: Sheet, place: _Place) -> Cluster:
    scheduler = table.take_text("scheduler")
    if not _SCHEDULER.fullmatch(scheduler):
        table.fault("scheduler", f"{scheduler!r} is no tls://HOST:PORT: nothing goes to a cluster without TLS")
    folder = _path(table, "certificates", place)
    for fault in faults_of(folder, CertificateRole.CLIENT) if place.look else ():
        table.fault("certificates", fault)
    level = table.choice("level", JailLevel, JailLevel.L1)
    table.close()
    return Cluster(scheduler=scheduler, certificates=folder, level=level.value)


def _member_keys(table: Sheet, place: _Place, defaults: FleetMember | None) -> FleetMember:
    """What may stand in [each] and in [[repository]] alike."""
    default = defaults or FleetMember(name="", source=TreeSource(folder=Path()), work=(WorkKind.FAILING_TESTS,))
    return FleetMember(
        name="",
        source=TreeSource(folder=Path()),
        work=_work(table, default.work),
        max_seconds=table.seconds("max_seconds", default.max_seconds, most=_MAX_SECONDS) or default.max_seconds,
        max_candidates=table.count("max_candidates", default.max_candidates, least=1, most=1_000_000),
        memory_bytes=table.count("memory_mib", default.memory_bytes >> 20, least=512, most=1 << 20) << 20,
        use_model=table.flag("model", default.use_model),
        policy=_file(table, "policy", place) if table.holds("policy") else default.policy,
        rules=table.texts("rules", default.rules, lambda rule: _rule_fault(rule, place)),
        seed=table.count("seed", default.seed, least=0, most=1 << 31),
    )


def _rule_fault(rule: str, place: _Place) -> str:
    return (
        ""
        if rule in place.rules or not place.look
        else f"there is no rule {rule!r}: `localagent hook check --rules` lists them"
    )


def _work(table: Sheet, default: tuple[WorkKind, ...]) -> tuple[WorkKind, ...]:
    def fault(name: str) -> str:
        return "" if name in set(WorkKind) else f"{name!r} is no work: one of {', '.join(WorkKind)}"

    names = table.texts("work", tuple(default), fault)
    if not names:
        table.fault("work", f"names nothing to do: {', '.join(WorkKind)}")
    if len(set(names)) < len(names):
        table.fault("work", "names something twice")
    return tuple(work for work in WorkKind if work.value in names)


def _member(table: Sheet, place: _Place, defaults: FleetMember) -> FleetMember:
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
        name=_name(table, "name", table.text("name", folder.name.removesuffix(".git"))),
        source=TreeSource(folder=folder, revision=revision),
        tests=table.texts("tests", ()),
        guard=_guard(table),
        checks=table.texts("checks", (), _command_fault),
        python=_python(table, place),
        sarif=_logs(table, place),
        sarif_was_at=_was_at(table),
    )
    if WorkKind.SARIF in member.work and not member.sarif:
        table.fault("sarif", "is missing: the logs whose findings are to be repaired")
    if member.sarif and WorkKind.SARIF not in member.work:
        table.fault("sarif", f"is for the work {WorkKind.SARIF.value!r}, which is not asked for")
    table.close()
    return member


def _guard(table: Sheet) -> tuple[str, ...]:
    found = table.texts("guard", ())
    for fault in guard_faults(found, DEFAULT_SECONDS):
        table.fault("guard", fault.removeprefix("--guard: "))
    return found


def _logs(table: Sheet, place: _Place) -> tuple[Path, ...]:
    def fault(name: str) -> str:
        if "\0" in name:
            return "a path holds no NUL"
        return "" if not place.look or (place.folder / name).is_file() else f"{place.folder / name} is not a file"

    return tuple(place.folder / name for name in table.texts("sarif", (), fault))


def _was_at(table: Sheet) -> str:
    found = table.text("sarif_was_at", "")
    if found and ("\0" in found or not Path(found).is_absolute()):
        table.fault("sarif_was_at", f"{found!r} is not absolute")
    return found


def _command_fault(command: str) -> str:
    try:
        return "" if shlex.split(command) else "is empty"
    except ValueError as fault:
        return f"{command!r}: {fault}"


def _folder(table: Sheet, key: str, place: _Place) -> Path:
    path = _path(table, key, place)
    if place.look and not path.is_dir():
        table.fault(key, f"{path} is not a directory")
    return path


def _file(table: Sheet, key: str, place: _Place) -> Path:
    path = _path(table, key, place)
    if place.look and not path.is_file():
        table.fault(key, f"{path} is not a file")
    return path


def _path(table: Sheet, key: str, place: _Place) -> Path:
    text = table.take_text(key)
    if "\0" in text:
        table.fault(key, "a path holds no NUL")
        return place.folder
    return place.folder / text


def _python(table: Sheet, place: _Place) -> str:
    """An interpreter or a virtual environment's folder, not resolved: a link in an environment has a meaning."""
    if not table.holds("python"):
        return ""
    path = _path(table, "python", place)
    if place.look and not path.exists():
        table.fault("python", f"{path}: no such interpreter or virtual environment")
    return str(path)


def _unlike(entries: list[Sheet], members: list[FleetMember]) -> None:
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
