"""Alterations of an attestation that need not show in a signature, and spellings that are none.

What is missing, written twice or in another form, whose diff and files they are: that is for who knows a whole bundle.
SPELLINGS leave every signed byte and all files as they are: the JSON around what is signed, the order of the lines, a
stranger's further signature. Whoever refuses them refuses what was not altered.
"""

import random
from dataclasses import replace

from bench.attest_signed import Alter, Enemy, Given, Row, Way, by_bundle, by_row, flipped, signed_by


def _field_added(row: Row, enemy: Enemy, rng: random.Random) -> None:
    holder = rng.choice([row, row["signatures"][0]])
    holder[rng.choice(["cert", "payloadtype", "keyID", ""])] = rng.choice([None, "x", [], 10**30])


def _field_type(row: Row, enemy: Enemy, rng: random.Random) -> None:
    row[rng.choice(sorted(row))] = rng.choice([None, 7, {}, [[]], True])


def _maker_twice(row: Row, enemy: Enemy, rng: random.Random) -> None:
    known = row["signatures"][0]
    bad = {**known, "sig": rng.choice([flipped(known["sig"], rng), "AAAA", ""])}
    row["signatures"].insert(rng.randrange(2), bad)


def _many_signatures(row: Row, enemy: Enemy, rng: random.Random) -> None:
    row["signatures"] += [{"keyid": f"{n:x}", "sig": "AAAA"} for n in range(rng.randrange(16, 400))]


def _base64(row: Row, enemy: Enemy, rng: random.Random) -> None:
    holder, name = rng.choice([(row, "payload"), (row["signatures"][0], "sig")])
    text = str(holder[name])
    loose = text.rstrip("=")
    last = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".index(loose[-1])
    unused = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[last ^ 1]
    forms = [text[:8] + "\n" + text[8:], text + "=", text + " ", "\ufeff" + text, text[:4] + "!" + text[4:]]
    forms += [loose, loose[:-1] + unused + "=" * (len(text) - len(loose))] if loose != text else []
    forms += [text.translate({43: "-", 47: "_"})] if "+" in text or "/" in text else []
    holder[name] = rng.choice(forms)


def _twice(data: bytes, rng: random.Random) -> bytes:
    """A key stands twice in an envelope: which of the two counts is every parser's own choice."""
    rows = data.splitlines(keepends=True)
    n = rng.randrange(len(rows))
    name = rng.choice([b'"payload"', b'"payloadType"', b'"signatures"'])
    return b"".join([*rows[:n], b"{" + name + b':"x",' + rows[n][1:], *rows[n + 1 :]])


def _byte(data: bytes, rng: random.Random) -> bytes:
    """Any byte but a line's end, which may be written otherwise."""
    at = rng.choice([n for n, byte in enumerate(data) if byte != 10])
    return data[:at] + bytes([rng.choice([b for b in range(256) if b != data[at]])]) + data[at + 1 :]


def _around(data: bytes, rng: random.Random) -> bytes:
    text = data.decode()
    whole = [b"\xef\xbb\xbf" + data, text.encode("utf-16"), data + b"\0", data + b"\n{}\n", b"\n" + data]
    more = [
        b"[" + data.replace(b"\n", b",")[:-1] + b"]",
        data.replace(b"\n", b""),
        data.replace(b"\n", b"\xe2\x80\xa8"),
    ]
    return rng.choice([*whole, *more])


def _bomb(data: bytes, rng: random.Random) -> bytes:
    bombs = [
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b"9" * 100_000,
        b"NaN",
        b"-Infinity",
        b'"\\ud800"',
        b'"' + b"a" * 9_000_000,
    ]
    rows = data.splitlines(keepends=True)
    n = rng.randrange(len(rows))
    held = rng.choice(bombs)
    return b"".join([*rows[:n], rng.choice([held, rows[n][:-2] + b',"x":' + held + b"}"]) + b"\n", *rows[n + 1 :]])


def _dropped(data: bytes, rng: random.Random) -> bytes:
    rows = data.splitlines(keepends=True)
    return b"".join(rng.sample(rows, rng.randrange(len(rows))))


def _doubled(data: bytes, rng: random.Random) -> bytes:
    rows = data.splitlines(keepends=True)
    row = rng.choice(rows)
    return b"".join([*rows, row] if rng.random() < 0.5 else [*rows[:-1], rows[0]])


def _mixed(given: Given, enemy: Enemy, rng: random.Random) -> Given:
    """A genuine statement of another task, by the same key, in the place of its like."""
    rows, others = given.bundle.splitlines(keepends=True), enemy.other.bundle.splitlines(keepends=True)
    n = rng.randrange(len(rows))
    return replace(given, bundle=b"".join([*rows[:n], others[n], *rows[n + 1 :]]))


def _diff(given: Given, enemy: Enemy, rng: random.Random) -> Given:
    data = given.diff
    at = rng.randrange(len(data))
    byte = data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
    others = [data + b"\n", data[:-1], data.replace(b"\n", b"\r\n"), b"", enemy.other.diff]
    return replace(given, diff=rng.choice([byte, byte, *others]))


def _file(given: Given, enemy: Enemy, rng: random.Random) -> Given:
    name = rng.choice(sorted(given.files))
    data = given.files[name]
    at = rng.randrange(len(data))
    byte = data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
    ways = [byte, byte, data + b"\n", data.replace(b"\n", b"\r\n"), b"", b"\xef\xbb\xbf" + data]
    return replace(given, files={**given.files, name: rng.choice(ways)})


def _file_gone(given: Given, enemy: Enemy, rng: random.Random) -> Given:
    name = rng.choice(sorted(given.files))
    if rng.random() < 0.5:
        return replace(given, links=frozenset({name}))
    return replace(given, files={path: data for path, data in given.files.items() if path != name})


WHOLE: tuple[Way, ...] = (
    Way("field added", by_row(_field_added)),
    Way("field of another type", by_row(_field_type)),
    Way("a key twice in JSON", by_bundle(_twice)),
    Way("maker's second signature", by_row(_maker_twice)),
    Way("hundreds of signatures", by_row(_many_signatures)),
    Way("base64 in another form", by_row(_base64)),
    Way("any byte of the file", by_bundle(_byte)),
    Way("bytes around and between", by_bundle(_around)),
    Way("JSON that is a bomb", by_bundle(_bomb)),
    Way("statements missing", by_bundle(_dropped)),
    Way("a statement twice", by_bundle(_doubled)),
    Way("another task's statement", _mixed),
    Way("another task's bundle", lambda g, e, _: replace(g, bundle=e.other.bundle)),
    Way("the diff", _diff),
    Way("a patched file", _file),
    Way("a patched file gone, a link", _file_gone),
)


def _reversed_keys(row: Row, enemy: Enemy, rng: random.Random) -> None:
    held = list(reversed(row.items()))
    row.clear()
    row.update(held)


def _strangers_too(row: Row, enemy: Enemy, rng: random.Random) -> None:
    theirs = signed_by(enemy, row)
    row["signatures"] = rng.choice([[*theirs, *row["signatures"]], [*row["signatures"], *theirs]])


def _escaped(data: bytes, rng: random.Random) -> bytes:
    return data.replace(b"application/vnd", rng.choice([b"application\\/vnd", b"\\u0061pplication/vnd"]))


SPELLINGS: tuple[tuple[str, Alter], ...] = (
    ("as it was made", lambda given, enemy, rng: given),
    ("spaces in the envelope", by_bundle(lambda data, _: data.replace(b'":', b'" : \t'))),
    ("escapes in the envelope", by_bundle(_escaped)),
    ("fields in another order", by_row(_reversed_keys)),
    ("lines end otherwise", by_bundle(lambda data, rng: data.replace(b"\n", rng.choice([b"\r\n", b"\r"])))),
    ("no last line's end", by_bundle(lambda data, _: data[:-1])),
    ("lines in another order", by_bundle(lambda data, _: b"".join(reversed(data.splitlines(keepends=True))))),
    ("a stranger signed too", by_row(_strangers_too)),
)
