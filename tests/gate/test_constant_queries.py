"""Queries that are put together from texts of their file alone, and those that are not."""

import ast
import textwrap

import pytest

from localagent.gate.constant_queries import is_of_constants

LISTED = """
def find(db, text=None):
    where, values = ["1 = 1"], []
    if text is not None:
        where.append({item})
        values.append(text)
    return db.execute("SELECT a FROM t WHERE " + " AND ".join(where) + " ORDER BY a", values)
"""
JOINED = LISTED.replace("{item}", "'b LIKE ?'")
MOVED = "TABLE = 'a'\n\n\ndef g(x):\n    global TABLE\n    TABLE = x\n\n\n"
PRIVATE = """
class Store:
    def _rows(self, condition, values=()):
        return self.db.execute(f"SELECT a FROM t WHERE {condition}", values)

    def all(self):
        return self._rows("1")

    def named(self, name):
        return self._rows(GIVEN, (name,))
"""


def _holds(source: str, word: str = "SELECT") -> bool:
    source = textwrap.dedent(source)
    line = next(n for n, text in enumerate(source.splitlines(), 1) if word in text)
    return is_of_constants(ast.parse(source), line)


@pytest.mark.parametrize(
    ("source", "of_constants"),
    [
        ("def f(db, n):\n    return db.execute(f\"SELECT a FROM t WHERE i IN ({','.join('?' * n)})\")", True),
        ("def f(db, n):\n    m = ', '.join(['?'] * n)\n    db.execute(f'SELECT a FROM t WHERE i IN ({m})')", True),
        ("def f(db, ids):\n    return db.execute(f'SELECT a FROM t WHERE i IN ({ids})')", False),
        ("def f(db, ids):\n    return db.execute(f\"SELECT a FROM t WHERE i IN ({', '.join(ids)})\")", False),
        ("def f(db, ids):\n    return db.execute(f\"SELECT a FROM t WHERE i IN ({'?'.join(ids)})\")", False),
        ("def f(db, where):\n    return db.execute('SELECT a FROM t WHERE ' + ' AND '.join(where))", False),
        ("TABLE = 'a'\n\n\ndef f(db, TABLE):\n    return db.execute(f'SELECT a FROM {TABLE}')", False),
        ("TABLE = 'a'\n\n\ndef f(db, x):\n    TABLE = x\n    return db.execute(f'SELECT a FROM {TABLE}')", False),
        ("TABLE = 'a'\n\n\ndef f(TABLE):\n    def g(db):\n        return f'SELECT {TABLE}'\n    return g", False),
        (f"{MOVED}def f():\n    return f'SELECT {{TABLE}}'", False),
        ("TABLE = 'a'\n\n\ndef f(db, x):\n    return db.execute(f'SELECT a FROM {TABLE} {{}}'.format(x))", False),
        (JOINED.replace("values.append(text)", "where.extend(text); ', '.join(values)"), False),
        ("TABLE = 'things'\n\n\ndef f(db):\n    return db.execute(f'SELECT a FROM {TABLE}')", True),
        ("def f(db, x):\n    return db.execute('SELECT a FROM t WHERE b = %s' % x)", False),
        ("def f(db, x):\n    return db.execute('SELECT a FROM t WHERE b = ' + x)", False),
        (LISTED.replace("{item}", "'b LIKE ?'"), True),
        (LISTED.replace("{item}", "text"), False),
        (LISTED.replace("{item}", "f'b = {text}'"), False),
        (LISTED.replace("{item}", "'b LIKE ?'").replace("values.append", "where.extend"), False),
        (PRIVATE.replace("GIVEN", "'b = ?'"), True),
        (PRIVATE.replace("GIVEN", "name"), False),
        (PRIVATE.replace("GIVEN", "'b = ?'").replace("_rows", "rows"), False),
        (PRIVATE.replace("GIVEN", "'b = ?'") + "\n    def hand(self):\n        return self._rows\n", False),
    ],
)  # fmt: skip
def test_a_query_is_of_constants_where_every_hole_is(source: str, *, of_constants: bool) -> None:
    assert _holds(source) is of_constants
