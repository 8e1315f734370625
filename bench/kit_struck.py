"""Kills installers and judges what stands: for a user by time, for the machine by time and before each kind of call.

After every kill the command must answer as before or as after, with units of one of the two and each of them whole, and
the same command once more must end as if nothing had happened. The user's second kit keeps its state by another schema:
its first run, which brings the state there, is killed too. For the machine it needs root (support.kit_machine).
"""

import random
import shutil
import sys
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from support.kit_builder import PUBLIC, Home, make_kit  # noqa: E402
from support.kit_kills import STEPS, Appliance, killed  # noqa: E402
from support.kit_machine import possible  # noqa: E402

STATE_FILES = 400  # so that bringing them to another schema takes a moment
NEAR_THE_END = 25  # calls: where the switch and what follows it are


def stateful(home: Home) -> None:
    """Some state as the first version keeps it."""
    state = home.path / ".local" / "state" / "localagent"
    state.mkdir(parents=True)
    (state / "words").write_text("kept")
    for number in range(STATE_FILES):
        (state / f"task-{number}").write_text("x" * 1000)


def kills(work: Path, count: int, dice: random.Random) -> bool:
    """For a user, by time: every second kill near the end, where the switch is."""
    one, two = make_kit(work / "one", "1", schema=1), make_kit(work / "two", "2", schema=2)
    home = Home(work / "killed")
    home.path.mkdir()
    environ = {"HOME": str(home.path), "PATH": "/usr/bin:/bin", "PYTHON": sys.executable}
    stateful(home)
    commands = home.path / ".local" / "bin"
    tool = str(commands / "localagent-kit")

    def standing(name: str) -> Path:
        shutil.copytree(home.path, work / name, symlinks=True)
        return work / name

    bare = standing("bare")
    home.kit(one, "install", "--key", PUBLIC)
    with_one = standing("with-one")
    home.kit(two, "install")
    unmigrated = standing("unmigrated")
    home.version()
    (home.path / ".local" / "state" / "localagent" / "schema-2" / "words").write_text("SINCE")
    with_two = standing("with-two")
    old_words, new_words = "localagent 1 kept", "localagent 2 KEPT"
    operations = {  # name: what stands before, the command, what is answered before and after
        "install": (bare, ["sh", str(one / "install"), "--key", PUBLIC], "", old_words),
        "upgrade": (with_one, [tool, "upgrade", str(two)], old_words, new_words),
        "first run": (unmigrated, [str(commands / "localagent")], new_words, new_words),
        "rollback": (with_two, [tool, "rollback"], "localagent 2 SINCE", old_words),
        "uninstall": (with_one, [tool, "uninstall"], old_words, ""),
    }
    seen: Counter[str] = Counter()
    wrong = 0
    seconds: dict[str, float] = {}
    for number in range(count + len(operations)):
        name = list(operations)[number % len(operations)]
        before, argv, old, new = operations[name]
        shutil.rmtree(home.path)
        shutil.copytree(before, home.path, symlinks=True)
        if name not in seconds:  # once to the end, to know how long it takes
            began = time.monotonic()
            killed(argv, environ, 600)
            seconds[name] = time.monotonic() - began
            continue
        whole = seconds[name]
        when = (0.0, whole) if number // len(operations) % 2 else (0.9 * whole, 1.1 * whole)
        died = killed(argv, environ, dice.uniform(*when))
        answer = home.version()
        seen[
            f"{name}: {'killed' if died else 'done'}, {'new' if answer == new else 'old' if answer == old else answer}"
        ] += 1
        if name == "uninstall" and answer == "" and not Path(tool).exists():
            argv = ["sh", str(one / "uninstall")]
        home.run(*argv)
        if answer not in (old, new) or home.version() != new:
            wrong += 1
            print(f"WRONG: {name}: answered {answer!r}, then {home.version()!r}")
    for line, times in sorted(seen.items()):
        print(f"  {line}: {times}")
    print(f"kills for a user: {count - wrong} of {count} left the old or new version with its state")
    return wrong == 0


def machine_kills(work: Path, count: int, dice: random.Random) -> bool:
    """For the machine: a third by time, a third before any call that changes something, a third near the end."""
    if not possible():
        print("kills for the machine: NOT TRIED, they need root and a kernel that lets overlays be mounted")
        return True
    appliance = Appliance(work / "appliance")
    at = 0
    seen: Counter[str] = Counter()
    wrong = done = 0
    try:
        moments, seconds = {}, {}
        for step in STEPS:
            began = time.monotonic()
            moments[step] = appliance.finished(step)
            seconds[step] = time.monotonic() - began
        while done < count or appliance.machine.version():
            step, kind = STEPS[at % len(STEPS)], at // len(STEPS) % 3
            if kind == 0:
                stood, faults = appliance.struck(step, None, dice.uniform(0, seconds[step]))
            else:
                first = max(0, moments[step] - NEAR_THE_END) if kind == 2 else 0
                stood, faults = appliance.struck(step, dice.randrange(first, moments[step]))
            done += 1
            at += 1
            seen[f"{step.name}: {stood}"] += 1
            wrong += bool(faults)
            for fault in faults:
                print(f"WRONG: {step.name}, {stood}: {fault}")
            if faults:  # what comes after must not suffer from it
                appliance.end()
                appliance = Appliance(work / f"appliance-{done}")
                at += -at % len(STEPS)
    finally:
        appliance.end()
    for line, times in sorted(seen.items()):
        print(f"  {line}: {times}")
    print(
        f"kills for the machine: {done - wrong} of {done} left the old or new version with whole units;"
        f" {sum(n for line, n in seen.items() if ': killed' in line)} came before the end"
    )
    return wrong == 0
