"""What a session adds to its task's report, and how its outcome reads for a person."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from localagent.agent.approval import LEFT_TO_PERSON
from localagent.agent.events import (
    RECIPE,
    AgentEvent,
    AgreedBy,
    AgreedTests,
    Answered,
    Ended,
    EndKind,
    NoReply,
    Replied,
    ResultKind,
    Reviewed,
    agreed_tests,
    event_json,
    last_said,
    writes_of,
)
from localagent.agent.tools.dialogue_tools import NO_TEST_SAID
from localagent.app.agent.patch_judge import TESTS_ALONE, Proof, told_of
from localagent.app.agent.request import DoRequest
from localagent.app.agent.snapshot_tree import SnapshotTree
from localagent.domain.claim import Claim
from localagent.gate.tests.inventory import suite_of
from localagent.repo.diff.write_diff import unified_diff
from localagent.report.verify_report import verification_json
from localagent.text.visible_text import one_line

_SHOWN = 10
NO_TEST = "no test failed before and passes now: nothing shows that the change does what was asked"


def agent_json(
    request: DoRequest, events: Sequence[AgentEvent], tree: SnapshotTree | None, proof: Proof | None
) -> dict[str, Any]:
    """The section `agent` of the report."""
    replies = [e for e in events if isinstance(e, Replied)]
    results = [e for e in events if isinstance(e, Answered)]
    found = proof.verification if proof is not None else None
    accepted_writes = writes_of(tuple(events))
    return {
        "steps": len(results),
        "replies": len(replies),
        "prompt_tokens": sum(max(0, r.prompt_tokens) for r in replies),
        "reply_tokens": sum(max(0, r.reply_tokens) for r in replies),
        "tools": dict(Counter(r.tool for r in results)),
        "roles": list(request.roles),
        "trust": request.trust.value,
        "assume": request.assume,
        "plan": list(next((r.plan for r in reversed(results) if r.plan), ())),
        "agreed_plan": _agreed_plan(results),
        "acceptance": _acceptance(events),
        "changed": [str(path) for path in accepted_writes],
        "claim": found.claim.value if found is not None and found.claim is not None else None,
        "grade": found.strength.grade.value if found is not None and found.strength is not None else None,
        "not_shown": not_shown(proof, agreed_tests(tuple(events))),
        "refused": [one_line(r.text, 300) for r in results if r.kind is ResultKind.REFUSED][-_SHOWN:],
        "speaks_to_machine": sorted({r.injected for r in results if r.injected})[:_SHOWN],
        "reviews": [event_json(e)[1] for e in events if isinstance(e, Reviewed)],
        "recipe": next((r.text for r in results if r.tool == RECIPE), ""),
        "model_faults": dict(Counter(e.fault for e in events if isinstance(e, NoReply))),
        "unfinished": _nearest(events, tree, proof),
        "verification": verification_json(found) if found is not None else None,
    }


def _agreed_plan(results: Sequence[Answered]) -> dict[str, Any] | None:
    """The planner's plan, what it was widened by, and who agreed to each."""
    found = [r for r in results if r.tool == "plan" and r.agreement is not None]
    agreements = [r.agreement for r in found if r.agreement is not None]
    if not agreements:
        return None
    told = [{"by": a.by.value, "files": [str(file) for file in a.files]} for a in agreements]
    return {"steps": list(found[0].plan), **told[0], "widened": told[1:]}


def _acceptance(events: Sequence[AgentEvent]) -> dict[str, Any] | None:
    """The tests that the tester wrote, and who agreed to them."""
    agreed = agreed_tests(tuple(events))
    if agreed is None:
        return None
    suites = {path: suite_of(text.encode()) for path, text in agreed.files.items()}
    tests = [
        f"{path}::{name.replace('.', '::')}"
        for path, suite in suites.items()
        for name, test in (suite.tests.items() if suite is not None else ())
        if test.is_test
    ]
    return {
        "files": sorted(agreed.files),
        "tests": tests,
        "by": agreed.by.value,
        "said": one_line(agreed.said, 600),
        "no_test": "" if agreed.files else one_line(agreed.said.removeprefix(NO_TEST_SAID), 300),
    }


def not_shown(proof: Proof | None, agreed: AgreedTests | None = None) -> list[str]:
    """What no test shows."""
    if proof is None:
        return []
    full, strength = proof.verification.full, proof.verification.strength
    preserves = proof.verification.claim is Claim.PRESERVES
    untold = TESTS_ALONE if proof.tests_alone else NO_TEST
    found = [] if preserves or (full is not None and full.fail_to_pass) else [untold]
    found += list(strength.limits) if strength is not None else []
    found += [told_of(agreed)] if agreed is not None and agreed.files and agreed.by is not AgreedBy.PERSON else []
    return list(dict.fromkeys(found))


def _nearest(events: Sequence[AgentEvent], tree: SnapshotTree | None, proof: Proof | None) -> str:
    """The state in which a session ended without an accepted patch; for a person to read, never applied."""
    last = events[-1] if events else None
    if tree is None or (isinstance(last, Ended) and last.kind is EndKind.FINISHED and proof is not None):
        return ""
    return unified_diff(tree.patch(writes_of(tuple(events)))).decode("utf-8", "surrogateescape")


def left_to_person(events: Sequence[AgentEvent]) -> list[str]:
    """What was refused since a person spoke, and could have been allowed by one; why, each once."""
    since = [e for e in events[last_said(events) + 1 :] if isinstance(e, Answered) and e.kind is ResultKind.REFUSED]
    begin = f"refused: {LEFT_TO_PERSON}: "
    return list(dict.fromkeys(e.text.removeprefix(begin) for e in since if e.text.startswith(begin)))


def explanation(ended: Ended, events: Sequence[AgentEvent]) -> str:
    """Why there is no patch: what was tried, and what was seen last."""
    results = [e for e in events if isinstance(e, Answered)]
    changed = ", ".join(map(str, writes_of(tuple(events)))) or "nothing"
    tests = next((r for r in reversed(results) if r.tool == "run_tests"), None)
    bad = next((r for r in reversed(results) if r.kind is not ResultKind.DONE), None)
    asked = left_to_person(events)
    parts = [ended.reason]
    parts += [f"a change of it was left to a person: {one_line(asked[0], 200)}"] if asked else []
    parts += [f"{len(results)} tool calls; changed: {changed}"]
    parts += [f"the tests said last: {one_line(tests.text, 200)}"] if tests is not None else []
    parts += [f"the last problem: {one_line(bad.text, 200)}"] if bad is not None else []
    return "; ".join(parts)
