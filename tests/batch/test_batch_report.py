"""The morning report: its schema, its order, and that nothing from a repository drives what shows it."""

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.fix_builder import CHECKOUT
from support.git_builder import Repo
from support.schema_checker import check_schema, checker

from localagent.batch.batch_report import exit_of, headline, report_of
from localagent.batch.cache_key import CacheBasis
from localagent.batch.fleet import Fleet, FleetMember, TreeSource, WorkKind
from localagent.batch.git_am import series
from localagent.batch.html_report import page
from localagent.batch.junit_sarif import junit, sarif
from localagent.batch.runs import AnswerCache, BatchPlan, RunStore
from localagent.batch.task_result import RepositoryResult, RepositoryState, WorkStep, parse_answer, worst
from localagent.domain.edit import FileChange, Patch
from localagent.domain.paths import RepoPath
from localagent.fs.atomic_files import RecordDamaged
from localagent.repo.diff.write_diff import unified_diff
from localagent.text.strict_json import dump, load

EVIL = "</pre><script>alert(1)</script>\x1b[31m\u202e\udcff\0&\"'<img src=http://x.invalid/>"
DIGEST = "sha256:" + "0" * 64


def step(state: RepositoryState, **more: Any) -> WorkStep:
    values = {"work": WorkKind.FAILING_TESTS, "outcome": state.value, "reason": f"{state.value} it is", **more}
    return WorkStep(state=state, **values)


def likely(probability: float, text: str = "t", *, calibrated: bool = True) -> dict[str, Any]:
    return {"probability": probability, "calibrated": calibrated, "model": text, "for": [text], "against": [text]}


def answer(number: int, state: RepositoryState, **more: Any) -> RepositoryResult:
    values = {"name": f"r{number}", "reason": f"{state.value} it is", "tree": DIGEST, "key": DIGEST, **more}
    return RepositoryResult(number=number, state=state, **values)


def run_of(tmp: Path, answers: list[RepositoryResult], members: int | None = None) -> tuple[RunStore, dict[str, Any]]:
    store = RunStore(tmp)
    plan = BatchPlan(
        text="",
        source="/f",
        folder="/",
        fleet="night",
        basis=CacheBasis(tool="1", policies={}),
        began="2026-01-02T03:04:05+00:00",
    )
    run = store.create(plan)
    for one in answers:
        run.save_answer(one)
    count = len(answers) if members is None else members
    fleet = Fleet(
        name="night",
        members=tuple(
            FleetMember(name=f"r{n}", source=TreeSource(folder=Path(f"/src/{n}")), work=(WorkKind.FAILING_TESTS,))
            for n in range(count)
        ),
    )
    return store, report_of(run, fleet)


def evil() -> RepositoryResult:
    failing = (
        {
            "id": EVIL,
            "exception": EVIL,
            "message": EVIL,
            "where": [{"path": "a\udcff b.py", "line": 3, "function": EVIL}],
        },
    )
    repaired = ({"path": EVIL, "line": 1, "rule": "not-in", "message": EVIL},)
    tests = step(
        RepositoryState.FIXED,
        patch=f"--- a\n+++ b\n@@ -1 +1 @@\n-{EVIL}\n+{EVIL}\n",
        turned=(EVIL,),
        failing=failing,
        proposals=(EVIL,),
        confidences=(likely(0.25, EVIL),),
    )
    mods = step(
        RepositoryState.IMPROVED,
        work=WorkKind.CODEMODS,
        repaired=repaired,
        left={EVIL: 2},
        evidence={"refused": [EVIL]},
        patch=EVIL,
    )
    names = ("tool", "rule", "path", "message", "why")
    finding = {**dict.fromkeys(names, EVIL), "line": 1, "state": "failed", "proof": "", "settled": False}
    other = step(RepositoryState.GAVE_UP, work=WorkKind.SARIF, findings=(finding,), evidence={"findings": 1})
    return answer(
        0, RepositoryState.NEEDS_PERSON, reason=EVIL, remedy=EVIL, steps=(tests, other, mods), warnings=(EVIL,)
    )


class Tags(HTMLParser):
    """What a browser would see: tags, and attributes that fetch or run."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.fetching: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            if (
                name.startswith("on")
                or name in ("src", "action", "data")
                or (name == "href" and not (value or "").startswith("#r"))
            ):
                self.fetching.append((name, value))


def test_the_page_holds_nothing_that_runs_or_fetches(tmp_path: Path) -> None:
    _, report = run_of(tmp_path, [evil()])
    data = page(report)
    text = data.decode("ascii", "replace")
    seen = Tags()
    seen.feed(text)
    assert seen.fetching == []
    assert not seen.tags & {"script", "img", "link", "iframe", "object", "form", "base", "embed"}
    assert "&lt;script&gt;alert(1)" in text
    assert not set(data.decode("utf-8")) & set("\x1b\u202e\0")
    assert "default-src 'none'" in text


def test_the_other_forms_parse_and_hold_the_same(tmp_path: Path) -> None:
    _, report = run_of(
        tmp_path, [evil(), answer(1, RepositoryState.CLEAN), answer(2, RepositoryState.FAULT)], members=4
    )
    root = ElementTree.fromstring(junit(report))
    assert root.attrib["tests"] == str(len(list(root.iter("testcase"))))
    assert (root.attrib["errors"], root.attrib["skipped"]) == ("1", "1")
    log = load(sarif(report))
    results = log["runs"][0]["results"]
    rules = [rule["id"] for rule in log["runs"][0]["tool"]["driver"]["rules"]]
    assert [rules[r["ruleIndex"]] for r in results] == [r["ruleId"] for r in results]
    known = ["failing-test", "hook/not-in", "repository-needs-person"]
    assert [r["ruleId"] for r in results if r["ruleId"] in known] == [*known, known[2]]
    assert len(results) == 5
    place = results[0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "a%FF%20b.py", "uriBaseId": "REPOSITORY-r0"}
    assert "\x1b" not in json.dumps(log, ensure_ascii=False)


def test_it_keeps_to_its_schema(tmp_path: Path) -> None:
    schema = json.loads((CHECKOUT / "docs" / "batch-report.schema.json").read_text())
    check_schema(schema)
    _, report = run_of(tmp_path, [evil(), answer(1, RepositoryState.FIXED, same_as="x/y")], members=3)
    plain = load(dump(report))
    checker(schema).validate(plain)
    assert {s.value for s in RepositoryState} == set(schema["$defs"]["state"]["enum"])
    assert not checker(schema).is_valid({**plain, "more": 1})
    assert not checker(schema).is_valid({name: value for name, value in plain.items() if name != "schema"})


def test_what_is_worth_most_stands_first(tmp_path: Path) -> None:
    many = step(RepositoryState.FIXED, turned=("a", "b"))
    rows = [
        answer(0, RepositoryState.CLEAN),
        answer(1, RepositoryState.FIXED, steps=(step(RepositoryState.FIXED, turned=("a",)),)),
        answer(2, RepositoryState.NEEDS_PERSON),
        answer(3, RepositoryState.FIXED, steps=(many,)),
        answer(4, RepositoryState.IMPROVED),
    ]
    _, report = run_of(tmp_path, rows, members=6)
    assert [row["name"] for row in report["repositories"]] == ["r3", "r1", "r2", "r4", "r5", "r0"]
    assert report["needs_person"][0]["name"] == "r2"
    assert (report["complete"], exit_of(report)) == (False, 1)
    assert "1 needs-person, 2 fixed" in headline(report)


def test_within_a_state_the_likeliest_stands_first(tmp_path: Path) -> None:
    def found(number: int, state: RepositoryState, *told: dict[str, Any] | None, **more: Any) -> RepositoryResult:
        return answer(number, state, steps=(step(state, confidences=told, **more),))

    rows = [
        found(0, RepositoryState.LOW_CONFIDENCE, likely(0.4), likely(0.6), proposals=("a", "b"), task="t0"),
        found(1, RepositoryState.FIXED, None, patch="x", turned=("a", "b")),
        found(2, RepositoryState.GAVE_UP),
        found(3, RepositoryState.FIXED, likely(0.95), patch="x"),
        found(4, RepositoryState.LOW_CONFIDENCE, likely(0.7, calibrated=False), proposals=("a",), task="t4"),
        found(5, RepositoryState.FIXED, likely(0.97), patch="x"),
        found(6, RepositoryState.NEEDS_PERSON, None, proposals=("a",), task="t6"),
    ]
    _, report = run_of(tmp_path, rows)
    assert [row["name"] for row in report["repositories"]] == ["r5", "r3", "r1", "r6", "r4", "r0", "r2"]
    known = [row["confidence"] and row["confidence"]["probability"] for row in report["repositories"]]
    assert known == [0.97, 0.95, None, None, 0.7, 0.6, None]
    assert report["summary"]["states"] == {"fixed": 3, "gave-up": 1, "low-confidence": 2, "needs-person": 1}
    assert "2 low-confidence, 1 gave-up" in headline(report)
    low = report["needs_person"][1]
    assert (low["name"], low["state"], low["confidence"]["calibrated"]) == ("r4", "low-confidence", False)
    assert low["what_to_do"].endswith("localagent show t4")
    assert exit_of(report) == 1
    text = page(report).decode()
    for shown in ("confidence 0.60", "confidence 0.70, not calibrated for this search", ">0.97<", ">(0.70)<"):
        assert shown in text, shown


def test_an_answer_of_before_there_was_a_confidence_is_read() -> None:
    made = answer(0, RepositoryState.NEEDS_PERSON, steps=(step(RepositoryState.NEEDS_PERSON, proposals=("a",)),))
    older = load(dump(made.json()))
    del older["steps"][0]["confidences"]
    assert parse_answer(older) == made


@pytest.mark.parametrize(
    "change", [{"probability": 1.5}, {"probability": "1"}, {"calibrated": 1}, {"for": "x"}, {"x": 1}]
)
def test_a_confidence_that_is_not_ours_is_damage(change: dict[str, Any]) -> None:
    made = answer(0, RepositoryState.FIXED, steps=(step(RepositoryState.FIXED, confidences=(likely(0.5), None)),))
    told = load(dump(made.json()))
    assert parse_answer(told) == made
    told["steps"][0]["confidences"][0] |= change
    with pytest.raises(ValueError, match=r"."):
        parse_answer(told)


def test_the_clock_is_no_part_of_the_digest(tmp_path: Path) -> None:
    struck: list[tuple[dict[str, Any], ...]] = [
        ({"id": "t", "exception": "TimeLimit", "message": m, "where": []},) for m in ("line 2", "line 3")
    ]
    fast = answer(
        0,
        RepositoryState.FIXED,
        seconds=1.0,
        same_as="a/b",
        steps=(step(RepositoryState.FIXED, seconds=1.0, task="t", failing=struck[0]),),
    )
    slow = answer(
        0,
        RepositoryState.FIXED,
        seconds=9.0,
        cpu_seconds=2.0,
        steps=(step(RepositoryState.FIXED, seconds=8.0, failing=struck[1], confidences=(likely(0.5),)),),
    )
    other = answer(0, RepositoryState.FIXED, steps=(step(RepositoryState.FIXED, patch_digest=DIGEST),))
    digests = [run_of(tmp_path / str(n), [a])[1]["digest"] for n, a in enumerate((fast, slow, other))]
    assert digests[0] == digests[1]
    assert digests[0] != digests[2]


@pytest.mark.parametrize("name", ["schema", "state", "steps", "number", "extra"])
def test_an_answer_that_is_not_ours_is_damage(name: str, tmp_path: Path) -> None:
    store, report = run_of(tmp_path, [evil()])
    run = store.load(report["run"])
    assert run.answer(0) == evil()
    path = run.answer_path(0)
    values = json.loads(path.read_bytes())
    values[name] = {"schema": "x", "state": "well", "steps": [{}], "number": 7, "extra": 1}[name]
    path.write_text(json.dumps(values))
    with pytest.raises(RecordDamaged):
        run.answer(0)


def test_what_the_clock_decided_is_not_kept(tmp_path: Path) -> None:
    kept = AnswerCache(tmp_path / "kept")
    for state in RepositoryState:
        kept.put(answer(0, state, key=f"sha256:{state.value}"), "run")
    found = {state for state in RepositoryState if kept.get(f"sha256:{state.value}") is not None}
    assert found == {
        *(
            RepositoryState.NEEDS_PERSON,
            RepositoryState.LOW_CONFIDENCE,
            RepositoryState.GAVE_UP,
            RepositoryState.REFUSED,
        ),
        *(RepositoryState.ACCEPTED, RepositoryState.FIXED, RepositoryState.IMPROVED, RepositoryState.CLEAN),
    }
    one = kept.get("sha256:fixed")
    assert one is not None
    assert one.same_as == "run/r0"
    (tmp_path / "kept" / "fixed.json").write_bytes(b"{}")
    assert kept.get("sha256:fixed") is None


def test_the_worst_of_several(tmp_path: Path) -> None:
    assert worst(()) is RepositoryState.CLEAN
    assert worst((RepositoryState.CLEAN, RepositoryState.FIXED, RepositoryState.IMPROVED)) is RepositoryState.FIXED
    assert worst((RepositoryState.FIXED, RepositoryState.OUT_OF_BUDGET)) is RepositoryState.OUT_OF_BUDGET


texts = st.text(st.characters(exclude_categories=()), max_size=12)


@given(texts, texts, st.sampled_from(list(RepositoryState)))
@settings(max_examples=40, deadline=None)
def test_an_answer_survives_its_file(text: str, other: str, state: RepositoryState) -> None:
    made = answer(
        0, state, reason=text, warnings=(other,), steps=(step(state, patch=text, turned=(other,), left={other: 1}),)
    )
    assert parse_answer(load(dump(made.json()))) == made


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"x = 1\r\ny = 2\r\n", b"x = 1\r\ny = 3\r\n"),
        (b"# caf\xe9\nx = 1\n", b"# caf\xe9\nx = 2\n"),
        (b"x = 1", b"x = 2"),
        (b"From me\nx = 1\n-- \n", b"From me\nx = 2\n-- \n"),
        (b"'''\n---\ndiff --git a/x b/x\n'''\nx = 1\n", b"'''\n---\ndiff --git a/x b/x\n'''\nx = 2\n"),
    ],
)
def test_git_takes_any_bytes(before: bytes, after: bytes, tmp_path: Path) -> None:
    repo = Repo(tmp_path / "repo")
    repo.git("config", "core.autocrlf", "false")
    name = "naïve name.py"
    repo.stage(name, before)
    repo.commit()
    patch = Patch(changes=(FileChange(path=RepoPath(name), before=before, after=after),))
    diff = unified_diff(patch).decode("utf-8", "surrogateescape")
    turned = ("x\n---\ndiff --git a/z b/z\n", "\n\nFrom nobody", EVIL)
    _, report = run_of(
        tmp_path / "state",
        [answer(0, RepositoryState.FIXED, steps=(step(RepositoryState.FIXED, patch=diff, turned=turned),))],
    )
    ((_, mail),) = series(report["repositories"][0], report)
    (tmp_path / "one.patch").write_bytes(mail)
    repo.git("am", "-q", "--keep-cr", str(tmp_path / "one.patch"))
    assert repo.read(name) == after
    told = repo.git("log", "-1", "--format=%an <%ae>%n%s%n%(trailers:key=Assisted-by)").decode().split("\n")
    assert told[:3] == [
        "localagent <localagent@localhost>",
        "Repair what 3 failing tests showed",
        "Assisted-by: localagent",
    ]
