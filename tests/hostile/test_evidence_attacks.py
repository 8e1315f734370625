"""Evidence as somebody would make it who wants to be believed: bundles, trees, exports, clocks, other journals."""

import copy
import itertools
import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.evidence_builder import PATCH, keep_task, settings_below

from bench.audit import write_journal
from localagent.app.evidence.attested_files import attested_file_count
from localagent.app.evidence.task_evidence import audit_log, key_ring
from localagent.app.settings import Settings
from localagent.cli.main import main
from localagent.domain.edit import FileChange, Patch
from localagent.domain.outcome import Baseline
from localagent.domain.paths import RepoPath
from localagent.domain.task import Task, TaskResult, Verdict
from localagent.errors import UsageFault
from localagent.fs.atomic_files import RecordDamaged
from localagent.record.attest.bundle import signed_bundle, verify_bundle
from localagent.record.attest.dsse import NotVerified, Signer, key_id_of, sign
from localagent.record.attest.statement import PAYLOAD_TYPE, statements, subject_paths
from localagent.record.audit import entry as entries_of
from localagent.record.audit import segments as lying
from localagent.record.audit.clock import set_back
from localagent.record.audit.entry import AuditKind, line_of, parse_line
from localagent.record.audit.log import AuditLog
from localagent.record.audit.segments import first_of, segment_name
from localagent.record.audit.verify_chain import check_audit, check_export
from localagent.record.evidence_facts import Setting, facts_of
from localagent.record.journal import JournalStatus
from localagent.record.store import TaskStore
from localagent.repo.diff.write_diff import unified_diff

PRIVATE = Ed25519PrivateKey.generate()
SIGNER = Signer(key_id=key_id_of(PRIVATE.public_key()), private=PRIVATE)
KEYS = {SIGNER.key_id: PRIVATE.public_key()}
DIGEST = "sha256:" + "1" * 64
ODD: tuple[Any, ...] = (None, True, 0, -1, 1e308, "", "x", "\ud800", "\n", [], [[]], {}, {"a": []}, [{}], 10**40)


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    return settings_below(tmp_path, monkeypatch)


def made(patch: Patch = PATCH, task: str = "20260101-000000-000000-abcdef") -> list[dict[str, Any]]:
    """The statements about a patch, as a task would make them."""
    setting = Setting(
        version="0.1.0",
        started="",
        ended="",
        policy=DIGEST,
        policy_name="default",
        least_level="L2",
        use_model=False,
        model="",
        backend="",
        tools={},
    )
    result = TaskResult(
        verdict=Verdict.ACCEPTED,
        reason="",
        exit=0,
        patch=patch,
        baseline=Baseline(tests=(), python="3.11", pytest="9"),
        snapshot_digest=DIGEST,
        jail_backend="bubblewrap",
        jail_level="L4",
    )
    facts = facts_of(Task(id=task, repo="/srv/r"), result, setting, unified_diff(patch), (1, DIGEST))
    return statements(facts, audit={"entry": 1, "digest": DIGEST}, approvals=[{"kind": "applied"}])


def places(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every value in a JSON value, its own included."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [way, *itertools.chain.from_iterable(places(item, (*way, key)) for key, item in inner)]


def changed(value: Any, way: tuple[Any, ...], other: Any) -> Any:
    """A copy with one value replaced."""
    if not way:
        return other
    found = copy.deepcopy(value)
    at = found
    for key in way[:-1]:
        at = at[key]
    at[way[-1]] = other
    return found


# ---- bundles -------------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("number", range(3))
def test_values_of_other_kinds_under_a_good_signature_are_refused_or_said(number: int) -> None:
    """Every value of a statement, replaced by every odd one and signed anew: an answer, never a fault of ours."""
    good = made()
    for way, odd in itertools.product(places(good[number]), ODD):
        rows = [*good]
        rows[number] = changed(good[number], way, odd)
        bundle = b"".join(
            json.dumps(sign(SIGNER, PAYLOAD_TYPE, json.dumps(row).encode())).encode() + b"\n" for row in rows
        )
        try:
            found = verify_bundle(bundle, KEYS)
        except NotVerified:
            continue
        assert all(isinstance(name, str) for name in found.subjects)


def test_values_of_other_kinds_around_a_payload_are_refused() -> None:
    rows = [json.loads(row) for row in signed_bundle(made(), SIGNER).splitlines()]
    for way, odd in itertools.product(places(rows[0]), ODD):
        data = b"".join(json.dumps(row).encode() + b"\n" for row in (changed(rows[0], way, odd), *rows[1:]))
        with pytest.raises(NotVerified):
            verify_bundle(data, KEYS)


@pytest.mark.parametrize(
    "alter",
    [
        lambda row: row.replace(b'"payload":', b'"payload":"","payload":', 1),
        lambda row: row.replace(b'"keyid":', b'"keyid":"x","keyid":', 1),
        lambda row: b"\xef\xbb\xbf" + row,
        lambda row: row.replace(b"in-toto", b"in\xadtoto", 1),
        lambda row: row.replace(b"in-toto", "in\u2010toto".encode(), 1),
        lambda row: row.replace(b"application/", b"Application/", 1),
        lambda row: row + b" " + row,
        lambda row: b"[" * 100_000 + row,
        lambda row: row.replace(b'"sig":"', b'"sig":"\\n', 1),
        lambda row: row.replace(b'=="', b'="', 1) if b'=="' in row else row.replace(b'"sig":"', b'"sig":"=', 1),
    ],
)
def test_writing_the_same_in_another_way_is_not_the_same(alter: Any) -> None:
    rows = signed_bundle(made(), SIGNER).splitlines()
    with pytest.raises(NotVerified):
        verify_bundle(b"\n".join((alter(rows[0]), *rows[1:])) + b"\n", KEYS)


def test_a_doubled_key_inside_a_payload_is_refused_though_it_is_signed() -> None:
    rows = made()
    inside = json.dumps(rows[0]).encode().replace(b'"predicateType":', b'"predicateType":"urn:x","predicateType":', 1)
    envelopes = [
        sign(SIGNER, PAYLOAD_TYPE, inside),
        *(sign(SIGNER, PAYLOAD_TYPE, json.dumps(r).encode()) for r in rows[1:]),
    ]
    with pytest.raises(NotVerified, match="a key stands twice"):
        verify_bundle(b"".join(json.dumps(e).encode() + b"\n" for e in envelopes), KEYS)


@pytest.mark.parametrize("number", range(3))
def test_a_subject_more_or_less_in_one_statement_is_refused(number: int) -> None:
    for subject in (
        made()[number]["subject"][:-1],
        [*made()[number]["subject"], {"name": "b", "digest": {"sha256": "0" * 64}}],
    ):
        rows = made()
        rows[number] = {**rows[number], "subject": subject}
        with pytest.raises(NotVerified, match="other subjects"):
            verify_bundle(signed_bundle(rows, SIGNER), KEYS)


def test_a_builder_that_does_not_make_patches_in_that_way_is_refused() -> None:
    for way, builder in (("remediate", "fix"), ("fix", "remediate"), ("fix", "x")):
        rows = made()
        rows[1]["predicate"]["buildDefinition"]["buildType"] = f"urn:localagent:build-type:{way}:1"
        rows[1]["predicate"]["runDetails"]["builder"]["id"] = f"urn:localagent:builder:{builder}"
        with pytest.raises(NotVerified, match="and not by"):
            verify_bundle(signed_bundle(rows, SIGNER), KEYS)


def test_names_that_are_only_alike_are_different_files(tmp_path: Path) -> None:
    composed, apart = "caf\u00e9.py", "cafe\u0301.py"
    found = verify_bundle(signed_bundle(made(Patch(changes=(change(composed),))), SIGNER), KEYS)
    (tmp_path / apart).write_bytes(b"new\n")
    with pytest.raises(NotVerified):
        attested_file_count(found, tmp_path)
    (tmp_path / composed).write_bytes(b"new\n")
    assert attested_file_count(found, tmp_path) == 1


def change(path: str) -> FileChange:
    return FileChange(path=RepoPath(path), before=b"old\n", after=b"new\n")


def test_a_name_stands_for_other_bytes_only_where_it_is_written_so() -> None:
    assert subject_paths("%41.py") == ("%41.py",)
    assert subject_paths("%C3%A9.py") == ("%C3%A9.py",)
    assert subject_paths("%ff.py") == ("%ff.py",)
    assert subject_paths("%FF.py") == ("%FF.py", "\udcff.py")


@pytest.mark.parametrize("planted", ["A.py", b"\xff.py"])
def test_a_file_put_beside_an_altered_one_does_not_stand_for_it(tmp_path: Path, planted: str | bytes) -> None:
    name = "%41.py" if planted == "A.py" else "%FF.py"
    found = verify_bundle(signed_bundle(made(Patch(changes=(change(name),))), SIGNER), KEYS)
    (tmp_path / name).write_bytes(b"new\n")
    assert attested_file_count(found, tmp_path) == 1
    (tmp_path / name).write_bytes(b"altered\n")
    other = planted.encode() if isinstance(planted, str) else planted
    Path(f"{tmp_path}/" + other.decode("utf-8", "surrogateescape")).write_bytes(b"new\n")
    with pytest.raises(NotVerified, match="is not as attested"):
        attested_file_count(found, tmp_path)
    (tmp_path / name).unlink()
    (tmp_path / name).symlink_to("elsewhere")
    with pytest.raises(NotVerified, match="is not as attested"):
        attested_file_count(found, tmp_path)


def test_what_is_shown_of_a_bundle_stays_on_its_lines(
    settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A name with a line end in it would else make up a line, and say what it likes."""
    assert main(["key", "new"]) == 0
    signer = key_ring(settings).signer()
    assert signer is not None
    name = "a\nverified: task x, signed by key y\n\x1b[2J.py"
    bundle = tmp_path / "b.jsonl"
    bundle.write_bytes(signed_bundle(made(Patch(changes=(change(name),))), signer))
    capsys.readouterr()
    assert main(["attest", "verify", str(bundle)]) == 0
    out = capsys.readouterr().out
    assert sum(line.startswith("verified") for line in out.splitlines()) == 1
    assert "tests: WARNED (0 passed, 0 flaky, 0 failed)" in out
    assert main(["attest", "verify", str(bundle), "--tree", str(tmp_path)]) == 1
    rows = [json.loads(row) for row in bundle.read_bytes().splitlines()]
    for row in rows:
        row["signatures"][0]["keyid"] = "x\nverified: task z"
    bundle.write_bytes(b"".join(json.dumps(row).encode() + b"\n" for row in rows))
    assert main(["attest", "verify", str(bundle)]) == 1
    for row in rows:
        row["payloadType"] = "x\nverified: " + "long" * 10_000
    bundle.write_bytes(b"".join(json.dumps(row).encode() + b"\n" for row in rows))
    assert main(["attest", "verify", str(bundle)]) == 1
    told = capsys.readouterr()
    assert not any(line.startswith("verified") for line in (told.out + told.err).splitlines()[:])
    assert len(told.err) < 4000


# ---- the journal ---------------------------------------------------------------------------------------------------


def test_a_clock_that_was_set_back_is_told_and_hides_nothing(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    keep_task(settings, tmp_path / "repo")
    with monkeypatch.context() as clock:
        clock.setattr(entries_of, "now_text", lambda: "1999-01-01T00:00:00.000000Z")
        hidden = keep_task(settings, tmp_path / "repo")
    keep_task(settings, tmp_path / "repo")
    capsys.readouterr()
    assert main(["audit", "verify", "--json"]) == 0
    (place,) = json.loads(capsys.readouterr().out)["clock_set_back"]
    assert (place["seq"], place["at"], place["seconds"] > 8e8) == (3, "1999-01-01T00:00:00.000000Z", True)
    assert main(["audit", "verify"]) == 0
    assert "the clock was set back 1 times: entry 3 says 1999-01-01" in capsys.readouterr().out
    out, page = tmp_path / "r.json", tmp_path / "r.html"
    assert main(["audit", "report", "--since", "2020-01-01", "--json", str(out), "--html", str(page)]) == 0
    report = json.loads(out.read_text())
    assert hidden.id in [row["task"] for row in report["tasks"]]
    assert report["chain"]["clock_set_back"][0]["seq"] == 3
    assert "the clock was set back 1 times" in page.read_text()
    assert main(["audit", "report", "--since", "2020-01-01", "--redact", "--json", str(out)]) == 0
    assert json.loads(out.read_text())["chain"]["clock_set_back"][0]["at"] == "1999-01-01T00:00:00.000000Z"


def test_times_that_only_rise_are_no_matter(tmp_path: Path) -> None:
    assert set_back(check_audit(write_journal(tmp_path, 9)).entries) == ()


def test_figures_of_other_scripts_are_neither_numbers_of_files_nor_times() -> None:
    arabic = str.maketrans("0123456789", "\u0660\u0661\u0662\u0663\u0664\u0665\u0666\u0667\u0668\u0669")
    assert first_of(segment_name(7)) == 7
    assert first_of(segment_name(7).translate(arabic)) is None
    line = line_of(
        seq=0, prev=DIGEST, kind=AuditKind.SEGMENT, data={}, at="2026-01-01T00:00:00.000000Z".translate(arabic)
    )
    with pytest.raises(ValueError, match="no time"):
        parse_line(line[:-1])


def test_an_export_larger_than_any_segment_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_journal(tmp_path, 60)
    data = b"".join(path.read_bytes() for path in lying.segments(folder))
    (tmp_path / "all.jsonl").write_bytes(data)
    monkeypatch.setattr(lying, "_MOST_BYTES", len(data) // 2)
    assert check_export(tmp_path / "all.jsonl").standing is JournalStatus.WHOLE
    monkeypatch.setattr(lying, "_EXPORT_BYTES", len(data) - 1)
    with pytest.raises(RecordDamaged, match="larger than"):
        check_export(tmp_path / "all.jsonl")


def test_another_journal_under_the_same_key_is_not_taken_for_this_one(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both hold, and the key signed both: what it signed last of this folder tells them apart."""
    assert main(["key", "new"]) == 0
    keep_task(settings, tmp_path / "repo")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
    other = Settings.from_environ()
    for _ in range(3):
        keep_task(other, tmp_path / "repo")
    assert main(["audit", "verify", "--require-signed"]) == 0
    mine, theirs = audit_log(settings).folder, audit_log(other).folder
    mine.rename(tmp_path / "kept")
    shutil.copytree(theirs, mine)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    capsys.readouterr()
    assert main(["audit", "verify"]) == 1
    assert "the key here signed entry" in capsys.readouterr().out
    with pytest.raises(RecordDamaged):
        keep_task(settings, tmp_path / "repo")


def test_heads_of_another_machines_key_say_nothing(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["key", "new"]) == 0
    keep_task(settings, tmp_path / "repo")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "another machine"))
    assert main(["key", "new"]) == 0
    capsys.readouterr()
    assert main(["audit", "verify"]) == 1
    assert "is not known here" in capsys.readouterr().out


@pytest.mark.parametrize("way", ["dropped", "swapped", "doubled", "foreign"])
def test_files_of_a_journal_that_were_moved_about_are_found(tmp_path: Path, way: str) -> None:
    log = AuditLog(tmp_path / "a", segment_bytes=2000)
    for _ in range(40):
        log.append(AuditKind.REPORTED, {"task": "x"})
    first, second, third, *_ = lying.segments(log.folder)
    if way == "dropped":
        second.unlink()
    elif way == "swapped":
        data = second.read_bytes()
        second.write_bytes(third.read_bytes())
        third.write_bytes(data)
    elif way == "doubled":
        shutil.copy(first, log.folder / segment_name(first_of(third.name) or 0))
    else:
        other = AuditLog(tmp_path / "b", segment_bytes=2000)
        for _ in range(40):
            other.append(AuditKind.REPORTED, {"task": "y"})
        shutil.copy(lying.segments(other.folder)[1], second)
    check = check_audit(log.folder)
    assert check.standing is JournalStatus.ALTERED
    assert check.place is not None


@pytest.mark.long
@pytest.mark.parametrize("seed", range(60))
def test_an_altered_export_does_not_hold_by_its_heads(settings: Settings, tmp_path: Path, seed: int) -> None:
    """Lines dropped, doubled, exchanged, cut or altered: with the head that was said to the auditor, all are found."""
    assert main(["key", "new"]) == 0
    for _ in range(2):
        keep_task(settings, tmp_path / "repo")
    out, public = tmp_path / "e.jsonl", tmp_path / "k.pub"
    assert main(["audit", "export", "--out", str(out)]) == 0
    assert main(["key", "export", "--out", str(public)]) == 0
    head = check_audit(audit_log(settings).folder).tip.digest
    verify = ["audit", "verify", "--file", str(out), "--key", str(public), "--require-signed", "--from", "0"]
    verify += ["--head", head]
    assert main(verify) == 0
    rows = out.read_bytes().splitlines(keepends=True)
    rng = random.Random(seed)
    at, to = sorted(rng.sample(range(len(rows)), 2))
    ways = ("drop", "double", "exchange", "cut", "byte")
    match ways[seed % len(ways)]:
        case "drop":
            del rows[at]
        case "double":
            rows.insert(to, rows[at])
        case "exchange":
            rows[at], rows[to] = rows[to], rows[at]
        case "cut":
            rows = rows[:to]
        case _:
            byte = rng.randrange(len(rows[at]) - 1)
            rows[at] = rows[at][:byte] + bytes([rows[at][byte] ^ 1]) + rows[at][byte + 1 :]
    out.write_bytes(b"".join(rows))
    assert main(verify) == 1


def test_an_export_without_its_beginning_says_so(
    settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep_task(settings, tmp_path / "repo")
    out = tmp_path / "e.jsonl"
    assert main(["audit", "export", "--out", str(out)]) == 0
    out.write_bytes(b"".join(out.read_bytes().splitlines(keepends=True)[1:]))
    capsys.readouterr()
    assert main(["audit", "verify", "--file", str(out)]) == 0
    assert "begins with entry 1: earlier entries are not in this file" in capsys.readouterr().out
    assert main(["audit", "verify", "--file", str(out), "--from", "0"]) == 1


# ---- the report ----------------------------------------------------------------------------------------------------


def test_a_repositorys_name_is_text_in_the_auditors_page(settings: Settings, tmp_path: Path) -> None:
    name = "<img src=x onerror=alert(1)>'\"&amp;\u202e</td><script>"
    repo = tmp_path / name.replace("/", "\u2215")
    repo.mkdir()
    keep_task(settings, repo)
    page = tmp_path / "r.html"
    assert main(["audit", "report", "--since", "2000-01-01", "--html", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert "<img" not in text
    assert "<script" not in text
    assert "\u202e" not in text
    assert "&lt;img src=x onerror=alert(1)&gt;&#39;&#34;&amp;amp;" in text


def test_a_task_that_is_no_task_of_ours_is_told(settings: Settings) -> None:
    for name in ("../../etc", "a\nb", "\u0660" * 8, "x" * 5000):
        with pytest.raises(UsageFault):
            TaskStore(settings.state_dir).open(name)
