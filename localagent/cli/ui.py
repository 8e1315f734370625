"""`localagent ui`: the daemon's read-only web page in a browser of yours, while this runs."""

import argparse
import signal
from pathlib import Path

from localagent.app import Settings
from localagent.cli.render import Render
from localagent.daemon.client.ui_relay import serve_page
from localagent.errors import UsageFault
from localagent.protocol.http_client import DEFAULT_SOCKET


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument("--daemon", type=Path, default=DEFAULT_SOCKET, metavar="SOCKET", help="the daemon's socket")
    parser.add_argument("--port", type=int, default=0, metavar="N", help="the loopback port (default: a free one)")
    parser.add_argument(
        "--idle-minutes", type=int, default=60, metavar="N", help="exit after this long without a request (default: 60)"
    )


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0 when interrupted or idle; 4 when there is no daemon or the port cannot be kept to this user."""
    del settings
    faults = []
    if args.port and not 1024 <= args.port <= 65535:
        faults.append("--port: 1024 to 65535, or 0 for a free one")
    if not 1 <= args.idle_minutes <= 24 * 60:
        faults.append("--idle-minutes: 1 to 1440")
    if faults:
        raise UsageFault(faults)

    def tell(address: str) -> None:
        render.line(address)
        render.note("open it in your browser; the link works once, and the page until this command ends (Ctrl-C)")

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        serve_page(args.daemon, args.port, 60.0 * args.idle_minutes, tell)
    except KeyboardInterrupt:
        return 0  # how it is meant to end
    render.note("idle: stopped")
    return 0
