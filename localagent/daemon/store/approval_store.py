"""Words of persons on patches that need one: what the gates asked of each patch of a task, and who let it in.

A word stands for one patch of one task: the digest of the diff and that of what it makes of the files. One stands at a
time; it counts once it is on the record, and no more from the moment on in which it is taken back. Not promised: that
words outlive their task, which is removed after some days; the journal keeps that they were given.
"""

import sqlite3
from collections.abc import Iterable
from dataclasses import astuple, dataclass

from localagent.daemon.store.task_store import Rows

_WORD = "words.seq, words.task, patch, change, asked, policy, words.uid, who, words.reason, at, recorded"
_MOST_UNTOLD = 100  # words that are put on the record in one turn


@dataclass(frozen=True, kw_only=True, slots=True)
class ReviewedPatch:
    """What the gates say of a patch. `number` is the proposal's, 0 the accepted patch; `asked` and `people` are lines.

    `people` are the accounts that the policy names, as it was when the patch was judged.
    """

    number: int
    verdict: str
    patch: str
    change: str
    asked: str
    policy: str
    people: str
    diff: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredApproval:
    """An approval. `uid` and `who` are the person; `recorded`: it is an entry of the journal, and so counts."""

    seq: int
    task: str
    patch: str
    change: str
    asked: str
    policy: str
    uid: int
    who: str
    reason: str
    at: str
    recorded: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Untold:
    """A word, or that it was taken back, which is not on the record yet. `asker` ordered the task."""

    word: StoredApproval
    asker: int
    withdrawn_by: int | None


def keep_judged(database: sqlite3.Connection, task: str, judged: Iterable[ReviewedPatch]) -> None:
    """Within the transaction that ends a task."""
    database.executemany(
        "INSERT INTO judged VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", [(task, *astuple(one)) for one in judged]
    )


def judged_of(rows: Rows, task: str) -> tuple[ReviewedPatch, ...]:
    """What was judged of a task's patches, by number; nothing for a task of an earlier version."""
    with rows.reading() as database:
        found = database.execute(
            "SELECT number, verdict, patch, change, asked, policy, people, diff FROM judged WHERE task = ?"
            " ORDER BY number",
            (task,),
        ).fetchall()
        return tuple(ReviewedPatch(**dict(row)) for row in found)


def give(
    rows: Rows, task: str, judged: ReviewedPatch, *, uid: int, who: str, reason: str, at: str
) -> tuple[StoredApproval, bool]:
    """The word that stands for a patch, and whether it is new: of two who approve at once one is the first.

    InternalFault by a broken rule of the database where the asker would approve: the caller refuses that before.
    """
    with rows.writing() as database:
        done = database.execute(
            "INSERT INTO words (task, patch, change, asked, policy, uid, who, reason, at)"
            " SELECT ?, ?, ?, ?, ?, ?, ?, ?, ? WHERE EXISTS (SELECT 1 FROM tasks WHERE id = ? AND uid <> ?)"
            " ON CONFLICT DO NOTHING",
            (task, judged.patch, judged.change, judged.asked, judged.policy, uid, who, reason, at, task, uid),
        )
        found = database.execute(
            f"SELECT {_WORD} FROM words WHERE task = ? AND patch = ? AND change = ? AND withdrawn_uid IS NULL",  # noqa: S608
            (task, judged.patch, judged.change),
        ).fetchone()
        return _parse_row(found), done.rowcount == 1


def take_back(rows: Rows, task: str, patch: str, change: str, *, uid: int) -> StoredApproval | None:
    """The word that stood and stands no more; None where none did."""
    with rows.writing() as database:
        found = database.execute(
            f"SELECT {_WORD} FROM words WHERE task = ? AND patch = ? AND change = ? AND withdrawn_uid IS NULL",  # noqa: S608
            (task, patch, change),
        ).fetchone()
        if found is None:
            return None
        database.execute("UPDATE words SET withdrawn_uid = ? WHERE seq = ?", (uid, found["seq"]))
        return _parse_row(found)


def approvals_of(rows: Rows, task: str) -> tuple[StoredApproval, ...]:
    """The words that stand for patches of a task, on the record or not yet."""
    with rows.reading() as database:
        found = database.execute(
            f"SELECT {_WORD} FROM words WHERE task = ? AND withdrawn_uid IS NULL ORDER BY seq",  # noqa: S608
            (task,),
        ).fetchall()
        return tuple(map(_parse_row, found))


def standing(rows: Rows, patch: str, change: str, asker: int) -> tuple[StoredApproval, ...]:
    """The words that count for a patch of a user's tasks."""
    with rows.reading() as database:
        found = database.execute(
            f"SELECT {_WORD} FROM words JOIN tasks ON tasks.id = words.task"  # noqa: S608 - constants
            " WHERE patch = ? AND change = ? AND tasks.uid = ? AND words.uid <> tasks.uid"
            " AND recorded = 1 AND withdrawn_uid IS NULL ORDER BY words.seq",
            (patch, change, asker),
        ).fetchall()
        return tuple(map(_parse_row, found))


def is_recorded(rows: Rows, seq: int) -> bool:
    """Whether all that is to be told of a word is on the record; True as well when it went with its task."""
    with rows.reading() as database:
        untold = database.execute(f"SELECT 1 FROM words WHERE seq = ? AND ({_UNTOLD})", (seq,)).fetchone()  # noqa: S608
        return untold is None


def untold(rows: Rows) -> tuple[Untold, ...]:
    """What is to be put on the record, the oldest first: that a word was given comes before that it was taken back."""
    with rows.reading() as database:
        found = database.execute(
            f"SELECT {_WORD}, tasks.uid AS asker, withdrawn_uid FROM words JOIN tasks ON tasks.id = words.task"  # noqa: S608
            f" WHERE {_UNTOLD} ORDER BY words.seq LIMIT ?",
            (_MOST_UNTOLD,),
        ).fetchall()
        return tuple(
            Untold(
                word=_parse_row(row),
                asker=int(row["asker"]),
                withdrawn_by=row["withdrawn_uid"] if row["recorded"] else None,
            )
            for row in found
        )


def mark_recorded(rows: Rows, one: Untold) -> None:
    """It is on the record now."""
    column = "recorded" if one.withdrawn_by is None else "withdrawn_recorded"
    with rows.writing() as database:
        database.execute(f"UPDATE words SET {column} = 1 WHERE seq = ?", (one.word.seq,))  # noqa: S608 - constants


_UNTOLD = "(recorded = 0 OR (withdrawn_uid IS NOT NULL AND withdrawn_recorded = 0))"


def _parse_row(row: sqlite3.Row) -> StoredApproval:
    values = {name: row[name] for name in StoredApproval.__dataclass_fields__}
    return StoredApproval(**{**values, "recorded": bool(row["recorded"])})
