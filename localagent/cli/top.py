"""`localagent top`: what the daemon is doing, live in the terminal; plain lines or JSON where there is none."""

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from localagent.app import Settings
from localagent.cli.render import Render
from localagent.cli.top_view import Watching, lines
from localagent.errors import UsageFault
from localagent.protocol.http_client import DEFAULT_SOCKET, Client, DaemonGone, DaemonRefuses, wait_after

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
