"""What a night's patches are vouched by: each a task on the record, attested, with the attestation beside it."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from securesystemslib.dsse import Envelope
from securesystemslib.signer import SSlibKey  # type: ignore[attr-defined]
from support.batch_builder import MISTAKE, Batch
from support.fix_builder import ADDER, home
from support.git_builder import ENVIRON
from support.sarif_builder import log, result, run

from localagent.domain.edit import digest_of
from localagent.record.attest.keys import KeyRing

EACH = '[each]\nwork = ["failing-tests", "codemods"]\nmodel = false\nmax_candidates = 12\nmax_seconds = 150\n'
EACH += 'policy = "takes.toml"\n'
LOG = log(run(result("E713", "s.py", 2), tool="ruff"))


@pytest.fixture(scope="module")
def night() -> Iterator[Batch]:
    """One night with a key: a repository of two steps, a mirror, one with a log, and two that come to nothing."""
    with home({}) as h:
        batch = Batch(h)
        assert h.run("key", "new").code == 0
        batch.add("both", {**ADDER, "adder.py": ADDER["adder.py"] + MISTAKE})
        batch.add("styled", {"s.py": "def f(a, b):\n    return not a in b\n"})
        batch.add("clean", {"c.py": "x = 1\n"})
        batch.add("noticed", {"n.py": MISTAKE.lstrip(), "test_n.py": "def test_n():\n    assert False\n"})
        batch.add_mirror("bare", {"m.py": MISTAKE.lstrip()})
        (h.root / "one.sarif").write_bytes(LOG)
        fleet = batch.write(
            f'[[repository]]\npath = "{batch.folder}/both"\n'
            f'[[repository]]\npath = "{batch.folder}/styled"\nwork = ["sarif"]\nsarif = ["{h.root}/one.sarif"]\n'
            f'[[repository]]\npath = "{batch.folder}/clean"\nwork = ["codemods"]\n'
            f'[[repository]]\npath = "{batch.folder}/noticed"\nwork = ["codemods"]\ntests = ["test_n.py"]\n'
            f'[[repository]]\nmirror = "{batch.folder}/bare.git"\nrevision = "main"\nwork = ["codemods"]\n',
            each=EACH,
        )
        ran = batch.run(str(fleet), "--patches", str(h.root / "patches"), "--attest")
        assert "4 patches below" in ran.err, ran
        assert "4 attested" in ran.err
        yield batch


def rows(batch: Batch) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in batch.report()["repositories"]}


def opened(bundle: Path, batch: Batch) -> list[dict[str, Any]]:
    """The statements, as a verifier that is not ours opens them."""
    ((key_id, public),) = KeyRing(batch.home.root / "data" / "localagent").public_keys().items()
    key = SSlibKey.from_crypto(public, keyid=key_id)
    found = []
    for row in bundle.read_bytes().splitlines():
        envelope = Envelope.from_dict(json.loads(row))
        assert envelope.verify([key], 1) == {key_id: key}
        found.append(json.loads(envelope.payload))
    return found


@pytest.mark.long
def test_beside_each_patch_lie_its_diff_and_what_is_signed_about_it(night: Batch) -> None:
    patches = night.home.root / "patches"
    bundles = sorted(patches.rglob("*.intoto.jsonl"))
    names = [str(p.relative_to(patches)) for p in bundles]
    assert names == [
        "bare/0001-codemods.intoto.jsonl",
        "both/0001-failing-tests.intoto.jsonl",
        "both/0002-codemods.intoto.jsonl",
        "styled/0001-sarif.intoto.jsonl",
    ]
    for bundle in bundles:
        diff = bundle.with_name(bundle.name.replace(".intoto.jsonl", ".diff"))
        assert diff.read_bytes() in diff.with_suffix(".patch").read_bytes()
        assert night.home.run("attest", "verify", str(bundle), "--patch", str(diff)).code == 0
        assert len(opened(bundle, night)) == 3


@pytest.mark.long
def test_what_git_am_makes_is_the_tree_that_was_attested(night: Batch, tmp_path: Path) -> None:
    patches, tree = night.home.root / "patches" / "both", tmp_path / "both"
    shutil.copytree(night.folder / "both", tree)
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run(["git", *command], cwd=tree, env=ENVIRON, check=True)
    for name in ("0001-failing-tests", "0002-codemods"):
        subprocess.run(["git", "am", "-q", patches / f"{name}.patch"], cwd=tree, env=ENVIRON, check=True)
        bundle = str(patches / f"{name}.intoto.jsonl")
        assert night.home.run("attest", "verify", bundle, "--tree", str(tree)).code == 0
    assert night.home.run(
        "attest", "verify", str(patches / "0001-failing-tests.intoto.jsonl"), "--tree", str(tree)
    ).code


@pytest.mark.long
def test_a_step_goes_on_top_of_the_one_before_and_says_so(night: Batch) -> None:
    first, second = rows(night)["both"]["steps"]
    statements = opened(night.home.root / "patches" / "both" / "0002-codemods.intoto.jsonl", night)
    results, provenance, review = (s["predicate"] for s in statements)
    made = provenance["buildDefinition"]
    assert made["buildType"] == "urn:localagent:build-type:remediate:1"
    assert made["externalParameters"]["below"] == [first["patch_digest"]]
    assert (results["result"], len(results["passedTests"])) == ("PASSED", 3)
    assert review["task"] == second["task"]
    names = {d["name"]: d["digest"]["sha256"] for d in made["resolvedDependencies"] if "digest" in d}
    assert names["snapshot"] == rows(night)["both"]["tree"].removeprefix("sha256:")
    repaired = next(s for s in opened(night.home.root / "patches" / "both" / "0001-failing-tests.intoto.jsonl", night))
    assert {s["name"]: s["digest"]["sha256"] for s in repaired["subject"]}["adder.py"] == names["before:adder.py"]


@pytest.mark.long
def test_where_no_test_ran_that_is_what_is_attested(night: Batch) -> None:
    statements = opened(night.home.root / "patches" / "styled" / "0001-sarif.intoto.jsonl", night)
    results, provenance, _ = (s["predicate"] for s in statements)
    assert (results["result"], results["passedTests"]) == ("WARNED", [])
    assert provenance["buildDefinition"]["externalParameters"]["findings"] == [digest_of(LOG)]


@pytest.mark.long
def test_what_a_step_comes_to_is_on_the_record_and_where_nothing_is_found_there_is_no_task(night: Batch) -> None:
    found = rows(night)
    assert found["clean"]["steps"][0]["task"] == ""
    (noticed,) = found["noticed"]["steps"]
    assert (noticed["state"], noticed["patch"], bool(noticed["task"])) == ("refused", "", True)
    assert "no test passes" in noticed["reason"]
    out = night.home.root / "audit.json"
    assert night.home.run("audit", "report", "--since", "2000-01-01", "--json", str(out)).code == 0
    tasks = {row["task"]: row for row in json.loads(out.read_text())["tasks"]}
    assert tasks[noticed["task"]]["outcome"] == "gave-up"
    steps = [step for row in found.values() for step in row["steps"] if step["task"]]
    assert {step["task"] for step in steps} == set(tasks)
    assert all(tasks[step["task"]]["attested"] == bool(step["patch"]) for step in steps)
    assert night.home.run("audit", "verify", "--require-signed").code == 0


@pytest.mark.long
def test_a_patch_whose_task_was_altered_or_is_gone_is_not_attested(night: Batch, tmp_path: Path) -> None:
    found = rows(night)
    styled = night.home.tasks / found["styled"]["steps"][0]["task"]
    other = night.home.tasks / found["bare"]["steps"][0]["task"]
    kept = (styled / "attestation.intoto.jsonl").read_bytes()
    moved = other.rename(tmp_path / "gone")
    (styled / "attestation.intoto.jsonl").write_bytes((moved / "attestation.intoto.jsonl").read_bytes())
    try:
        ran = night.home.run("batch", "report", "--patches", str(tmp_path / "again"), "--attest")
    finally:
        (styled / "attestation.intoto.jsonl").write_bytes(kept)
        moved.rename(other)
    assert ran.code == 1
    assert "styled: patch 1 is not attested: what task" in ran.err
    assert "bare: patch 1 is not attested: task" in ran.err
    assert not (tmp_path / "again" / "styled" / "0001-sarif.intoto.jsonl").exists()
    assert (tmp_path / "again" / "styled" / "0001-sarif.patch").exists()


@pytest.mark.long
def test_it_is_refused_before_the_night_where_nothing_could_be_signed() -> None:
    with home({}) as h:
        batch = Batch(h)
        batch.add("clean", {"c.py": "x = 1\n"})
        fleet = batch.write_all()
        assert "--attest needs --patches" in batch.run(str(fleet), "--attest").err
        ran = batch.run(str(fleet), "--attest", "--patches", str(h.root / "patches"))
        assert (ran.code, "there is no signing key" in ran.err) == (1, True)
        (h.root / "phrase").write_text("secret")
        (h.root / "phrase").chmod(0o600)
        assert h.run("key", "new", "--passphrase-file", str(h.root / "phrase")).code == 0
        ran = batch.run(str(fleet))
        assert (ran.code, "is encrypted and no passphrase was given" in ran.err) == (2, True)
        assert not batch.runs.exists()
