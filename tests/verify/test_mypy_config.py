"""No configuration of a repository has mypy load its code; what it says of types stays."""

import tomllib

import pytest
from support.verify_builder import patch, verified

from localagent.verify.checks.mypy_config import ConfigUnreadable, without_plugins

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
    with pytest.raises(ConfigUnreadable, match=r"mypy\.ini"):
        without_plugins({"mypy.ini": b"plugins = x"})


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("mypy.ini", "[mypy]\nignore_errors = True\ndisable_error_code = assignment\n"),
        ("setup.cfg", "[mypy]\nignore_errors = True\n[mypy-*]\nignore_errors = True\n"),
        ("pyproject.toml", '[tool.mypy]\nignore_errors = true\ndisable_error_code = ["assignment"]\n'),
    ],
)
@pytest.mark.parametrize("package", [False, True])
def test_a_configuration_that_keeps_errors_silent_has_its_say_and_the_tool_is_known_to_have_judged(
    name: str, text: str, package: bool
) -> None:
    files = {"m.py": "def f(x: int) -> int:\n    return x\n", name: text, **({"__init__.py": ""} if package else {})}
    told = verified(files, patch(files, {**files, "m.py": "def f(x: int) -> int:\n    y: str = x\n    return x\n"}))
    assert "mypy" not in told.reason, told.reason
    assert told.full is not None
    assert told.full.checks["mypy"] == "nothing new"


@pytest.mark.long
def test_ruff_is_not_told_to_mend_instead_of_telling() -> None:
    files = {
        "m.py": "def f(x: int) -> int:\n    return x\n",
        "test_m.py": "from m import f\n\n\ndef test_f():\n    assert f(3) == 3\n",
        "ruff.toml": "fix-only = true\n",
    }
    told = verified(files, patch(files, {**files, "m.py": "import os\n\n\n" + files["m.py"]}))
    assert not told.verdict.yes
    assert "ruff has new findings" in told.reason


@pytest.mark.long
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
