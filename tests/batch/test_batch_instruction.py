"""Instructions over a fleet: by a recipe, by a scripted model server, and where no model answers."""

import subprocess

import pytest
from support.batch_builder import Batch, states
from support.false_model_server import calls_in_turn, false_model_server
from support.fix_builder import home, tree_of
from support.git_builder import ENVIRON

from localagent.record.store import TaskStore

FILES = {
    "shop.py": "def load(path):\n    return path.split(',')\n",
    "test_shop.py": "from shop import load\n\n\ndef test_load():\n    assert load('a,b') == ['a', 'b']\n",
}
NEW = "from extra import shout\n\n\ndef test_shout():\n    assert shout('a') == 'A!'\n"
EACH = '[each]\nwork = ["instruction"]\ninstruction = "rename load in shop.py to read_orders"\nassume = true\n'


@pytest.mark.long
def test_a_fleet_is_changed_as_instructed() -> None:
    """Accepted patches are for `git am`, and kept for the next night; what no model answered is asked again."""
    calls = [
        ("create", {"path": "extra.py", "content": "def shout(text):\n    return text.upper() + '!'\n"}),
        ("create", {"path": "test_extra.py", "content": NEW}),
        ("finish", {"summary": "done"}),
    ]
    with home({}) as h, false_model_server(calls_in_turn(calls)) as server:
        batch, patches = Batch(h), h.root / "patches"
        batch.add_mirror("named", FILES)
        batch.add("nameless", {"other.py": "x = 1\n"})
        batch.add("written", FILES)
        batch.add("asleep", FILES)
        shout = 'instruction = "add shout to extra.py"\n'
        fleet = batch.write(
            f'[[repository]]\nmirror = "{batch.folder}/named.git"\nrevision = "main"\n'
            f'[[repository]]\npath = "{batch.folder}/nameless"\n'
            f'[[repository]]\npath = "{batch.folder}/written"\nchat_model = "unix:{server.socket}"\n{shout}'
            f'[[repository]]\npath = "{batch.folder}/asleep"\nchat_model = "unix:{h.root}/none"\n{shout}',
            each=EACH,
        )
        before = tree_of(batch.folder)
        ran = batch.run(str(fleet), "--patches", str(patches))
        report = batch.report()
        wanted = {"named": "accepted", "written": "accepted", "nameless": "needs-person", "asleep": "refused"}
        assert states(report) == wanted, report
        assert (ran.code, [row["name"] for row in report["needs_person"]]) == (1, ["nameless", "asleep"])
        steps = {row["name"]: row["steps"][0] for row in report["repositories"]}
        assert "no model server answers" in steps["asleep"]["reason"]
        assert steps["written"]["turned"] == ["collect:test_extra.py"]
        assert (steps["named"]["evidence"]["claim"], steps["written"]["evidence"]["tools"]["create"]) == ("adds", 2)
        assert "rename function shop.load to read_orders" in steps["named"]["evidence"]["recipe"]
        page = (batch.runs / report["run"] / "report.html").read_text(encoding="utf-8")
        assert "instruction: rename load in shop.py to read_orders" in page
        mail = (patches / "named" / "0001-instruction.patch").read_text()
        assert "Subject: [PATCH] Change 2 files as instructed" in mail
        assert "* rename load in shop.py to read_orders" in mail
        clone = h.root / "clone"
        who = ["-c", "user.name=x", "-c", "user.email=x@y"]
        for command in (
            ["clone", "-q", str(batch.folder / "named.git"), str(clone)],
            ["-C", str(clone), *who, "am", "-q", str(patches / "named" / "0001-instruction.patch")],
        ):
            subprocess.run(["git", *command], env=ENVIRON, check=True)
        assert "read_orders" in (clone / "shop.py").read_text()
        assert tree_of(batch.folder) == before
        tasks = TaskStore(h.root / "state" / "localagent")
        assert tasks.open(steps["written"]["task"]).patch() is not None

        batch.run(str(fleet))
        again = {row["name"]: bool(row["same_as"]) for row in batch.report()["repositories"]}
        assert again == {"named": True, "nameless": True, "written": True, "asleep": False}
        assert batch.report()["digest"] == report["digest"]
