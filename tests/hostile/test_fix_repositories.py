"""`fix` on repositories full of trouble: the one fault is found all the same, and nothing else is touched or read."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.fix_builder import ADDED, ADDER, Ran, home, processes_with, tree_of

WRITES = """
import os, pathlib
HERE = pathlib.Path(__file__).resolve().parent
PLACES = (HERE, HERE / ".git", HERE.parent, HERE.parent / "state", HERE.parent / "tmp", "/root", "/etc", "/usr", "/")
for place in (*PLACES, "/run/la", "/dev", pathlib.Path.home(), "/tmp"):
    for name in ("la-written", "other.py", "report.json"):
        try:
            pathlib.Path(place, name).write_text("destroyed = True\\n")
        except OSError:
            pass
"""
FORKS = """
import os
from adder import add
def test_forks():
    for _ in range(3):
        os.fork()
    assert add(1, 1) == 2
"""
FLOODS = """
import os
from adder import add
def test_floods():
    for _ in range(400):
        print("x" * 10_000)
        os.write(1, b"y" * 10_000)
        os.write(2, b"z" * 10_000)
    assert add(1, 1) == 2
"""
LEAVES = """
import subprocess, threading, time
from adder import add
def test_leaves_processes_and_threads():
    subprocess.Popen(["sleep", "4242"], start_new_session=True)
    threading.Thread(target=time.sleep, args=(4242,)).start()
    assert add(2, 1) == 3
"""


def accepted(ran: Ran) -> None:
    assert ran.code == 0, (ran.out, ran.err)
    assert ran.report["outcome"] == "accepted"
    assert ADDED.decode() in ran.report["patch"]


@pytest.mark.long
def test_tests_that_flood_fork_and_leave_processes() -> None:
    with home({**ADDER, "test_forks.py": FORKS, "test_floods.py": FLOODS, "test_leaves.py": LEAVES}) as h:
        before = tree_of(h.repo)
        ran = h.fix("--assume", candidates=8)
        accepted(ran)
        assert len(ran.report["fail_to_pass"]) == 5
        assert tree_of(h.repo) == before
        assert list(h.scratch.iterdir()) == []
        assert not processes_with(b"sleep\x004242")
        assert len(ran.out) + len(ran.err) < 20_000


@pytest.mark.long
def test_a_conftest_that_writes_everywhere() -> None:
    with home({**ADDER, "conftest.py": WRITES}) as h:
        (h.repo / ".git").mkdir()
        before = tree_of(h.root)
        accepted(h.fix("--assume", candidates=8))
        after = tree_of(h.root)
        new = {p.removeprefix(f"{h.root}/").split("/")[0] for p in set(after) - set(before)}
        assert new <= {"report.json", "state", "cache"}
        assert tree_of(h.repo) == {p: x for p, x in before.items() if p.startswith(f"{h.repo}/")}
        assert not [p for p in ("/root/la-written", "/etc/la-written", "/la-written") if os.path.lexists(p)]
        assert list(h.scratch.iterdir()) == []


@pytest.mark.slow
def test_tests_that_hang() -> None:
    files = {
        "count.py": "def down(n):\n    while n > 0:\n        n += 1\n    return n\n",
        "test_count.py": "from count import down\n\n\ndef test_down():\n    assert down(3) == 0\n",
    }
    with home(files) as h:
        ran = h.fix("--assume", candidates=8)
        assert ran.code == 0, (ran.out, ran.err)
        assert "n -= 1" in ran.report["patch"] or "n += -1" in ran.report["patch"]
        assert ran.report["limits_hit"]["cpu"]
        assert ran.report["failing"][0]["exception"] == "TimeLimit"


@pytest.fixture(scope="module")
def odd_tree() -> Iterator[tuple[Ran, bytes, bool]]:
    """One run on a tree with every odd entry; (how it ended, the journal, whether the tree is as it was)."""
    with home() as h:
        secret = h.root / "secret.py"
        secret.write_text("SECRET = 'out-of-the-tree-4711'\n")
        links: dict[str, str | Path] = {
            "link.py": secret,
            "up": "..",
            "etc": "/etc",
            "loop": "loop",
            "zero.py": "/dev/zero",
            "in.py": "adder.py",
        }
        for name, target in links.items():
            (h.repo / name).symlink_to(target)
        for name in ("fifo.py", "test_fifo.py"):
            os.mkfifo(h.repo / name)
        deep = "/".join(["d" * 20] * 60)
        h.write(
            {
                "binary.py": bytes(range(256)) * 40,
                "data.bin": os.urandom(5000),
                "not_utf8.py": b"x = '\xff\xfe'\n",
                "nul.py": b"x = 1\0\n",
                "deep.py": "x = " + "(" * 3000 + "1" + ")" * 3000 + "\n",
                "minus.py": "x = " + "-" * 20_000 + "1\n",
                "nested.py": "def g(a):\n"
                + "".join("    " * n + "if a:\n" for n in range(1, 96))
                + "    " * 96
                + "a\n",
                f"{deep}/m.py": "y = 1\n",
                "a name\nwith 'quotes' and \"more\".py": "z = 1\n",
                "surrogate-\udcff.py": "z = 1\n",
                "-rf": "",
            }
        )
        (h.repo / "closed.py").write_text("x = 1\n")
        (h.repo / "closed.py").chmod(0)
        before = tree_of(h.repo)
        ran = h.fix()
        journal = next(h.tasks.iterdir()) / "journal.jsonl"
        yield ran, journal.read_bytes(), tree_of(h.repo) == before


@pytest.mark.long
def test_odd_entries_do_not_stop_it(odd_tree: tuple[Ran, bytes, bool]) -> None:
    ran, _, unchanged = odd_tree
    accepted(ran)
    assert unchanged


@pytest.mark.long
def test_what_lies_outside_is_not_read(odd_tree: tuple[Ran, bytes, bool]) -> None:
    ran, journal, _ = odd_tree
    assert b"out-of-the-tree" not in journal + ran.out.encode() + ran.err.encode()


@pytest.mark.long
def test_crlf_latin_1_and_names_that_need_quotes() -> None:
    folder = "a dir/qu'o\"te\nline"
    source = "# -*- coding: latin-1 -*-\r\nNAME = 'caf\xe9'\r\ndef add(a, b):\r\n    return a - b  # \xe9\x0c\r\n"
    with home({f"{folder}/test_adder.py": ADDER["test_adder.py"]}) as h:
        h.write({f"{folder}/adder.py": source.encode("latin-1")})
        out = h.root / "out.diff"
        ran = h.fix("--out", str(out))
        assert ran.code == 0, (ran.out, ran.err)
        apply = ["git", "-c", "core.autocrlf=false", "apply", "--whitespace=nowarn", str(out)]
        done = subprocess.run(apply, cwd=h.repo, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        wanted = source.encode("latin-1").replace(b"a - b", b"a + b")
        assert (h.repo / folder / "adder.py").read_bytes() == wanted


@pytest.mark.slow
def test_a_repository_whose_own_name_is_odd() -> None:
    with home() as h:
        odd = h.root / "my repo 'q' \"d\"\nnl $(touch x) -- é"
        h.repo.rename(odd)
        ran = h.run("fix", "--repo", str(odd), "--no-model", "--max-seconds", "90", "--max-candidates", "5")
        assert ran.code == 0, (ran.out, ran.err)
        assert ADDED.decode() in ran.out


@pytest.mark.slow
def test_a_source_of_two_megabytes() -> None:
    rest = "".join(f"def f{n}(a):\n    return a + {n}\n\n\n" for n in range(60_000))
    source = ADDER["adder.py"] + "\n\n" + rest[: rest.index("\n\n\n", 2_000_000)] + "\n"
    with home({**ADDER, "adder.py": source}) as h:
        accepted(h.fix(seconds=200, candidates=2))


@pytest.mark.long
@pytest.mark.parametrize(
    ("body", "ending"),
    [("import ctypes\nctypes.string_at(0)\n", "signal 11"), ("import os\nos._exit(7)\n", "exit status 7")],
)
def test_a_test_file_that_ends_the_interpreter_is_named(body: str, ending: str) -> None:
    with home({**ADDER, "sub/test_boom.py": body}) as h:
        ran = h.fix()
        assert (ran.code, ran.report["outcome"]) == (1, "no-tests")
        assert ran.reason == f"sub/test_boom.py ends the interpreter ({ending}) while it is collected"
        assert "name the other tests with --test" in ran.out
