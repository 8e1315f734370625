"""Handlers for patches that need a person: what is asked of whom, a word on one, taking it back, which words count.

Who speaks is who connected, by the kernel's word: an account that the policy names, with the role `approve`, and never
the one that ordered the task. Not promised: that two accounts are two persons.
"""

import asyncio
import pwd
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from localagent.daemon.http.peer_auth import PeerRole
from localagent.daemon.http.request_context import context_of, json_body, peer_of, task_of, threaded
from localagent.daemon.http.responses import RequestRefused, answer
from localagent.daemon.store.approval_store import (
    ReviewedPatch,
    StoredApproval,
    approvals_of,
    give,
    is_recorded,
    judged_of,
    standing,
    take_back,
)
from localagent.domain.review import PatchVerdict
from localagent.errors import UsageFault
from localagent.protocol.task_order import DIGEST

MOST_REASON = 2000
MOST_WORD_BYTES = 64 << 10
RECORD_SECONDS = 5.0  # until a word that is not on the record is answered all the same
ANYBODY = "*"
_KEYS = {"patch", "change", "reason"}


async def waiting_patches(request: Request) -> Response:
    """The patches of a task, what the gates ask a person about each, and the words that stand for them."""
    row, owner = task_of(request, PeerRole.READ_ALL, PeerRole.APPROVE)
    desk = context_of(request)
    async with desk.page_turn:
        judged = await threaded(judged_of, desk.pages, row.id)
        words = await threaded(approvals_of, desk.pages, row.id)
    shown = []
    for one in judged:
        if not owner and one.verdict == PatchVerdict.ALLOWED.value:
            continue  # nobody is asked about it, so nobody else need read it
        told: dict[str, Any] = {
            "number": one.number,
            "verdict": one.verdict,
            "patch": one.patch,
            "change": one.change,
            "asked": _lines(one.asked),
            "policy": one.policy,
            "people": _lines(one.people),
            "diff": one.diff.decode("utf-8", "surrogateescape"),
            "approvals": [approval_json(w) for w in words if (w.patch, w.change) == (one.patch, one.change)],
        }
        shown.append(told)
    return answer({"task": row.id, "state": row.state.value, "patches": shown})


async def approve_patch(request: Request) -> Response:
    """Let in a patch that needs a person: 200 once that is on the record, 202 while the recorder is waited for."""
    task, judged, reason, who = await _spoken(request)
    if judged.verdict == PatchVerdict.ALLOWED.value:
        raise RequestRefused(409, "state", "this patch needs no person: every gate allows it")
    if judged.verdict != PatchVerdict.NEEDS_PERSON.value:
        raise RequestRefused(
            409, "refused", "this patch is refused whoever approves it", remedy="`localagent gate --all` says why"
        )
    desk, uid = context_of(request), peer_of(request).uid
    desk.require_disk_space()
    at = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    word, _ = await threaded(lambda: give(desk.writes, task, judged, uid=uid, who=who, reason=reason, at=at))
    if word.uid != uid:
        raise RequestRefused(
            409, "approved", f"{word.who} approved this patch already, at {word.at}", remedy="nothing is left to do"
        )
    return await _wait_recorded(request, word, "approved")


async def withdraw_patch(request: Request) -> Response:
    """Take back the word that stands for a patch: it counts no more from then on; 200 once that is on the record."""
    task, judged, _, _ = await _spoken(request)
    desk, uid = context_of(request), peer_of(request).uid
    word = await threaded(lambda: take_back(desk.writes, task, judged.patch, judged.change, uid=uid))
    if word is None:
        raise RequestRefused(409, "state", "nobody's word stands for this patch")
    return await _wait_recorded(request, word, "withdrawn")


async def effective_approvals(request: Request) -> Response:
    """The words that count for a patch of the asker's own tasks, by its digest and that of what it changes."""
    asked = request.query_params
    patch, change = asked.get("patch", ""), asked.get("change", "")
    if set(asked) != {"patch", "change"} or not DIGEST.fullmatch(patch) or not DIGEST.fullmatch(change):
        raise UsageFault("patch and change: two digests, sha256:<64 hexadecimal digits>, and nothing else")
    desk = context_of(request)
    found = await threaded(standing, desk.writes, patch, change, peer_of(request).uid)
    return answer({"approvals": [approval_json(word) for word in found]})


def approval_json(word: StoredApproval) -> dict[str, Any]:
    """A word as clients see it."""
    return {
        "task": word.task,
        "patch": word.patch,
        "change": word.change,
        "asked": _lines(word.asked),
        "policy": word.policy,
        "by": word.uid,
        "who": word.who,
        "reason": word.reason,
        "at": word.at,
        "recorded": word.recorded,
    }


async def _spoken(request: Request) -> tuple[str, ReviewedPatch, str, str]:
    """The task, the patch that is meant, why, and the account that speaks; Refused for whoever has no say in it."""
    row, owner = task_of(request, PeerRole.APPROVE)
    if owner:
        raise RequestRefused(
            403,
            "own",
            "nobody approves a patch that they asked for themselves",
            remedy=f"another account that the policy names: `localagent approve {row.id} --daemon --reason WHY`",
        )
    patch, change, reason = _parse_approval(await json_body(request, MOST_WORD_BYTES))
    if not row.state.over:
        raise RequestRefused(409, "state", f"the task is {row.state}: there is no patch yet")
    desk, who = context_of(request), account_of(peer_of(request).uid)
    found = await threaded(judged_of, desk.writes, row.id)
    judged = next((one for one in found if (one.patch, one.change) == (patch, change)), None)
    if judged is None:
        raise RequestRefused(
            409,
            "other-patch",
            "the task has no such patch: a word is for the digest of one patch and of what it changes",
            remedy=f"`localagent tasks patches {row.id}` shows what there is",
        )
    for people in (_lines(judged.people), list(desk.known.people)):
        if ANYBODY not in people and who not in people:
            named = ", ".join(people) or "nobody"
            raise RequestRefused(
                403, "people", f"{who} may not approve: the policy names {named}", remedy="ask one of them"
            )
    return row.id, judged, reason, who


def _parse_approval(found: object) -> tuple[str, str, str]:
    """UsageFault with every fault."""
    if not isinstance(found, dict) or set(found) != _KEYS or not all(isinstance(x, str) for x in found.values()):
        raise UsageFault(f"an object of exactly these texts: {', '.join(sorted(_KEYS))}")
    faults = [
        f"{key}: sha256:<64 hexadecimal digits>" for key in ("patch", "change") if not DIGEST.fullmatch(found[key])
    ]
    reason = found["reason"].strip()
    if not reason or len(reason) > MOST_REASON or "\0" in reason:
        faults.append(f"reason: say why, in at most {MOST_REASON} characters, without NUL")
    if faults:
        raise UsageFault(faults)
    return found["patch"], found["change"], reason


async def _wait_recorded(request: Request, word: StoredApproval, state: str) -> Response:
    desk = context_of(request)
    until = asyncio.get_running_loop().time() + RECORD_SECONDS
    while not (recorded := is_recorded(desk.reads, word.seq)):
        if asyncio.get_running_loop().time() > until:
            break
        await asyncio.sleep(0.05)
    return answer({"state": state, **approval_json(word), "recorded": recorded}, status=200 if recorded else 202)


def account_of(uid: int) -> str:
    """The name of an account, its number where it has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _lines(text: str) -> list[str]:
    return text.split("\n") if text else []
