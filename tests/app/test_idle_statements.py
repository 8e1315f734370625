"""Statements without effect that a change adds are named; what works, or stood, is not."""

import pytest

from localagent.app.agent.idle_statements import idle_statements
from localagent.domain.paths import RepoPath

PATH = RepoPath("pkg/mod.py")
BEFORE = b'"""Doc."""\n\nassert True\n\n\ndef f(x):\n    """Doc."""\n    return x\n'


@pytest.mark.parametrize(
    ("added", "idle"),
    [
        ("assert True", True),
        ("assert 1 < 2, 'ok'", True),
        ("'a text'", True),
        ("3", True),
        ("f", True),
        ("lambda: 0", True),
        ("f = f", True),
        ("if 1 == 2:\n    f(1)", True),
        ("if not 1:\n    f(1)", True),
        ("if f:\n    pass", True),
        ("for x in ():\n    f(x)", True),
        ("probe = 1\ndel probe", True),
        ("def g():\n    assert True\n    return 1", True),
        ("assert f", False),  # may be false
        ("assert f(1)", False),
        ("f(1)", False),
        ("f.attribute", False),
        ("...", False),
        ("x: int = 3\n'What it is.'", False),
        ("class A:\n    'Doc.'\n    pass", False),
        ("try:\n    unicode\nexcept NameError:\n    unicode = str", False),
        ("while True:\n    f(1)", False),
        ("def g():\n    pass", False),
    ],
)
def test_statements_without_effect(added: str, idle: bool) -> None:
    found = idle_statements(PATH, BEFORE, BEFORE + b"\n" + added.encode() + b"\n")
    assert bool(found) == idle, found
    assert all(where.startswith("pkg/mod.py:") for where in found)
    assert idle_statements(PATH, BEFORE, BEFORE) == ()


def test_a_docstring_behind_a_new_statement_is_none() -> None:
    """Whoever goes on from an attempt finds his way back: the text stood, and came with nothing."""
    after = BEFORE.replace(b'    """Doc."""', b'    raise ValueError(x)\n    """Doc."""')
    assert idle_statements(PATH, BEFORE, after) == ()
    assert idle_statements(PATH, BEFORE, after.replace(b'    """Doc.', b'    """Other.'))
