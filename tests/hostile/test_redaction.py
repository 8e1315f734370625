"""What is redacted holds no word of the repository: canaries in every place that a text of it can come from."""

import base64
import json
from pathlib import Path

import pytest
from support.fix_builder import Home, Ran, home

CANARY = "canary7f3a91c2"
SECRET = "s3cr3t9f8e7d6c5b4a39"  # of no known form: nothing but what may stay can keep it out
FILES = {
    f"{CANARY}_lib/__init__.py": "",
    f"{CANARY}_lib/adder.py": (
        f"TOKEN = '{SECRET}'\n\n\ndef add_{CANARY}(a, b):\n    # {CANARY} in a comment\n    return a - b\n"
    ),
    "test_adder.py": (
        f"import pytest\nfrom {CANARY}_lib.adder import TOKEN, add_{CANARY} as add\n\n\n"
        f"class {CANARY}Error(Exception):\n    pass\n\n\n"
        f"def test_{CANARY}():\n    print(TOKEN)\n    assert add(2, 3) == 5, '{CANARY} message ' + TOKEN\n\n\n"
        f"@pytest.mark.parametrize('more', ['{CANARY}-{SECRET}'])\ndef test_more(more):\n"
        f"    if add(7, 4) != 11:\n        raise {CANARY}Error(more)\n\n\n"
        "def test_zero():\n    assert add(4, 0) == 4\n"
    ),
}


def shown(data: bytes) -> bytes:
    """A document with what its envelopes hold."""
    rows = [json.loads(row) for row in data.splitlines()] if data.startswith(b'{"payload"') else []
    return data + b"".join(base64.b64decode(row["payload"]) for row in rows)


def everything(h: Home, *redact: str) -> dict[str, bytes]:
    """Every document for others, by name: files as they were written, and all that was said."""
    (task,) = h.tasks.iterdir()
    out = h.root / "home"
    verbs = {
        "export": ("audit", "export", "--out", str(out / "export")),
        "audit": ("audit", "report", "--since", "2020-01-01", "--html", str(out / "html"), "--json", str(out / "json")),
        "attest": ("attest", task.name, "--out", str(out / "bundle")),
        "text": ("show", task.name),
        "report": ("show", task.name, "--json"),
    }
    found = {}
    for name, verb in verbs.items():
        ran: Ran = h.run(*verb, *redact)
        assert ran.code == 0, ran
        found[name] = ran.out.encode() if name in ("text", "report") else b""
    return found | {p.name: shown(p.read_bytes()) for p in out.iterdir() if p.is_file()}


@pytest.mark.long
def test_no_word_of_a_repository_is_in_what_is_redacted() -> None:
    with home(FILES) as h:
        assert h.run("key", "new").code == 0
        assert h.fix("--task", f"please {CANARY} mend").code == 0
        (task,) = h.tasks.iterdir()
        assert h.run("apply", task.name).code == 0
        words = (CANARY.encode(), SECRET.encode(), h.root.name.encode())
        plain = everything(h)
        for name in ("bundle", "text", "report"):  # the control: it is there to be left out
            assert words[0] in plain[name], name
        assert words[1] in plain["report"]
        for name in ("export", "html", "json"):
            assert words[2] in plain[name], name
        for name, data in everything(h, "--redact").items():
            assert [word for word in words if word in data] == [], name
        out = Path(h.root, "home")
        assert h.run("audit", "verify", "--file", str(out / "export")).code == 0
        assert h.run("attest", "verify", str(out / "bundle")).code == 0


@pytest.mark.long
def test_no_word_of_what_proposals_differ_on_is_in_what_is_redacted() -> None:
    name = f"f_{CANARY}"
    files = {
        "m.py": f"def {name}(a, b):\n    return a % b\n",
        "test_m.py": f"from m import {name}\n\n\ndef test_f():\n    assert {name}(2, 2) == 4\n",
    }
    with home(files) as h:
        ran = h.fix()
        assert (ran.code, ran.report["outcome"]) == (1, "ambiguous"), ran
        assert CANARY in ran.report["ambiguity"]["call"]  # the control
        assert CANARY in ran.report["ambiguity"]["function"]["qualname"]
        (task,) = h.tasks.iterdir()
        said = h.run("show", task.name, "--json", "--redact").out
        assert CANARY not in said + h.run("show", task.name, "--redact").out
        assert json.loads(said)["ambiguity"].keys() == {"call", "answers", "function", "exact"}
        assert set(json.loads(said)["ambiguity"]["answers"]) == set(ran.report["ambiguity"]["answers"])
