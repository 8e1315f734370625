"""Where a SARIF result lies: a file of the repository, by a URI that may not leave it, and lines.

Nothing is looked at: links and missing files are the reader's. Not promised: code flows and related locations, which
are given back as they came.
"""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from localagent.domain.paths import RepoPath
from localagent.errors import UsageFault
from localagent.report.sarif_checks import MAX_TEXT, Wrong, list_of, number_of, object_of, shown, text_of

MAX_ARTIFACTS = 50_000
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_PERCENT = re.compile(rb"%([0-9A-Fa-f]{2})")
_DIGEST = re.compile(r"[0-9A-Fa-f]{64}")


def location_of(
    value: Mapping[str, Any], around: Mapping[str, Any], roots: Sequence[Path]
) -> tuple[RepoPath | None, int, int, int, str]:
    """Path, lines, column and digest of the first location; no path where the tool names none."""
    locations = list_of(value.get("locations", []), "locations", 10_000)
    if not locations:
        return None, 0, 0, 0, ""
    physical = object_of(locations[0], "locations[0]").get("physicalLocation")
    if physical is None:
        return None, 0, 0, 0, ""
    physical = object_of(physical, "physicalLocation")
    artifact = object_of(physical.get("artifactLocation"), "artifactLocation")
    listed: Mapping[str, Any] = {}
    index = artifact.get("index", -1)
    if index != -1:
        artifacts = list_of(around.get("artifacts", []), "artifacts", MAX_ARTIFACTS)
        position = number_of(index, "artifactLocation.index", least=0)
        if position >= len(artifacts):
            raise Wrong(f"artifactLocation.index {position} points at no artifact of the run")
        listed = object_of(artifacts[position], "artifacts")
    location = artifact if "uri" in artifact else object_of(listed.get("location", {}), "artifacts.location")
    path = path_of(text_of(location.get("uri"), "uri"), _base(location, around), roots)
    digest = object_of(listed.get("hashes", {}), "hashes").get("sha-256", "")
    if not isinstance(digest, str) or (digest and not _DIGEST.fullmatch(digest)):
        raise Wrong("hashes: sha-256 is no digest")
    region = object_of(physical.get("region", {}), "region")
    line = number_of(region.get("startLine", 0), "startLine", least=0)
    end = number_of(region.get("endLine", line), "endLine", least=0)
    if end < line:
        raise Wrong("the region ends before it begins")
    return path, line, end, number_of(region.get("startColumn", 0), "startColumn", least=0), digest.lower()


def _base(location: Mapping[str, Any], around: Mapping[str, Any]) -> str:
    """The URI that a location is relative to; "" for the repository's root."""
    bases = object_of(around.get("originalUriBaseIds", {}), "originalUriBaseIds")
    name, uri = location.get("uriBaseId"), ""
    for _ in range(8):
        if name is None:
            return uri
        base = object_of(bases.get(text_of(name, "uriBaseId"), {}), f"originalUriBaseIds.{shown(name)}")
        own = base.get("uri", "")
        if not isinstance(own, str) or len(own) > MAX_TEXT or (own and not own.endswith("/")):
            raise Wrong(f"the base {shown(name)} is no URI of a folder")
        uri = own + uri
        if _SCHEME.match(own):
            return uri
        name = base.get("uriBaseId")
    raise Wrong("uriBaseId: bases refer to each other without end")


def path_of(uri: str, base: str, roots: Sequence[Path]) -> RepoPath:
    """The file of the repository that a URI names. Anything else is refused, and never looked at."""
    whole = uri if _SCHEME.match(uri) or uri.startswith("/") else base + uri
    try:
        data = whole.encode()
    except UnicodeEncodeError:
        raise Wrong(f"the URI {shown(whole)} is no text") from None
    if any(c in whole for c in "?#\\") or b"%" in _PERCENT.sub(b"", data):
        raise Wrong(f"the URI {shown(whole)} is not one of a file")
    decoded = _PERCENT.sub(lambda m: bytes((int(m[1], 16),)), data)
    name = decoded.decode("utf-8", "surrogateescape")
    scheme = _SCHEME.match(whole)
    if scheme:
        if scheme[0].lower() != "file:":
            raise Wrong(f"the URI {shown(whole)} is not one of a file")
        name = name[len("file:") :]
        name = re.sub(r"\A//(localhost)?(?=/)", "", name)
    if ".." in name.split("/"):
        raise Wrong(f"the URI {shown(whole)} leaves the repository")
    if name.startswith("/"):
        plain = os.path.normpath(name) if not name.startswith("//") else name
        inside = [plain[len(str(r)) + 1 :] for r in roots if plain.startswith(str(r).rstrip("/") + "/")]
        if not inside:
            raise Wrong(f"the URI {shown(whole)} leaves the repository")
        name = inside[0]
    try:
        return RepoPath("/".join(part for part in name.split("/") if part != "."))
    except UsageFault:
        raise Wrong(f"the URI {shown(whole)} names no file of the repository") from None
