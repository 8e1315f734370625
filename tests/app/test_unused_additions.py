"""What a change adds to a module and nothing uses is seen; what is used, asked for or was there is not."""

import pytest

from localagent.app.agent.unused_additions import unused_additions
from localagent.domain.paths import RepoPath

PATH = RepoPath("pkg/mod.py")
BEFORE = b"LIMIT = 3\n\n\ndef f(x):\n    return x\n"


@pytest.mark.parametrize(
    ("added", "found"),
    [
        ("PROBE = 1", ["PROBE"]),
        ("PROBE: int = 1", ["PROBE"]),
        ("PROBE = {}\nPROBE['x'] = 1", ["PROBE"]),
        ("def probe():\n    return 1", ["probe"]),
        ("class Probe:\n    pass", ["Probe"]),
        ("import pickle as probe", ["probe"]),
        ("from os import path as probe", ["probe"]),
        ("if LIMIT:\n    PROBE = 1", ["PROBE"]),
        ("try:\n    import probe\nexcept ImportError:\n    other = None", ["probe", "other"]),
        ("PROBE = 1\nf(PROBE)", []),
        ("def f_asked():\n    return 1", []),  # the instruction names it
        ("def elsewhere():\n    return 1", []),  # a document speaks of it
        ("__version__ = '1'", []),
        ("@register\ndef probe():\n    return 1", []),
        ("LIMIT = 4", []),
        ("from os import *", []),
        ("f.attribute = 1", []),
    ],
)
def test_names_that_nothing_uses(added: str, found: list[str]) -> None:
    after = {PATH: BEFORE + added.encode() + b"\n"}
    told = unused_additions({PATH: BEFORE}, after, [b"call elsewhere()"], "add f_asked")
    assert [name.rpartition(" ")[2] for name in told] == found
    assert all(name.startswith("pkg/mod.py:") for name in told)


def test_a_new_file_and_a_name_used_in_another_file() -> None:
    other = RepoPath("pkg/other.py")
    after = {PATH: b"def helper():\n    return 1\n", other: b"from pkg.mod import helper\nX = helper()\n"}
    assert unused_additions({PATH: None, other: None}, after, [], "") == ("pkg/other.py:2: X",)
