"""What an answer depends on, as one digest: tree, request, policy, model, interpreter, and the tool itself.

Not promised: that packages of an environment whose version did not change were not edited in place.
"""

import hashlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from localagent import __version__
from localagent.app.fix.environment import own_python
from localagent.app.policies import DEFAULT, open_policy
from localagent.app.settings import PACKAGE, Settings
from localagent.batch.fleet import FleetMember
from localagent.domain.edit import digest_of
from localagent.errors import CannotEnforce
from localagent.fs.atomic_files import RecordDamaged, read_bounded
from localagent.llm.model.registry import Registry
from localagent.report.sarif_input import MAX_BYTES
from localagent.text.strict_json import dump

_MOST_PACKAGES = 20_000


@dataclass(frozen=True, kw_only=True, slots=True)
class CacheBasis:
    """What holds for a whole run: `tool` covers our code and data, `policies` maps each policy file to its digest."""

    tool: str
    policies: dict[str, str]


def basis_of(members: tuple[FleetMember, ...], settings: Settings) -> CacheBasis:
    """As things stand now. UsageFault where a policy cannot be read."""
    paths = {policy_of(member) for member in members}
    # the system's layers too; the repository's is part of its tree
    policies = {str(path): digest_of(open_policy(settings, path).recorded()) for path in sorted(paths)}
    return CacheBasis(tool=_tool(settings), policies=policies)


def policy_of(member: FleetMember) -> Path:
    """The policy that holds for a repository."""
    return member.policy or Path(DEFAULT)


def key_of(member: FleetMember, tree: str, basis: CacheBasis, settings: Settings) -> str:
    """Equal keys, equal answers: the repository's name and place are no part of it."""
    request = {
        "work": member.work,
        "tests": member.tests,
        "guard": member.guard,
        "checks": member.checks,
        "rules": member.rules,
        "seed": member.seed,
        "max_seconds": member.max_seconds,
        "max_candidates": member.max_candidates,
        "memory": member.memory_bytes,
        "sarif": [_log_digest(path) for path in member.sarif],
        "sarif_was_at": member.sarif_was_at,
        "instruction": [member.instruction, member.chat_model, member.assume, member.max_tokens],
    }
    parts = {
        "tree": tree,
        "request": request,
        "policy": basis.policies[str(policy_of(member))],
        "model": _model(settings) if member.use_model else "",
        "python": _environment(member),
        "tool": basis.tool,
    }
    return digest_of(dump(parts))


def _log_digest(path: Path) -> str:
    """Of a log's bytes, as far as one is read at all; "" for one that is not there: the work itself says so."""
    try:
        return digest_of(read_bounded(path, MAX_BYTES))
    except (OSError, RecordDamaged):
        return ""


def _tool(settings: Settings) -> str:
    hashed = hashlib.sha256(__version__.encode())
    data = (*settings.models_dir.glob("*.json"), *settings.sandbox_dir.glob("*.toml"))
    for path in sorted((*PACKAGE.rglob("*.py"), *data)):
        hashed.update(path.name.encode() + b"\0" + path.read_bytes())
    return f"{__version__}+{hashed.hexdigest()[:16]}"


def _model(settings: Settings) -> str:
    try:
        return Registry(settings.models_dir, settings.data_dir).default().sha256
    except CannotEnforce:
        return "none"


def _environment(member: FleetMember) -> list[object]:
    """The interpreter and the names and versions beside it. Looks, does not run."""
    own = own_python(member.source.folder) if not member.source.revision else None
    named = Path(member.python or own or sys.executable)
    home = named if (named / "pyvenv.cfg").is_file() else named.parent.parent
    inside = home.is_relative_to(member.source.folder)
    packages: list[str] = []
    for site in sorted(home.glob("lib/python*/site-packages")):
        with os.scandir(site) as entries:
            packages += sorted(e.name for e in entries if e.name.endswith((".dist-info", ".egg-info", ".pth")))
    place = str(home.relative_to(member.source.folder)) if inside else str(named)
    return [place, inside, packages[:_MOST_PACKAGES]]
