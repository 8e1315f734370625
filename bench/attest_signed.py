"""How an attestation is altered by whoever has not its key: one alteration at a time, drawn from a seed.

A signature alone refuses these: another verifier of DSSE envelopes must do so as well. `attest_whole.py` has the rest.
"""

import base64
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from localagent.record.attest.dsse import Signer, sign
from localagent.record.attest.statement import PAYLOAD_TYPE

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Given:
    """What a verifier is handed: the bundle, the maker's public key (PEM), the diff, and the patched files by path.

    `links`: paths that are links to a file of the same bytes elsewhere.
    """

    bundle: bytes
    key: bytes
    diff: bytes
    files: Mapping[str, bytes]
    links: frozenset[str] = frozenset()

    def rows(self) -> list[Row]:
        """The envelopes."""
        return [json.loads(line) for line in self.bundle.splitlines()]

    def of(self, rows: list[Row]) -> "Given":
        """The same with these envelopes."""
        return replace(self, bundle=b"".join(json.dumps(row).encode() + b"\n" for row in rows))


@dataclass(frozen=True, kw_only=True)
class Enemy:
    """What the enemy has: a key of their own with its public part, and another task's genuine attestation."""

    signer: Signer
    key: bytes
    other: Given


Alter = Callable[[Given, Enemy, random.Random], Given]


@dataclass(frozen=True)
class Way:
    """A kind of alteration."""

    name: str
    alter: Alter


def opened(row: Row) -> Row:
    """The statement in an envelope."""
    found: Row = json.loads(base64.b64decode(row["payload"]))
    return found


def signed_by(enemy: Enemy, row: Row) -> list[Row]:
    """The enemy's signature of a genuine payload."""
    made: list[Row] = sign(enemy.signer, PAYLOAD_TYPE, base64.b64decode(row["payload"]))["signatures"]
    return made


def raw(value: bytes | str) -> str:
    """As base64."""
    return base64.b64encode(value if isinstance(value, bytes) else value.encode()).decode()


def _statement(change: Callable[[Row, random.Random], None]) -> Alter:
    """One statement of the bundle is changed, its signature is left."""

    def alter(given: Given, enemy: Enemy, rng: random.Random) -> Given:
        rows = given.rows()
        row = rng.choice(rows)
        statement = opened(row)
        change(statement, rng)
        row["payload"] = raw(json.dumps(statement, sort_keys=True, separators=(",", ":")))
        return given.of(rows)

    return alter


def by_row(change: Callable[[Row, Enemy, random.Random], None]) -> Alter:
    """One envelope of the bundle is changed."""

    def alter(given: Given, enemy: Enemy, rng: random.Random) -> Given:
        rows = given.rows()
        change(rng.choice(rows), enemy, rng)
        return given.of(rows)

    return alter


def by_bundle(change: Callable[[bytes, random.Random], bytes]) -> Alter:
    """The file's bytes are changed."""
    return lambda given, _, rng: replace(given, bundle=change(given.bundle, rng))


def _subject_digest(statement: Row, rng: random.Random) -> None:
    rng.choice(statement["subject"])["digest"] = {"sha256": f"{rng.getrandbits(256):064x}"}


def _subject_name(statement: Row, rng: random.Random) -> None:
    chosen = rng.choice(statement["subject"])
    chosen["name"] = rng.choice(["../" + chosen["name"], chosen["name"] + "x", "/etc/passwd", ""])


def _look_alike(statement: Row, rng: random.Random) -> None:
    chosen = rng.choice(statement["subject"])
    chosen["name"] = rng.choice([chosen["name"] + "\u200b", "\u202e" + chosen["name"], chosen["name"] + "\u0301"])


def _subjects(statement: Row, rng: random.Random) -> None:
    subjects = statement["subject"]
    more = {"name": "evil.py", "digest": {"sha256": f"{rng.getrandbits(256):064x}"}}
    rng.choice([lambda: subjects.pop(rng.randrange(len(subjects))), lambda: subjects.append(more), subjects.clear])()


def _leaf(value: Any, rng: random.Random) -> Any:
    """The same value with one thing in it changed."""
    if isinstance(value, dict) and value:
        name = rng.choice(sorted(value))
        return {**value, name: _leaf(value[name], rng)}
    if isinstance(value, list) and value:
        n = rng.randrange(len(value))
        return [*value[:n], _leaf(value[n], rng), *value[n + 1 :]]
    others: tuple[Any, ...] = ("PASSED", 0, -1, None, [], {"n": 1}, 10**30)
    return rng.choice([other for other in others if other != value])


def _predicate(statement: Row, rng: random.Random) -> None:
    statement["predicate"] = _leaf(statement["predicate"], rng)


def _predicate_type(statement: Row, rng: random.Random) -> None:
    statement["predicateType"] = rng.choice(["urn:nobody", statement["predicateType"] + "/", None, 7])


def _statement_type(statement: Row, rng: random.Random) -> None:
    statement["_type"] = rng.choice(["https://in-toto.io/Statement/v0.1", "", None])


def _respelled(given: Given, enemy: Enemy, rng: random.Random) -> Given:
    """The payload says the same in other bytes: what is signed is the bytes."""
    rows = given.rows()
    row = rng.choice(rows)
    row["payload"] = raw(json.dumps(opened(row), indent=rng.choice([0, 1, 2])))
    return given.of(rows)


def flipped(text: str, rng: random.Random) -> str:
    data = bytearray(base64.b64decode(text))
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return raw(bytes(data))


def _payload_byte(row: Row, enemy: Enemy, rng: random.Random) -> None:
    row["payload"] = flipped(row["payload"], rng)


def _payload_cut(row: Row, enemy: Enemy, rng: random.Random) -> None:
    data = base64.b64decode(row["payload"])
    row["payload"] = raw(data[: rng.randrange(len(data))] if rng.random() < 0.5 else data + b"\n")


def _payload_type(row: Row, enemy: Enemy, rng: random.Random) -> None:
    row["payloadType"] = rng.choice(["application/json", "", PAYLOAD_TYPE + " ", PAYLOAD_TYPE.upper()])


def _signature_byte(row: Row, enemy: Enemy, rng: random.Random) -> None:
    row["signatures"][0]["sig"] = flipped(row["signatures"][0]["sig"], rng)


def _signature_length(row: Row, enemy: Enemy, rng: random.Random) -> None:
    data = base64.b64decode(row["signatures"][0]["sig"])
    row["signatures"][0]["sig"] = raw(rng.choice([b"", data[:-1], data + b"\0", data * 2, bytes(64)]))


def _key_id(row: Row, enemy: Enemy, rng: random.Random) -> None:
    known = row["signatures"][0]["keyid"]
    row["signatures"][0]["keyid"] = rng.choice([enemy.signer.key_id, known[:16], known.upper(), known + "\u200b", ""])


def _anothers(row: Row, enemy: Enemy, rng: random.Random) -> None:
    statement = opened(row)
    _predicate(statement, rng)
    row.update(sign(enemy.signer, PAYLOAD_TYPE, json.dumps(statement).encode()))


def _borrowed_id(row: Row, enemy: Enemy, rng: random.Random) -> None:
    known = row["signatures"][0]["keyid"]
    _anothers(row, enemy, rng)
    row["signatures"][0]["keyid"] = known


def _unsigned(row: Row, enemy: Enemy, rng: random.Random) -> None:
    row["signatures"] = []


def _exchanged(field: str) -> Alter:
    """Two envelopes of the bundle change payloads, or signatures."""

    def alter(given: Given, enemy: Enemy, rng: random.Random) -> Given:
        rows = given.rows()
        one, two = rng.sample(rows, 2)
        one[field], two[field] = two[field], one[field]
        return given.of(rows)

    return alter


def _field_dropped(row: Row, enemy: Enemy, rng: random.Random) -> None:
    holder = rng.choice([row, row["signatures"][0]])
    del holder[rng.choice([name for name in sorted(holder) if name != "keyid"])]


def _cut(data: bytes, rng: random.Random) -> bytes:
    rows = data.splitlines(keepends=True)
    n = rng.randrange(len(rows))
    return b"".join([*rows[:n], rows[n][: rng.randrange(1, len(rows[n]) - 1)]])


SIGNED: tuple[Way, ...] = (
    Way("subject's digest", _statement(_subject_digest)),
    Way("subject's name", _statement(_subject_name)),
    Way("subject's name, look-alike", _statement(_look_alike)),
    Way("subject added or gone", _statement(_subjects)),
    Way("predicate's value", _statement(_predicate)),
    Way("predicate's type", _statement(_predicate_type)),
    Way("statement's type", _statement(_statement_type)),
    Way("payload spelled otherwise", _respelled),
    Way("payload's byte", by_row(_payload_byte)),
    Way("payload cut or longer", by_row(_payload_cut)),
    Way("payload's type", by_row(_payload_type)),
    Way("payloads exchanged", _exchanged("payload")),
    Way("signature's byte", by_row(_signature_byte)),
    Way("signature's length", by_row(_signature_length)),
    Way("signatures exchanged", _exchanged("signatures")),
    Way("no signature", by_row(_unsigned)),
    Way("key's id", by_row(_key_id)),
    Way("forged, by another's key", by_row(_anothers)),
    Way("forged, under the maker's id", by_row(_borrowed_id)),
    Way("another public key", lambda given, enemy, _: replace(given, key=enemy.key)),
    Way("field dropped", by_row(_field_dropped)),
    Way("cut within a line", by_bundle(_cut)),
)
