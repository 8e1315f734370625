"""`doctor --attack` as a user meets it: rows, table, exit codes."""

import json
from collections.abc import Iterator, Sequence

import pytest

from localagent.app.inventory import attack_suite
from localagent.app.inventory.attack_suite import kinds
from localagent.cli import attack, main
from localagent.errors import CannotEnforce
from localagent.jail.attacks.row import AttackRow, AttackVerdict

CATEGORIES = [name for name, _ in kinds().counts]


class _Jail:
    def __init__(self, name: str) -> None:
        self.backend, self.level = name, "L4"


def rows_of(*results: AttackVerdict, backend: str = "bubblewrap 0.0") -> list[AttackRow]:
    return [
        AttackRow(
            name=name, category="file reads", backend=backend, level="L4", result=result, why="files shown: ENOENT"
        )
        for name, result in zip(attack_suite.NAMES, results, strict=False)
    ]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[AttackRow]:
    """What the suite is made to answer, by two backends."""
    rows: list[AttackRow] = []

    def answer(jails: Sequence[_Jail], settings: object) -> Iterator[AttackRow]:
        yield from reversed(rows)  # as they come: in no order

    monkeypatch.setattr(attack, "usable", lambda kind: (_Jail("bubblewrap 0.0"), _Jail("nsjail 0.0")))
    monkeypatch.setattr(attack, "attack", answer)
    return rows


def call(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    code = main.main(["doctor", *argv])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_0_where_none_escaped(told: list[AttackRow], capsys: pytest.CaptureFixture[str]) -> None:
    told += rows_of(AttackVerdict.HELD, AttackVerdict.NOT_APPLICABLE, AttackVerdict.HELD)
    code, out, _ = call(capsys, "--attack")
    assert code == 0
    assert out.splitlines()[0] == "file reads (bubblewrap 0.0, level L4)"
    assert out.splitlines()[-1] == "3 attacks on 1 backend: 2 held, 0 escaped, 1 not-applicable"


def test_1_where_one_escaped_and_it_is_said_at_once(told: list[AttackRow], capsys: pytest.CaptureFixture[str]) -> None:
    told += rows_of(AttackVerdict.HELD, AttackVerdict.ESCAPED) + rows_of(AttackVerdict.HELD, backend="nsjail 0.0")
    code, out, err = call(capsys, "--attack")
    assert code == 1
    assert f"escaped: {attack_suite.NAMES[1]} (bubblewrap 0.0)" in err
    assert "3 attacks on 2 backends: 2 held, 1 escaped, 0 not-applicable" in out


def test_the_json_answer(told: list[AttackRow], capsys: pytest.CaptureFixture[str]) -> None:
    told += rows_of(AttackVerdict.HELD, AttackVerdict.ESCAPED)
    code, out, _ = call(capsys, "--attack", "--json")
    answer = json.loads(out)
    assert code == 1
    assert list(answer) == ["attacks"]
    assert [row["name"] for row in answer["attacks"]] == list(attack_suite.NAMES[:2])
    for row in answer["attacks"]:
        assert set(row) == {"name", "category", "backend", "level", "result", "why"}
        assert all(isinstance(value, str) for value in row.values())
        assert row["category"] in CATEGORIES
        assert row["result"] in {"held", "escaped", "not-applicable"}


def test_4_without_a_jail_and_nothing_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def refuse(**_: object) -> None:
        raise CannotEnforce("no sound jail on this machine", remedy="install bubblewrap")

    monkeypatch.setattr(attack_suite, "open_jail", refuse)
    monkeypatch.setattr(attack, "attack", lambda *_: pytest.fail("an attack was run"))
    code, out, err = call(capsys, "--attack", "--json")
    assert (code, json.loads(out)["error"]["kind"]) == (4, "cannot-enforce")
    assert "install bubblewrap" in err


def test_backend_without_attack_is_a_usage_fault(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = call(capsys, "--backend", "bubblewrap")
    assert code == 2
    assert "--attack" in err


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["bubblewrap"])
def test_the_whole_suite_on_this_machine(backend: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, "--attack", "--json", "--backend", backend)
    rows = json.loads(out)["attacks"]
    assert [row for row in rows if row["result"] == "escaped"] == []
    assert code == 0
    assert [row["name"] for row in rows] == list(attack_suite.NAMES)
    assert {row["category"] for row in rows} == set(CATEGORIES)
    assert all(row["backend"].startswith(backend) and row["why"] for row in rows)
    assert f"of {kinds().total} tried" in err
