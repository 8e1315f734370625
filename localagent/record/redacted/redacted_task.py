"""The report of a task, redacted: outcome, figures, digests and levels stay; texts, paths, names of tests go."""

from collections.abc import Mapping
from typing import Any

from localagent.domain.edit import WRITTEN
from localagent.domain.task import Stage
from localagent.record.redacted.allowed_texts import (
    CHECK,
    CLAIM,
    DIGEST,
    EFFECT,
    FUNCTION_EFFECT,
    GRADE,
    HEX,
    JAIL,
    LIMITS,
    OUTCOME,
    TASK,
    VERSION,
    denied,
    each,
)
from localagent.record.redacted.redaction import Each, Fields, Named, Redaction, among, matching, never
from localagent.report.task_report import READABLE

_TEXTS = Each(never)
_STAGES = Named(among(frozenset(stage.value for stage in Stage)), never)
_ORIGIN = among(frozenset({"edit-space", "model"}))
_KIND = among(frozenset({"syntax", "runtime", "logic"}))
_PARTS = "lines mutants functions"
_SHARE = Fields({**each("part whole note"), "missing": _TEXTS})
_STRENGTH = Fields(
    {
        "grade": GRADE,
        "claim": CLAIM,
        "limits": _TEXTS,
        **each(_PARTS, _SHARE),
        "unknown": Named(among(frozenset(_PARTS.split())), never),
        **each("others"),
        "short": _TEXTS,
        "weak": _TEXTS,
    }
)
_DIFFERENTIAL = Fields(
    {
        **each("inputs demanded explained differences_left_out"),
        "unexplained": Named(EFFECT, never),
        "function_changes": Each(Fields({**each("path function parameter"), "effect": FUNCTION_EFFECT})),
        "functions": Each(Fields(each("path function compared agreed answered reached why"))),
        "differences": Each(Fields({**each("path function call old new origin crash explained"), "effect": EFFECT})),
        "properties_held": Named(never, never),
        "broken_properties": Each(Fields(each("path function property held call old new"))),
        "notes": _TEXTS,
    }
)
_ASSESSMENT = Fields(
    {
        "strength": _STRENGTH,
        "mutants": Fields({**each("tried killed alike space note"), "alive": _TEXTS}),
        "differential": _DIFFERENTIAL,
        **each("seconds allowed_seconds"),
        "cut": _TEXTS,
    }
)
_FAILING = Fields({**each("id exception message"), "where": Each(Fields(each("path line function")))})
_GUARD = Fields({**each("found ran passed not_run seconds why"), **each("broken flaky undecided", _TEXTS)})
_SIGNAL = matching(r"[a-z][a-z-]{0,40}")
_CONFIDENCE = Fields(
    {**each("probability calibrated model"), **each("for against", _TEXTS), "signals": Named(_SIGNAL, never)}
)
_PROPOSAL = Fields(
    {
        **each("number patch"),
        **each("edits fail_to_pass still_failing", _TEXTS),
        "patch_digest": DIGEST,
        "confidence": _CONFIDENCE,
        "guard": _GUARD,
    }
)
_NUMBER = matching(r"[1-9]")
_AMBIGUITY = Fields(
    {
        "call": never,
        "answers": Named(_NUMBER, never),
        "function": Fields(each("path module qualname")),
        "exact": Each(never),
    }
)
_PROVENANCE = Fields({**each("edit model"), "operator": among(WRITTEN), "origin": _ORIGIN})
_AGREED_BY = among(frozenset({"person", "assumed", "nobody"}))
_AGREED = Fields({"by": _AGREED_BY, "files": _TEXTS})
_AGENT = Fields(
    {
        **each("steps replies prompt_tokens reply_tokens assume claim unfinished verification"),
        "grade": GRADE,
        "trust": among(frozenset({"ask", "plan", "auto"})),
        "tools": Named(matching(r"[a-z_]{1,20}"), never),
        "model_faults": Named(matching(r"[a-z ]{1,20}"), never),
        "agreed_plan": Fields({"by": _AGREED_BY, "files": _TEXTS, "steps": _TEXTS, "widened": Each(_AGREED)}),
        "acceptance": Fields({"by": _AGREED_BY, "files": _TEXTS, "tests": _TEXTS, "said": never, "no_test": never}),
        **each("roles plan changed not_shown refused speaks_to_machine", _TEXTS),
    }
)
_DIAGNOSIS = Fields({"kind": _KIND, **each("symptom cause fix"), **each("lines may_affect", _TEXTS)})


def redacted_report(report: Mapping[str, Any], rules: frozenset[str]) -> dict[str, Any]:
    """The report in the same form (docs/report.schema.json)."""
    shape = Fields(
        {
            **each("exit seed candidates_enumerated candidates_verified candidates_written plausible rounds threads"),
            **each("rank_of_first_plausible model_tokens text repo reason patch"),
            "schema": among(READABLE),
            "task": TASK,
            "outcome": OUTCOME,
            "patch_digest": DIGEST,
            "provenance": Each(_PROVENANCE),
            "confidence": _CONFIDENCE,
            "proposals": Each(_PROPOSAL),
            "ambiguity": _AMBIGUITY,
            "failing": Each(_FAILING),
            "findings": Each(Fields({"rule": among(rules), **each("path line test text")})),
            **each("fail_to_pass pass_to_pass still_failing flaky warnings", _TEXTS),
            "guard": _GUARD,
            "localization": Each(Fields(each("path line end_line score why"))),
            "diagnosis": _DIAGNOSIS,
            "candidates_denied": denied(rules),
            "near_misses": Each(Fields({"number": never, **each("edits turned broken", _TEXTS)})),
            "model": Fields({"name": never, **each("digest weights", DIGEST)}),
            "seconds": _STAGES,
            "jail": JAIL,
            "limits_hit": LIMITS,
            "checks": Named(CHECK, never),
            "budget": Fields(each("max_candidates max_seconds jobs")),
            **each("python pytest", VERSION),
            "assessment": _ASSESSMENT,
            "agent": _AGENT,
            "attestation": Fields({"file": among(frozenset({"attestation.intoto.jsonl"})), "key": HEX}),
        }
    )
    return dict(Redaction().of(report, shape))
