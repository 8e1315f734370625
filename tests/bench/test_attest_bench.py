"""The bench of altered attestations: nothing altered gets through, and a verifier that lets it through is told."""

import base64
import json
import random
import sys
from pathlib import Path

import pytest
from support.evidence_builder import OTHER, PATCH, keep_task, settings_below

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench import attest
from bench.attest_signed import SIGNED, Given, Way
from bench.attest_whole import SPELLINGS, WHOLE
from localagent.app.evidence.task_evidence import attest as attested
from localagent.app.evidence.task_evidence import key_ring, open_signer
from localagent.record.attest import dsse
from localagent.repo.diff.write_diff import unified_diff


@pytest.fixture
def givens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Given, Given]:
    """Two attestations by one key; of tasks that never ran."""
    settings = settings_below(tmp_path, monkeypatch)
    key = key_ring(settings).new().public.encode("ascii")
    signer = open_signer(settings)
    assert signer is not None
    made = []
    for patch in (PATCH, OTHER):
        bundle = attested(settings, keep_task(settings, tmp_path / "repo", patch=patch), signer)
        files = {str(change.path): change.after for change in patch.changes}
        made.append(Given(bundle=bundle, key=key, diff=unified_diff(patch), files=files))
    one, two = made
    return one, two


@pytest.mark.long
def test_one_of_each_kind_is_refused_and_every_spelling_accepted(givens: tuple[Given, Given], tmp_path: Path) -> None:
    count = len(SIGNED) + len(WHOLE)
    tallies, faults = attest.measure(givens[0], attest.enemy(givens[1]), count, 3, tmp_path / "tried")
    assert faults == []
    assert sum(t.made for t in tallies.values()) == count + len(SPELLINGS)
    assert sum(t.ours for t in tallies.values()) == count
    assert sum(t.theirs or 0 for t in tallies.values()) == len(SIGNED)
    assert f"altered: {count}, refused by ours: {count}" in list(attest.table(tallies))


def test_a_verifier_that_takes_an_altered_one_is_told(
    givens: tuple[Given, Given], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of the bench: with nobody looking at signatures, forged predicates come through."""

    def blind(found: dict[str, str], payload_type: str, keys: dict[str, object]) -> dsse.VerifiedPayload:
        return dsse.VerifiedPayload(payload=base64.b64decode(found["payload"]), key_id=next(iter(keys)))

    monkeypatch.setattr("localagent.record.attest.bundle.open_envelope", blind)
    count = len(SIGNED) + len(WHOLE)
    _, faults = attest.measure(givens[0], attest.enemy(givens[1]), count, 3, tmp_path / "tried")
    assert any(fault.endswith("accepted by ours") for fault in faults)


def test_a_fault_of_ours_is_no_refusal(
    givens: tuple[Given, Given], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("payload")

    monkeypatch.setattr("localagent.cli.attest.verify_bundle", broken)
    answer = attest.ours(givens[0], tmp_path / "tried")
    assert (answer.accepted, answer.reason) == (False, "")


@pytest.mark.parametrize("way", [*SIGNED, *WHOLE], ids=lambda way: way.name)
def test_the_same_seed_makes_the_same_alteration(way: Way, givens: tuple[Given, Given]) -> None:
    against = attest.enemy(givens[1])
    one, two = (attest.altered(way.alter, givens[0], against, random.Random(5)) for _ in range(2))
    assert one == two != givens[0]


@pytest.mark.slow
def test_the_command_makes_real_ones(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_STATE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, "/nonexistent")
    assert attest.main(["--count", "40", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["faults"] == []
    assert sum(kind["made"] for kind in told["kinds"].values()) == 40 + len(SPELLINGS)
