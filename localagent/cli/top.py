"""`localagent top`: what the daemon is doing, live in the terminal; plain lines or JSON where there is none."""

import argparse
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from localagent.app import Settings
from localagent.cli.render import Render
from localagent.cli.safe_console import SafeConsole
from localagent.errors import UsageFault
from localagent.protocol.http_client import DEFAULT_SOCKET, Client, DaemonGone, DaemonRefuses, wait_after
from localagent.protocol.task_order import aim_of
from localagent.text.visible_text import one_line

# How `localagent top` shows an answer of the daemon: as lines, and as a picture that is renewed on a terminal.
#
# What tasks are named is from outside: controls are made visible here, and markup is never read in it.

_WIDE = 48


def head(version: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    """The figures over all tasks that are told, in one line."""
    tasks = found["tasks"]
    speed = sum(float(task["pace"]["a_second"]) for task in found["running"])
    whose = "everybody's tasks" if found["everybody"] else f"tasks of user {version['uid']}"
    model = ", ".join(found["models"]) or "no model"
    return (
        f"{tasks['queued']} queued, {tasks['held']} held, {tasks['running']} running on {found['workers']} workers, "
        f"{tasks['done']} done, {tasks['failed']} failed, {tasks['cancelled']} cancelled; {speed:.1f} candidates/s; "
        f"{one_line(model)}; {whose}"
    )


def row(task: Mapping[str, Any], at: float) -> tuple[str, ...]:
    """One running task: id, user, what, stage, seconds, checked, candidates a second, plausible, open."""
    pace = task["pace"]
    ran = max(0.0, at - float(task["started_at"] or at))
    return (
        str(task["id"]),
        str(task.get("uid", "")),
        one_line(aim_of(task["order"]), _WIDE),
        "cancelling" if task["cancelling"] else one_line(str(pace["stage"]) or "starting", 20),
        f"{ran:.0f}",
        str(pace["verified"]),
        f"{pace['a_second']:.1f}",
        str(pace["plausible"]),
        str(pace["open"]),
    )


def lines(version: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """The answer as plain lines."""
    told = [head(version, found)]
    for task in found["running"]:
        name, uid, what, stage, ran, checked, speed, plausible, left = row(task, found["at"])
        whose = f" user {uid}" if uid else ""
        told.append(
            f"{name}{whose}  {stage}  {ran} s  {checked} checked, {speed}/s, {plausible} plausible, {left} open  {what}"
        )
    return told


class Watching:
    """The live picture; it stays as it last was when it is closed."""

    def __init__(self, version: Mapping[str, Any]) -> None:
        self._version = version
        self._live = Live(console=SafeConsole(highlight=False), auto_refresh=False, transient=False)
        self._live.start()

    def show(self, found: Mapping[str, Any]) -> None:
        """Another answer in the place of the one before."""
        self._live.update(picture(self._version, found), refresh=True)

    def close(self) -> None:
        """No more."""
        self._live.stop()


def picture(version: Mapping[str, Any], found: Mapping[str, Any]) -> Group:
    """The answer for a terminal."""
    table = Table(box=None, pad_edge=False, header_style="dim", expand=False)
    for name, numeric in (
        ("task", False),
        ("user", False),
        ("ordered", False),
        ("stage", False),
        ("s", True),
        ("checked", True),
        ("/s", True),
        ("plausible", True),
        ("open", True),
    ):
        table.add_column(name, justify="right" if numeric else "left", no_wrap=name in ("task", "stage"))
    for task in found["running"]:
        table.add_row(*(Text(cell) for cell in row(task, found["at"])))
    rest = table if found["running"] else Text("no task is running", style="dim")
    return Group(Text(head(version, found), style="bold"), rest)


_GONE_SECONDS = 120.0  # how long a daemon that went away is waited for


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument("--daemon", type=Path, default=DEFAULT_SOCKET, metavar="SOCKET", help="the daemon's socket")
    parser.add_argument("--all", action="store_true", help="tasks of all users, if you have the role")
    parser.add_argument("--once", action="store_true", help="print once and exit")
    parser.add_argument("--json", action="store_true", help="one JSON line per refresh")
    parser.add_argument("--every", type=float, default=1.0, metavar="SECONDS", help="refresh interval (default: 1)")


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0 when interrupted or after one look; 1 when the daemon refuses; 4 when there is none."""
    del settings
    if not 0.2 <= args.every <= 3600:
        raise UsageFault("--every: 0.2 to 3600 seconds")
    live = not (args.once or args.json) and sys.stdout.isatty()
    client = Client(args.daemon)
    version = client.get("/version").json()
    view = Watching(version) if live else None
    shown: list[str] = []
    try:
        while True:
            found = _look(client, everybody=args.all, patient=not args.once)
            if view is not None:
                view.show(found)
            elif args.json:
                render.json(found)
            elif (told := lines(version, found)) != shown:  # what did not change is not said again
                shown = told
                for line in told:
                    render.line(line)
            if args.once:
                return 0
            time.sleep(args.every)
    except KeyboardInterrupt:
        return 0  # how it is meant to end
    finally:
        client.close()
        if view is not None:
            view.close()


def _look(client: Client, *, everybody: bool, patient: bool) -> dict[str, Any]:
    """One answer. A daemon that is restarted or busy is waited for."""
    until = time.monotonic() + _GONE_SECONDS
    while True:
        try:
            found: dict[str, Any] = client.get("/v1/activity" + ("?all=1" if everybody else "")).json()
            return found
        except DaemonGone:
            if not patient or time.monotonic() > until:
                raise
            time.sleep(0.5)
        except DaemonRefuses as no:
            if not wait_after(no, until=until, most=30.0):
                raise
