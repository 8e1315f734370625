"""Handlers for contents: whether somebody has uploaded them, which are missing, taking them."""

from starlette.requests import Request
from starlette.responses import Response

from localagent.daemon.http.peer_auth import PeerRole
from localagent.daemon.http.request_context import (
    RequestContext,
    content_length,
    context_of,
    digest_of_path,
    json_body,
    peer_of,
    pieces,
    require,
    threaded,
)
from localagent.daemon.http.responses import HEADERS, answer, nothing
from localagent.daemon.store.blobs import BlobWriter
from localagent.errors import UsageFault
from localagent.protocol.snapshot_manifest import MAX_FILE_BYTES
from localagent.protocol.task_order import DIGEST

MOST_ASKED = 10_000
_GATHER_BYTES = 1 << 20


async def has_blob(request: Request) -> Response:
    """Whether the asker has uploaded a content."""
    size = context_of(request).seen.size(peer_of(request).uid, digest_of_path(request))
    if size is None:
        raise nothing()
    return Response(None, 200, {**HEADERS, "x-size": str(size)})


async def missing_blobs(request: Request) -> Response:
    """Which of some contents the asker has not uploaded."""
    require(request, PeerRole.SUBMIT)
    found = await json_body(request)
    digests = found.get("digests") if isinstance(found, dict) and set(found) == {"digests"} else None
    if not isinstance(digests, list) or len(digests) > MOST_ASKED:
        raise UsageFault(f"an object with one list `digests` of at most {MOST_ASKED}")
    if not all(isinstance(digest, str) and DIGEST.fullmatch(digest) for digest in digests):
        raise UsageFault("digests: each is sha256:<64 hexadecimal digits>")
    desk = context_of(request)
    return answer({"missing": list(await threaded(desk.blobs.missing, peer_of(request).uid, digests))})


async def put_blob(request: Request) -> Response:
    """Take a content: 201, or 200 when the asker had uploaded it before. On the disk before it is answered."""
    require(request, PeerRole.SUBMIT)
    digest, desk, uid = digest_of_path(request), context_of(request), peer_of(request).uid
    size = content_length(request, MAX_FILE_BYTES)
    desk.require_disk_space()
    writer = await threaded(
        lambda: desk.blobs.writer(uid, digest, size, most_bytes=desk.configuration.quota.stored_bytes)
    )
    try:
        gathered = bytearray()
        async for piece in pieces(request):
            gathered += piece
            if len(gathered) >= _GATHER_BYTES:
                await threaded(writer.write, bytes(gathered))
                gathered.clear()
        new = await threaded(_keep, desk, uid, writer, bytes(gathered))
    finally:
        writer.abort()
    return answer({"digest": digest, "size": size}, status=201 if new else 200)


def _keep(desk: RequestContext, uid: int, writer: BlobWriter, rest: bytes) -> bool:
    writer.write(rest)
    return desk.blobs.keep(uid, writer)
