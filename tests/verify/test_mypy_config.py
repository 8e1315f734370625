"""No configuration of a repository has mypy load its code; what it says of types stays."""

import tomllib

import pytest
from verify_builder import patch, verified

from localagent.verify.mypy_config import Unreadable, without_plugins

EVIL = "import os\n\n\ndef plugin(version):\n    os._exit(0)\n"


@pytest.mark.parametrize("name", ["mypy.ini", ".mypy.ini", "setup.cfg"])
def test_plugins_are_taken_from_an_ini(name: str) -> None:
    made, data = without_plugins(
        {name: b"[mypy]\nPLUGINS = ./evil.py\nstrict = True\n[mypy-a.*]\nignore_errors = True\n"}
    )
    assert made.endswith(".ini")
    assert b"evil" not in data
    assert b"strict = True" in data
    assert b"[mypy-a.*]" in data


def test_plugins_are_taken_from_a_toml_however_they_are_written() -> None:
    text = '[tool.mypy]\n"pl\\u0075gins" = ["evil.py"]\nstrict = true\n[[tool.mypy.overrides]]\nmodule = ["a", "b"]\n'
    made, data = without_plugins({"pyproject.toml": text.encode()})
    assert made.endswith(".toml")
    assert tomllib.loads(data.decode()) == {"tool": {"mypy": {"strict": True, "overrides": [{"module": ["a", "b"]}]}}}


def test_what_cannot_be_read_is_no_configuration() -> None:
    with pytest.raises(Unreadable, match=r"mypy\.ini"):
        without_plugins({"mypy.ini": b"plugins = x"})


def test_a_plugin_that_ends_mypy_forges_no_types() -> None:
    files = {
        "m.py": "def f(x: int) -> int:\n    return x\n",
        "evil.py": EVIL,
        "mypy.ini": "[mypy]\nplugins = ./evil.py\n",
    }
    wrong = {**files, "m.py": "def f(x: int) -> int:\n    y: str = x\n    return x\n"}
    told = verified(files, patch(files, wrong))
    assert not told.verdict.yes
    assert "mypy" in told.reason
