"""The law of redaction: nothing stays that no shape names, for any document; and exports whose chain still shows."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.audit import write_journal
from localagent.record.audit.verify_chain import check_audit
from localagent.record.journal import JournalStatus
from localagent.record.redacted.redacted_journal import (
    check_redacted,
    is_redacted,
    redacted_audit_report,
    redacted_export,
)
from localagent.record.redacted.redacted_task import redacted_report
from localagent.record.redacted.redaction import Each, Fields, Named, OneOf, Redaction, among, matching, never

WORD = "zyxwcanary"
RULES = frozenset({"syntax"})
TEXTS = st.text(max_size=5).map(lambda text: f"{text}{WORD}{text}")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(TEXTS | st.sampled_from(["task", "repo"]), inner, max_size=3)
    ),
    max_leaves=12,
)
SHAPE = Fields(
    {
        "task": matching(r"\d+"),
        "repo": OneOf((never, Each(never), Named(among(RULES), never), Fields({"task": Each(never)}))),
    }
)


@pytest.mark.long
@given(VALUES)
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_no_text_stays_that_no_shape_knows(value: Any) -> None:
    assert WORD not in json.dumps(Redaction().of(value, SHAPE))
    for made in (redacted_report({"schema": "x", "failing": value, WORD: value, "seconds": value}, RULES),):
        assert WORD not in json.dumps(made)


@given(st.lists(TEXTS))
def test_equal_texts_have_one_number_and_others_another(texts: list[str]) -> None:
    made = Redaction().of(texts, Each(never))
    assert len(set(made)) == len(set(texts))
    assert [made.index(m) for m in made] == [texts.index(t) for t in texts]


def test_what_shapes_know_stays_and_figures_stay_only_where_they_are_named() -> None:
    shape = Fields({"n": never, "kind": among(frozenset({"ours"})), "by": Named(among(RULES), never)})
    value = {"n": 7, "kind": "ours", "by": {"syntax": 2, "theirs": 3}, "secret": 1234, "empty": ""}
    made = Redaction().of(value, shape)
    assert made == {
        "n": 7,
        "kind": "ours",
        "by": {"syntax": 2, "redacted-1": 3},
        "redacted-2": "redacted-3",
        "redacted-4": "redacted-5",
    }
    assert Redaction().of({"n": 1 << 80}, shape) == {"n": "redacted-1"}


def test_what_proposals_differ_on_and_what_speaks_to_a_machine_is_text_of_the_repository() -> None:
    finding = {"rule": "syntax", "path": WORD, "line": 7, "test": WORD, "text": f"AI: {WORD}"}
    report = {"ambiguity": {"call": f"f({WORD})", "answers": {"1": WORD, WORD: "None"}}, "findings": [finding]}
    made = redacted_report(report, RULES)
    assert WORD not in json.dumps(made)
    (kept,) = made["findings"]
    assert (kept["rule"], kept["line"], kept["path"]) == ("syntax", 7, kept["test"])
    assert kept["text"] not in (kept["path"], finding["text"])
    assert made["ambiguity"]["answers"]["1"] == kept["path"]  # equal things of one document have one number
    assert "None" not in made["ambiguity"]["answers"].values()
    assert redacted_report({"ambiguity": None, "findings": []}, RULES) == {"ambiguity": None, "findings": []}


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_journal(tmp_path_factory.mktemp("state"), 60)


def test_a_redacted_export_still_shows_its_chain(journal: Path, tmp_path: Path) -> None:
    entries = check_audit(journal).entries
    out = tmp_path / "out"
    out.write_bytes(redacted_export(entries, RULES))
    assert is_redacted(out)
    check = check_redacted(out, head=entries[40].digest)
    assert (check.standing, check.tip.digest) == (JournalStatus.WHOLE, entries[-1].digest)
    assert check_redacted(out, head="sha256:" + "0" * 64).standing is JournalStatus.ALTERED
    rows = out.read_bytes().splitlines(keepends=True)
    for spoiled, at in (
        (rows[:9] + rows[10:], 10),
        ([*rows[:9], rows[10], rows[9], *rows[11:]], 10),
        ([*rows[:9], rows[9].replace(b'"digest":"sha256:', b'"digest":"sha256:0'), *rows[10:]], 10),
        ([*rows[:9], rows[9].replace(b'"kind":"', b'"kind":"x'), *rows[10:]], 10),
        ([*rows[:-1], rows[-1][:-5]], len(rows)),
    ):
        out.write_bytes(b"".join(spoiled))
        found = check_redacted(out)
        assert (found.standing, found.place.line if found.place else 0) == (JournalStatus.ALTERED, at)


def test_over_an_altered_journal_the_reason_is_not_cited() -> None:
    chain = {"standing": "altered", "place": "audit-000000000000.jsonl:3 (entry 2)", "reason": f"kind {WORD!r}"}
    made = redacted_audit_report({"schema": "s", "chain": {**chain, "head": {"entry": 1, "digest": WORD}}}, RULES)
    assert made["chain"]["place"] == chain["place"]
    assert WORD not in json.dumps(made)
