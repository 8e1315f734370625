"""The index as one SQLite file: files by path and digest, their chunks, the terms of these (FTS5), the trees seen.

A repository's branches and worktrees share the file: a tree is a list of (path, file), a file is stored once for its
path and digest. Every change is one transaction (WAL): a kill leaves the state before or after it, readers go on
meanwhile, and a second writer waits. A file that is damaged, or of another format, is put aside and begun anew.

FTS5 keeps no text (`content=''`): the terms of what is removed are first read back from its own lists, in one scan of
them all; so files are removed seldom, and many at once. Not promised: durability of the last seconds after a loss of
power (synchronous=NORMAL); what is missing is read again.
"""

import contextlib
import fcntl
import json
import sqlite3
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from localagent.code.graph.facts import encoded_heads
from localagent.code.index.chunks import ChunkKind
from localagent.code.index.extract import FIELDS, FORMAT, StoredChunk
from localagent.errors import AnswerIsNo

BUSY_SECONDS = 60.0
KINDS = tuple(ChunkKind)  # as they are numbered in the file
_PAGE_BYTES = 1024
_FILES_OF_A_SCAN = 500
DatabaseError = sqlite3.DatabaseError
OperationalError = sqlite3.OperationalError  # busy, a full disk: no damage
_SCHEMA = f"""
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE tree(
  id INTEGER PRIMARY KEY, root TEXT NOT NULL UNIQUE, used_at REAL NOT NULL, chunks INTEGER NOT NULL DEFAULT 0,
  files INTEGER NOT NULL DEFAULT 0, terms INTEGER NOT NULL DEFAULT 0);
CREATE TABLE history(head TEXT PRIMARY KEY, used_at REAL NOT NULL, commits BLOB NOT NULL);
CREATE TABLE file(
  id INTEGER PRIMARY KEY, path TEXT NOT NULL, digest BLOB NOT NULL, size INTEGER NOT NULL, lines INTEGER NOT NULL,
  failed TEXT NOT NULL, term_count INTEGER NOT NULL, heads BLOB NOT NULL, facts BLOB NOT NULL, UNIQUE(path, digest));
CREATE TABLE member(
  tree INTEGER NOT NULL, path TEXT NOT NULL, file INTEGER NOT NULL, stamp TEXT NOT NULL,
  PRIMARY KEY(tree, path)) WITHOUT ROWID;
CREATE INDEX member_file ON member(file);
CREATE TABLE chunk(
  id INTEGER PRIMARY KEY, file INTEGER NOT NULL, kind INTEGER NOT NULL, first_line INTEGER NOT NULL,
  last_line INTEGER NOT NULL, name TEXT NOT NULL, last_name TEXT NOT NULL, size INTEGER NOT NULL);
CREATE INDEX chunk_file ON chunk(file);
CREATE INDEX chunk_name ON chunk(last_name);
CREATE VIRTUAL TABLE term USING fts5(
  {", ".join(FIELDS)}, content='', columnsize=0, tokenize="unicode61 remove_diacritics 0 tokenchars '_'");
CREATE VIRTUAL TABLE term_count USING fts5vocab(term, row);
CREATE VIRTUAL TABLE term_place USING fts5vocab(term, instance);
"""


class IndexDamaged(AnswerIsNo):
    """The index cannot be read and could not be begun anew."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NewFile:
    """A file as it is put into the store; `failed` says why it has no chunks."""

    path: str
    digest: bytes
    size: int
    lines: int
    failed: str = ""
    chunks: Sequence[StoredChunk] = ()
    facts: bytes = b""


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """A path of a tree: which file stands there, and the stamp by which a change is seen."""

    path: str
    file: int
    stamp: str


class Store:
    """One open index. Not for several threads at once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rebuilt = ""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            self.connection = self._opened()
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
                raise IndexDamaged(f"{path}: another process keeps the index locked", remedy="try again") from error
            self.begin_anew(str(error))

    def _opened(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None)
        try:
            connection.execute(f"PRAGMA page_size={_PAGE_BYTES}")  # of a new file; most rows are short, a page is not
            connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute("PRAGMA cache_size=-65536")
            connection.execute("PRAGMA trusted_schema=OFF")
            if _format_of(connection) != FORMAT:
                _make_schema(connection)
        except BaseException:
            connection.close()
            raise
        self.path.chmod(0o600)
        return connection

    def begin_anew(self, why: str) -> None:
        """Remove the file and begin an empty one; `rebuilt` says why."""
        if hasattr(self, "connection"):
            self.connection.close()
        with self.path.with_suffix(".lock").open("a") as lock:  # two that find it damaged begin it one after the other
            fcntl.flock(lock, fcntl.LOCK_EX)
            for ending in ("", "-wal", "-shm"):
                self.path.with_name(self.path.name + ending).unlink(missing_ok=True)
            self.rebuilt = why
            try:
                self.connection = self._opened()
            except sqlite3.DatabaseError as error:
                remedy = "check the disk and the rights of its folder"
                raise IndexDamaged(f"{self.path}: {error}", remedy=remedy) from error

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction of the one writer; waits for another process's."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield self.connection
        except BaseException:
            self.connection.execute("ROLLBACK")
            raise
        self.connection.execute("COMMIT")

    def tree(self, root: str) -> int:
        """The number of a working tree, which is added where it is new."""
        row = self.connection.execute("SELECT id FROM tree WHERE root=?", (root,)).fetchone()
        if row is None:
            with self.writing() as connection:
                connection.execute("INSERT OR IGNORE INTO tree(root, used_at) VALUES(?,?)", (root, time.time()))
            row = self.connection.execute("SELECT id FROM tree WHERE root=?", (root,)).fetchone()
        return int(row[0])

    def members(self, tree: int) -> dict[str, Member]:
        """What a tree held when it was last looked at, by path."""
        rows = self.connection.execute("SELECT path, file, stamp FROM member WHERE tree=?", (tree,))
        return {native_path(path): Member(path=native_path(path), file=file, stamp=stamp) for path, file, stamp in rows}

    def known(self, path: str) -> dict[bytes, int]:
        """The stored files of a path, by digest."""
        rows = self.connection.execute("SELECT digest, id FROM file WHERE path=?", (stored_path(path),))
        return {bytes(digest): int(file) for digest, file in rows}

    def all_known(self) -> dict[str, dict[bytes, int]]:
        """The same for every path."""
        known: dict[str, dict[bytes, int]] = {}
        for path, digest, file in self.connection.execute("SELECT path, digest, id FROM file"):
            known.setdefault(native_path(path), {})[bytes(digest)] = int(file)
        return known

    def facts(self, tree: int, paths: Iterable[str] | None) -> Iterator[tuple[str, bytes, bytes]]:
        """(path, digest, stored facts) of the files of a tree that have facts, by path; of these paths, or of all."""
        select = (
            "SELECT m.path, f.digest, f.facts FROM member m JOIN file f ON f.id=m.file WHERE m.tree=? AND f.facts<>x''"
        )
        if paths is None:
            rows = self.connection.execute(f"{select} ORDER BY m.path", (tree,))
            yield from ((native_path(path), bytes(digest), bytes(facts)) for path, digest, facts in rows)
            return
        for asked in paths:
            for path, digest, facts in self.connection.execute(f"{select} AND m.path=?", (tree, stored_path(asked))):
                yield native_path(path), bytes(digest), bytes(facts)

    def symbol_at(self, tree: int, path: str, line: int) -> tuple[str, str, str] | None:
        """(kind, name, signature) of the innermost function or class around a line of a tree's file."""
        row = self.connection.execute(
            "SELECT id, kind, name FROM chunk WHERE file=(SELECT file FROM member WHERE tree=?1 AND path=?2)"
            " AND first_line<=?3 AND last_line>=?3 AND name<>'' ORDER BY last_line-first_line LIMIT 1",
            (tree, stored_path(path), line),
        ).fetchone()
        if row is None:
            return None
        return KINDS[row[1]].value, str(row[2]), heads_of(self.connection, [row[0]])[row[0]][0]

    def definitions(self, tree: int, name: str) -> list[tuple[str, StoredChunk]]:
        """(path, definition) of the functions and classes of a tree whose qualified name is, or ends with, a name."""
        rows = self.connection.execute(
            "SELECT c.id, m.path, c.kind, c.first_line, c.last_line, c.name FROM chunk c"
            " JOIN member m INDEXED BY member_file ON m.file=c.file AND m.tree=?"
            " WHERE c.last_name=? ORDER BY m.path, c.first_line",
            (tree, name.rpartition(".")[2].lower()),
        )
        fit = [row for row in rows if f".{row[5]}".endswith(f".{name}")]
        heads = heads_of(self.connection, (row[0] for row in fit))
        return [
            (
                native_path(path),
                StoredChunk(
                    kind=KINDS[kind], first_line=first, last_line=last, name=full, signature=heads[chunk][0],
                    summary=heads[chunk][1], fields=(),
                ),
            )
            for chunk, path, kind, first, last, full in fit
        ]  # fmt: skip

    def failures(self, tree: int) -> dict[str, str]:
        """Why files of a tree are not searchable, or only as text; by path."""
        rows = self.connection.execute(
            "SELECT m.path, f.failed FROM member m JOIN file f ON f.id=m.file WHERE m.tree=? AND f.failed<>''", (tree,)
        )
        return {native_path(path): str(failed) for path, failed in rows}

    def counts(self, tree: int) -> tuple[int, int]:
        """Chunks and lines of a tree."""
        row = self.connection.execute(
            "SELECT (SELECT chunks FROM tree WHERE id=?1), coalesce(sum(f.lines), 0)"
            " FROM member m JOIN file f ON f.id=m.file WHERE m.tree=?1",
            (tree,),
        ).fetchone()
        return int(row[0]), int(row[1])

    def bytes_on_disk(self) -> int:
        """The size of the file and of what is not yet merged into it."""
        beside = self.path.with_name(self.path.name + "-wal")
        return self.path.stat().st_size + (beside.stat().st_size if beside.exists() else 0)

    def history(self, head: str) -> bytes | None:
        """What was kept of the commits up to one."""
        row = self.connection.execute("SELECT commits FROM history WHERE head=?", (head,)).fetchone()
        return None if row is None else bytes(row[0])

    def keep_history(self, head: str, commits: bytes, most: int) -> None:
        """Keep it, and of the others the latest few."""
        with self.writing() as connection:
            connection.execute("INSERT OR REPLACE INTO history VALUES(?,?,?)", (head, time.time(), commits))
            connection.execute(
                "DELETE FROM history WHERE head NOT IN (SELECT head FROM history ORDER BY used_at DESC LIMIT ?)",
                (most,),
            )


def put_file(connection: sqlite3.Connection, new: NewFile) -> int:
    """Store a file and its terms; its number. One that is there already is left as it is."""
    row = connection.execute(
        "SELECT id FROM file WHERE path=? AND digest=?", (stored_path(new.path), new.digest)
    ).fetchone()
    if row is not None:
        return int(row[0])
    heads = [None if chunk.in_facts else [chunk.signature, chunk.summary] for chunk in new.chunks]
    sizes = [sum(field.count(" ") + 1 for field in chunk.fields if field) for chunk in new.chunks]
    file = connection.execute(
        "INSERT INTO file(path, digest, size, lines, failed, term_count, heads, facts) VALUES(?,?,?,?,?,?,?,?)",
        (
            stored_path(new.path), new.digest, new.size, new.lines, new.failed, sum(sizes),
            zlib.compress(json.dumps(heads).encode("ascii"), 6) if heads else b"", new.facts,
        ),
    ).lastrowid  # fmt: skip
    assert file is not None
    for chunk, size in zip(new.chunks, sizes, strict=True):
        number = connection.execute(
            "INSERT INTO chunk(file, kind, first_line, last_line, name, last_name, size) VALUES(?,?,?,?,?,?,?)",
            (
                file, KINDS.index(chunk.kind), chunk.first_line, chunk.last_line, chunk.name,
                chunk.name.rpartition(".")[2].lower(), size,
            ),
        ).lastrowid  # fmt: skip
        connection.execute(_PUT_TERMS, (number, *chunk.fields))
    return file


def heads_of(connection: sqlite3.Connection, chunks: Iterable[int]) -> dict[int, tuple[str, str]]:
    """The signature and the first line of the docstring of some chunks."""
    wanted = set(chunks)
    files = {file for chunk in wanted for (file,) in connection.execute("SELECT file FROM chunk WHERE id=?", (chunk,))}
    found: dict[int, tuple[str, str]] = {}
    for file in files:
        packed, facts = connection.execute("SELECT heads, facts FROM file WHERE id=?", (file,)).fetchone()
        known = {head[:3]: head for head in encoded_heads(facts)} if facts else {}
        rows = connection.execute(
            "SELECT id, name, first_line, last_line FROM chunk WHERE file=? ORDER BY id", (file,)
        ).fetchall()
        for (number, name, *lines), head in zip(rows, json.loads(zlib.decompress(packed)), strict=True):
            if number in wanted:
                found[number] = tuple(head) if head else known[name.rpartition(".")[2], *lines][3:]
    return found


def set_members(connection: sqlite3.Connection, tree: int, members: Iterable[Member], gone: Iterable[str]) -> None:
    """Say what stands at some paths of a tree now, and which are gone."""
    connection.executemany("DELETE FROM member WHERE tree=? AND path=?", ((tree, stored_path(path)) for path in gone))
    connection.executemany(
        "INSERT OR REPLACE INTO member(tree, path, file, stamp) VALUES(?,?,?,?)",
        ((tree, stored_path(m.path), m.file, m.stamp) for m in members),
    )


def prune(connection: sqlite3.Connection, kept_share: float) -> int:
    """Remove files that no tree has once they are more than a share of the bytes that trees have; how many.

    The oldest go first, until half of the share is left: what is removed costs one scan of all terms.
    """
    live, lost = connection.execute(
        "SELECT coalesce(sum(size) FILTER (WHERE id IN (SELECT file FROM member)), 0),"
        " coalesce(sum(size) FILTER (WHERE id NOT IN (SELECT file FROM member)), 0) FROM file"
    ).fetchone()
    if lost <= live * kept_share:
        return 0
    removed: list[int] = []
    rows = connection.execute("SELECT id, size FROM file WHERE id NOT IN (SELECT file FROM member) ORDER BY id")
    for file, size in rows.fetchall():
        if lost <= live * kept_share / 2:
            break
        removed.append(file)
        lost -= size
    for start in range(0, len(removed), _FILES_OF_A_SCAN):
        _remove(connection, removed[start : start + _FILES_OF_A_SCAN])
    return len(removed)


def compact(store: Store) -> None:
    """Merge the lists of terms, give free pages back, and empty the log: after many changes."""
    with store.writing() as connection:
        connection.execute("INSERT INTO term(term) VALUES('optimize')")
    store.connection.executescript("PRAGMA incremental_vacuum")  # `execute` takes one step, which frees one page
    store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _remove(connection: sqlite3.Connection, files: Sequence[int]) -> None:
    chunks = connection.execute(
        "SELECT id FROM chunk WHERE file IN (SELECT value FROM json_each(?))", (json.dumps(files),)
    ).fetchall()
    gone = {number for (number,) in chunks}
    places: dict[int, dict[str, list[tuple[int, str]]]] = {number: {} for number in gone}
    for number, column, offset, term in connection.execute("SELECT doc, col, offset, term FROM term_place"):
        if number in gone:
            places[number].setdefault(column, []).append((offset, term))
    for number, fields in places.items():
        texts = (" ".join(term for _, term in sorted(fields.get(field, []))) for field in FIELDS)
        connection.execute(_TAKE_TERMS, (number, *texts))
    connection.executemany("DELETE FROM chunk WHERE file=?", ((file,) for file in files))
    connection.executemany("DELETE FROM file WHERE id=?", ((file,) for file in files))


_PUT_TERMS = f"INSERT INTO term(rowid, {', '.join(FIELDS)}) VALUES(?{',?' * len(FIELDS)})"
_TAKE_TERMS = f"INSERT INTO term(term, rowid, {', '.join(FIELDS)}) VALUES('delete', ?{',?' * len(FIELDS)})"


def _format_of(connection: sqlite3.Connection) -> str:
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name='meta'").fetchone():
        return ""
    row = connection.execute("SELECT value FROM meta WHERE key='format'").fetchone()
    return str(row[0]) if row else ""


def _make_schema(connection: sqlite3.Connection) -> None:
    """An empty index of this format, in one transaction; DatabaseError where one of another format is there."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _format_of(connection) != FORMAT:  # else another process was quicker
            if connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
                raise sqlite3.DatabaseError("it was written by another version")
            for statement in _SCHEMA.split(";\n"):
                if statement.strip():
                    connection.execute(statement)
            connection.execute("INSERT INTO meta VALUES('format', ?)", (FORMAT,))
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def stored_path(path: str) -> str:
    """A path as SQLite takes it: one that is no UTF-8 as `//` and its bytes in hex."""
    if path.isascii() or not any("\udc80" <= c <= "\udcff" for c in path):
        return path
    return "//" + path.encode("utf-8", "surrogateescape").hex()


def native_path(stored: str) -> str:
    """The path that was stored so."""
    return bytes.fromhex(stored[2:]).decode("utf-8", "surrogateescape") if stored.startswith("//") else stored
