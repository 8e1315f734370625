"""A fleet whose repositories attack the run: its processes, its memory, its report, its budget, the neighbours."""

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from support.batch_builder import MISTAKE, Batch, states, workers
from support.fix_builder import ADDER, CHECKOUT, home, processes_with
from support.git_builder import ENVIRON, Repo

QUICK = '[each]\nwork = ["codemods"]\nmax_seconds = 120\n'


@pytest.mark.long
def test_what_a_mirror_could_start_is_not_started(tmp_path: Path) -> None:
    """Configuration, hooks and attributes of a mirror and of the repository it was made of name a program."""
    with home({}) as h:
        batch = Batch(h)
        bare = batch.add_mirror("trapped", {"work.py": MISTAKE, ".gitattributes": "*.py filter=x diff=x ident\n"})
        mark = tmp_path / "ran"
        program = tmp_path / "trap"
        program.write_text(f"#!/bin/sh\ntouch {mark}\ncat\n")
        program.chmod(0o755)
        repo = Repo(bare, init=False)
        for key in (
            "core.fsmonitor",
            "core.pager",
            "core.sshCommand",
            "filter.x.smudge",
            "filter.x.process",
            "diff.x.textconv",
        ):
            repo.git("config", key, str(program))
        for name in ("post-checkout", "pre-receive", "reference-transaction"):
            (bare / "hooks" / name).write_bytes(program.read_bytes())
            (bare / "hooks" / name).chmod(0o755)
        assert batch.run(str(batch.write_all(each=QUICK))).code == 0
        assert states(batch.report()) == {"trapped": "improved"}
        assert not mark.exists()


@pytest.mark.long
def test_git_that_never_answers_costs_its_own_budget_and_is_ended() -> None:
    """A branch that is a FIFO: git waits in `open` for ever, below a worker that is killed."""
    with home({}) as h:
        batch = Batch(h)
        bare = batch.add_mirror("stuck", {"work.py": "x = 1\n"})
        batch.add("well", {"work.py": MISTAKE})
        head = bare / "refs" / "heads" / "main"
        head.parent.mkdir(parents=True, exist_ok=True)
        head.unlink(missing_ok=True)
        (bare / "packed-refs").unlink(missing_ok=True)
        os.mkfifo(head)
        entries = f'[[repository]]\nmirror = "{bare}"\nrevision = "main"\nmax_seconds = 3\n'
        fleet = batch.write(entries + f'[[repository]]\npath = "{batch.folder}/well"\n', each=QUICK)
        batch.run(str(fleet))
        report = batch.report()
        assert states(report) == {"stuck": "out-of-budget", "well": "improved"}
        assert report["needs_person"][0]["why"] == "did not end within its 3 s: ended, with all its processes"
        left = processes_with(os.fsencode(bare))
        cwds = [p for p in Path("/proc").glob("[0-9]*/cwd") if _leads_to(p, bare)]
        assert (left, cwds) == ([], [])


def _leads_to(link: Path, folder: Path) -> bool:
    try:
        return link.resolve() == folder
    except OSError:
        return False


@pytest.mark.long
def test_names_and_outputs_do_not_drive_terminal_or_page() -> None:
    with home({}) as h:
        batch = Batch(h)
        name = "<img src=x onerror=alert(1)>\x1b[2J\u202e.py"
        test = "def test_x():\n    assert 0, '</pre><script>alert(2)</script>\\x1b]0;owned\\x07'\n"
        test += "\n\ndef test_y():\n    pass\n"
        batch.add("names", {name: MISTAKE, "test_x.py": test, "bad\udcff.py": MISTAKE})
        each = '[each]\nwork = ["failing-tests", "codemods"]\nmodel = false\nmax_candidates = 2\nmax_seconds = 120\n'
        ran = batch.run(str(batch.write_all(each=each)), "--patches", str(h.root / "patches"))
        report = batch.report()
        step = report["repositories"][0]["steps"][1]
        assert {one["path"] for one in step["repaired"]} == {name, "bad\udcff.py"}
        page = (batch.runs / report["run"] / "report.html").read_text(encoding="utf-8")
        assert "onerror=alert(1)&gt;" in page
        assert not set(page + ran.out + ran.err) & set("\x1b\u202e\x07")
        assert "<script" not in page
        assert "<img" not in page
        patch = (h.root / "patches" / "names" / "0001-codemods.patch").read_bytes()
        assert b"\x1b" not in patch.split(b"\n---\n", 1)[0]


@pytest.mark.long
def test_a_repository_cannot_change_or_read_the_run() -> None:
    """Its tests look for the run's folder, the answers and the neighbour, and try to end every process."""
    with home({}) as h:
        batch = Batch(h)
        attack = textwrap.dedent(f"""
            import os, pathlib, signal
            seen = []
            for place in ({str(h.root / "state")!r}, {str(batch.folder)!r}, {str(h.root / "home")!r}):
                try:
                    seen += os.listdir(place)
                    pathlib.Path(place, "was-here").write_text("x")
                except OSError:
                    pass
            assert not seen, seen
            try:
                os.kill(os.getppid(), signal.SIGKILL)
            except OSError:
                pass
        """)
        batch.add("attacks", {**ADDER, "conftest.py": attack})
        batch.add("neighbour", {"work.py": MISTAKE})
        each = '[each]\nwork = ["failing-tests", "codemods"]\nmodel = false\nmax_candidates = 4\nmax_seconds = 60\n'
        batch.run(str(batch.write_all(each=each)))
        assert states(batch.report())["neighbour"] == "refused"  # it has no tests; its mistake is repaired all the same
        assert not list(h.root.rglob("was-here"))
        assert workers(h) == []


@pytest.mark.long
def test_memory_that_explodes_in_a_worker_ends_at_its_limit(tmp_path: Path) -> None:
    """The worker's own memory, by a parser that takes ever more: the answer says so, the process lives to say it."""
    with home({}) as h:
        batch = Batch(h)
        batch.add("explodes", {"work.py": "x = 1\n"})
        assert batch.run(str(batch.write_all(each=QUICK + "memory_mib = 512\n"))).code == 0
        report = batch.report()
        (batch.runs / report["run"] / "answers" / "0.json").unlink()
        for kept in (h.root / "state" / "localagent" / "batch" / "kept").iterdir():
            kept.unlink()
        program = textwrap.dedent("""
            import sys
            from localagent.app import Settings
            from localagent.batch.run import fleet_of
            from localagent.batch.runs import RunStore
            from localagent.batch.work import Assignment, carry_out
            from localagent.cli.batch_worker import ways

            class Greedy:
                def repair(self, path, data, rules, policy):
                    held = []
                    while True:
                        held.append(bytearray(1 << 24))

            settings = Settings.from_environ()
            run = RunStore(settings.state_dir).open()
            fleet = fleet_of(run, ways())
            sys.exit(carry_out(Assignment(run=run, fleet=fleet, number=0, settings=settings, codemods=Greedy())))
        """)
        done = subprocess.run([sys.executable, "-c", program], env=h.environment(), cwd=CHECKOUT, check=False)
        assert done.returncode == 0
        row = batch.report()["repositories"][0]
        assert (row["state"], row["reason"]) == ("out-of-budget", "more than 512 MiB of memory")


@pytest.mark.long
def test_a_policy_that_changes_during_the_run_is_not_worked_under() -> None:
    """Changed between plan and worker: the answer says so, and is not kept under the digest of the old one."""
    with home({}) as h:
        batch = Batch(h)
        for name in ("a", "b"):
            batch.add(name, {"work.py": f"name = {name!r}\n" + MISTAKE})
        policy = h.root / "policy.toml"
        policy.write_bytes((CHECKOUT / "policies" / "default.toml").read_bytes())
        fleet = batch.write_all(each=QUICK + 'policy = "policy.toml"\n')
        with h.start("batch", "run", str(fleet)) as process:
            while not list(batch.runs.glob("*/answers/0.json")):
                assert process.poll() is None, process.communicate()
                time.sleep(0.01)
            policy.write_text(policy.read_text() + "# weaker\n")
            process.communicate()
        report = batch.report()
        assert states(report) == {"a": "improved", "b": "fault"}
        assert report["needs_person"][0]["why"] == "localagent or the policy changed since the run began"
        kept = list((h.root / "state" / "localagent" / "batch" / "kept").iterdir())
        assert len(kept) == 1


@pytest.mark.long
@pytest.mark.parametrize("damage", [b"", b'{"schema": "localagent/batch-answer/1"}'])
def test_a_damaged_answer_is_found_anew(damage: bytes) -> None:
    with home({}) as h:
        batch = Batch(h)
        batch.add("one", {"work.py": MISTAKE})
        assert batch.run(str(batch.write_all(each=QUICK))).code == 0
        report = batch.report()
        (batch.runs / report["run"] / "answers" / "0.json").write_bytes(damage)
        assert states(batch.report()) == {"one": "not-reached"}
        ran = batch.run("--resume")
        assert ran.code == 0
        assert "damaged" in ran.err
        assert batch.report()["digest"] == report["digest"]


@pytest.mark.long
def test_a_link_in_place_of_an_answer_is_not_followed(tmp_path: Path) -> None:
    with home({}) as h:
        batch = Batch(h)
        batch.add("one", {"work.py": MISTAKE})
        assert batch.run(str(batch.write_all(each=QUICK))).code == 0
        report = batch.report()
        answer = batch.runs / report["run"] / "answers" / "0.json"
        other = tmp_path / "other"
        answer.rename(other)
        answer.symlink_to(other)
        before = other.read_bytes()
        assert states(batch.report()) == {"one": "not-reached"}
        assert batch.run("--resume").code == 0
        assert other.read_bytes() == before
        assert not answer.is_symlink()


@pytest.mark.long
def test_a_mirror_of_a_hostile_tree_is_an_answer_not_a_crash() -> None:
    """A tree that holds itself ten times on each of seven levels, and a commit that is a blob."""
    with home({}) as h:
        batch = Batch(h)
        for name in ("bomb", "blob"):
            batch.add_mirror(name, {"work.py": "x = 1\n"})
        repo = Repo(batch.folder / "bomb.git", init=False)

        def tree(*entries: tuple[bytes, bytes, str]) -> str:
            data = b"".join(mode + b" " + entry + b"\0" + bytes.fromhex(sha) for mode, entry, sha in entries)
            return repo.git("hash-object", "-w", "-t", "tree", "--literally", "--stdin", stdin=data).decode().strip()

        at = tree((b"100644", b"x.py", repo.git("rev-parse", "main:work.py").decode().strip()))
        for _ in range(7):
            at = tree(*((b"40000", b"%02d" % n, at) for n in range(10)))
        commit = repo.git("commit-tree", "-m", "m", at).decode().strip()
        repo.git("update-ref", "refs/heads/main", commit)
        (batch.folder / "blob.git" / "refs" / "heads").mkdir(exist_ok=True, parents=True)
        blob = subprocess.run(
            ["git", "rev-parse", "main:work.py"],
            cwd=batch.folder / "blob.git",
            env=ENVIRON,
            capture_output=True,
            check=True,
        ).stdout
        (batch.folder / "blob.git" / "refs" / "heads" / "main").write_bytes(blob)
        batch.run(str(batch.write_all(each=QUICK)))
        report = batch.report()
        assert states(report) == {"bomb": "refused", "blob": "refused"}
        reasons = {row["name"]: row["reason"] for row in report["repositories"]}
        assert "holds more than 300,000 entries" in reasons["bomb"]
        assert "no commit 'main'" in reasons["blob"]
