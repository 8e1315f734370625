"""The daemon's database: its tables, its migrations, and the checks before it is used.

SQLite in WAL mode, every commit synced: what was accepted survives a kill of any process and a power cut. Not promised:
use over a network file system, or two daemons on one database (a lock on the folder prevents that).
"""

import sqlite3
from pathlib import Path

from localagent.errors import AnswerIsNo, CannotEnforce

FILE_NAME = "daemon.sqlite3"
BUSY_SECONDS = 20.0
_PAGE_BYTES = 4096
MIGRATIONS = (
    """
    CREATE TABLE users (
        uid INTEGER PRIMARY KEY,
        served_at REAL NOT NULL DEFAULT 0
    ) STRICT;
    CREATE TABLE usage (
        uid INTEGER NOT NULL REFERENCES users(uid),
        day TEXT NOT NULL,
        seconds REAL NOT NULL DEFAULT 0,
        PRIMARY KEY (uid, day)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE blobs (
        uid INTEGER NOT NULL REFERENCES users(uid),
        digest TEXT NOT NULL,
        size INTEGER NOT NULL CHECK (size >= 0),
        touched_at REAL NOT NULL,
        PRIMARY KEY (uid, digest)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE tasks (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        uid INTEGER NOT NULL REFERENCES users(uid),
        state TEXT NOT NULL CHECK (state IN ('held', 'queued', 'running', 'done', 'failed', 'cancelled')),
        priority INTEGER NOT NULL,
        task_order TEXT NOT NULL,
        created_at REAL NOT NULL,
        started_at REAL,
        finished_at REAL,
        attempts INTEGER NOT NULL DEFAULT 0,
        interruptions INTEGER NOT NULL DEFAULT 0,
        cancel INTEGER NOT NULL DEFAULT 0 CHECK (cancel IN (0, 1)),
        approved_by INTEGER,
        exit INTEGER,
        reason TEXT NOT NULL DEFAULT ''
    ) STRICT;
    CREATE INDEX tasks_by_state ON tasks (state, uid);
    CREATE INDEX tasks_by_user ON tasks (uid, seq);
    CREATE TABLE leases (
        task TEXT PRIMARY KEY REFERENCES tasks(id) ON DELETE CASCADE,
        token TEXT NOT NULL UNIQUE,
        since REAL NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE events (
        task TEXT NOT NULL REFERENCES tasks(id) ON DELETE CASCADE,
        seq INTEGER NOT NULL,
        at REAL NOT NULL,
        kind TEXT NOT NULL,
        data TEXT NOT NULL,
        PRIMARY KEY (task, seq)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE results (
        task TEXT PRIMARY KEY REFERENCES tasks(id) ON DELETE CASCADE,
        report BLOB NOT NULL,
        patch BLOB,
        proposals BLOB NOT NULL
    ) STRICT;
    CREATE TABLE idempotency (
        uid INTEGER NOT NULL REFERENCES users(uid),
        key TEXT NOT NULL,
        digest TEXT NOT NULL,
        task TEXT NOT NULL REFERENCES tasks(id) ON DELETE CASCADE,
        PRIMARY KEY (uid, key)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX idempotency_by_task ON idempotency (task);
    """,
    """
    CREATE TABLE judged (
        task TEXT NOT NULL REFERENCES tasks(id) ON DELETE CASCADE,
        number INTEGER NOT NULL CHECK (number >= 0),
        verdict TEXT NOT NULL,
        patch TEXT NOT NULL,
        change TEXT NOT NULL,
        asked TEXT NOT NULL,
        policy TEXT NOT NULL,
        people TEXT NOT NULL,
        diff BLOB NOT NULL,
        PRIMARY KEY (task, number)
    ) STRICT;
    CREATE TABLE words (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        task TEXT NOT NULL REFERENCES tasks(id) ON DELETE CASCADE,
        patch TEXT NOT NULL,
        change TEXT NOT NULL,
        asked TEXT NOT NULL,
        policy TEXT NOT NULL,
        uid INTEGER NOT NULL,
        who TEXT NOT NULL,
        reason TEXT NOT NULL,
        at TEXT NOT NULL,
        recorded INTEGER NOT NULL DEFAULT 0 CHECK (recorded IN (0, 1)),
        withdrawn_uid INTEGER,
        withdrawn_recorded INTEGER NOT NULL DEFAULT 0 CHECK (withdrawn_recorded IN (0, 1))
    ) STRICT;
    CREATE UNIQUE INDEX one_word_stands ON words (task, patch, change) WHERE withdrawn_uid IS NULL;
    CREATE INDEX words_by_patch ON words (patch, change);
    CREATE INDEX words_untold ON words (seq)
        WHERE recorded = 0 OR (withdrawn_uid IS NOT NULL AND withdrawn_recorded = 0);
    """,
    """
    ALTER TABLE tasks ADD COLUMN confidence TEXT;
    """,
    """
    ALTER TABLE results ADD COLUMN session BLOB;
    """,
)


class StoreFull(AnswerIsNo):
    """No room for more: what there is is kept, nothing new is taken."""


class StoreBusy(AnswerIsNo):
    """Another process kept the database to itself for longer than anybody waits."""


def connect(folder: Path) -> sqlite3.Connection:
    """A connection with every setting made; one thread at a time may use it."""
    try:
        database = sqlite3.connect(
            folder / FILE_NAME,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=64,
        )
    except sqlite3.Error as fault:
        raise _damaged(folder, str(fault)) from fault
    database.row_factory = sqlite3.Row
    try:
        for pragma in ("foreign_keys = ON", "synchronous = FULL", "trusted_schema = OFF", "cell_size_check = ON"):
            database.execute(f"PRAGMA {pragma}")
    except sqlite3.Error as fault:
        database.close()
        raise _damaged(folder, str(fault)) from fault
    return database


def prepare(folder: Path) -> int:
    """Make or bring up to date and check the database; its version. CannotEnforce when it is not sound.

    Only the holder of the folder's lock calls this.
    """
    database = connect(folder)
    try:
        (folder / FILE_NAME).chmod(0o600)
        mode = database.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        if mode != "wal":
            raise _damaged(folder, f"no write-ahead log there (journal mode {mode})", "use a local file system")
        if not database.execute("PRAGMA foreign_keys").fetchone()[0]:
            raise _damaged(folder, "this SQLite cannot hold foreign keys", "use a Python with a complete SQLite")
        _migrate(database, folder)
        faults = [row[0] for row in database.execute("PRAGMA quick_check(5)") if row[0] != "ok"]
        faults += [f"{row[0]} names a missing {row[2]}" for row in database.execute("PRAGMA foreign_key_check")][:5]
        if faults:
            raise _damaged(folder, "; ".join(faults))
        return len(MIGRATIONS)
    except sqlite3.Error as fault:
        raise _damaged(folder, str(fault)) from fault
    except OSError as fault:
        raise CannotEnforce(f"{folder}: {fault.strerror}", remedy="give the daemon a folder of its own") from fault
    finally:
        database.close()


def _migrate(database: sqlite3.Connection, folder: Path) -> None:
    version = database.execute("PRAGMA user_version").fetchone()[0]
    if version > len(MIGRATIONS):
        raise _damaged(folder, f"a newer localagent wrote it (version {version})", "start that one")
    for number, script in enumerate(MIGRATIONS[version:], version + 1):
        database.executescript(f"BEGIN IMMEDIATE; {script}; PRAGMA user_version = {number}; COMMIT;")


def _damaged(folder: Path, why: str, remedy: str = "") -> CannotEnforce:
    return CannotEnforce(
        f"the daemon's database {folder / FILE_NAME} cannot be used: {why}",
        remedy=remedy or "move the folder away to start with an empty queue; nothing was changed",
    )


def translated(fault: sqlite3.Error) -> AnswerIsNo | None:
    """The fault as an answer, where it says that there is no room or that somebody else writes; else None."""
    code = getattr(fault, "sqlite_errorcode", None)
    name = str(getattr(fault, "sqlite_errorname", ""))
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_NOMEM) or name.startswith(
        ("SQLITE_IOERR_WRITE", "SQLITE_IOERR_SH")
    ):
        return StoreFull("the daemon has no room for more", remedy="free space where the daemon keeps its state")
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreBusy("the daemon's database is busy", remedy="try again")
    return None
