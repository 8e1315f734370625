"""A patch as JSON: before and after of every file, with digests. What is read back is parsed strictly."""

import base64
import binascii
from typing import Any

from localagent.domain.edit import FileChange, FileFate, Patch, digest_of
from localagent.domain.paths import RepoPath
from localagent.errors import UsageFault
from localagent.fs.atomic_files import RecordDamaged

SCHEMA = "localagent/patch/1"
_CHANGE = {"path", "before", "before_digest", "after", "after_digest"}


def patch_json(patch: Patch) -> dict[str, Any]:
    """As JSON, bytes as base64."""
    return {
        "schema": SCHEMA,
        "digest": patch.digest,
        "changes": [
            {
                "path": change.path,
                "before": base64.b64encode(change.before).decode("ascii"),
                "before_digest": digest_of(change.before),
                "after": base64.b64encode(change.after).decode("ascii"),
                "after_digest": digest_of(change.after),
                **({"fate": change.fate.value} if change.fate is not FileFate.CHANGED else {}),
            }
            for change in patch.changes
        ],
    }


def parse_patch(found: object, source: str) -> Patch:
    """From JSON, every digest checked; RecordDamaged names `source`."""
    try:
        table = exactly(found, {"schema", "digest", "changes"})
        if table["schema"] != SCHEMA or not isinstance(table["changes"], list):
            raise ValueError("another schema")
        changes = tuple(
            FileChange(
                path=RepoPath(_text(c["path"])),
                before=_bytes(c, "before"),
                after=_bytes(c, "after"),
                fate=FileFate(c.get("fate", FileFate.CHANGED.value)),
            )
            for c in (exactly(c, _CHANGE | ({*c} & {"fate"})) for c in table["changes"])
        )
        paths = [c.path for c in changes]
        if paths != sorted(set(paths)):
            raise ValueError("paths are doubled or not sorted")
        patch = Patch(changes=changes)
        if patch.digest != table["digest"]:
            raise ValueError("the digest of the patch does not match")
    except (TypeError, ValueError, binascii.Error, UsageFault) as error:
        raise RecordDamaged(
            f"{source} is damaged: {error}", remedy="the patch cannot be trusted; run the task again"
        ) from error
    return patch


def exactly(found: object, keys: set[str]) -> dict[str, Any]:
    """A JSON object with these keys and no others. TypeError for anything else."""
    if not isinstance(found, dict) or set(found) != keys:
        raise TypeError(f"not exactly the keys {', '.join(sorted(keys))}")
    return found


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value


def _bytes(change: dict[str, Any], side: str) -> bytes:
    data = base64.b64decode(_text(change[side]), validate=True)
    if digest_of(data) != change[f"{side}_digest"]:
        raise ValueError(f"the digest of {change['path']!r} ({side}) does not match")
    return data
