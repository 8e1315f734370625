"""`localagent recorder`: writes the daemon's audit journal under a user of its own."""

import argparse
import os
import pwd
import signal
from dataclasses import replace
from pathlib import Path

from localagent.app import Settings
from localagent.app.evidence.task_evidence import open_signer, sign_now
from localagent.cli.render import Render
from localagent.daemon.processes.recorder_service import serve_recorder
from localagent.errors import UsageFault


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument(
        "--socket", type=Path, metavar="PATH", help="socket to listen on (default: the one passed by systemd)"
    )
    parser.add_argument("--group", default="", metavar="NAME", help="group that owns --socket")
    parser.add_argument("--user", required=True, metavar="NAME", help="the user whose daemon may write (name or uid)")
    parser.add_argument("--state", type=Path, metavar="DIR", help="the journal is DIR/audit (default: the user's)")


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0 when interrupted; 2 for a user who does not exist; 4 when the socket is not safe to serve."""
    try:
        uid = int(args.user) if args.user.isascii() and args.user.isdigit() else pwd.getpwnam(args.user).pw_uid
    except KeyError:
        raise UsageFault(f"--user: there is no user {args.user!r}") from None
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = (args.state or settings.state_dir).absolute()
    own = replace(settings, state_dir=folder, data_dir=folder)  # its key lies in its state, where nobody else writes

    def sign() -> bool:
        signer = open_signer(own)
        if signer is not None:
            sign_now(own, signer)
        return signer is not None

    try:
        serve_recorder(folder, args.socket, args.group, frozenset((uid,)), dict(os.environ), render.note, sign)
    except KeyboardInterrupt:
        return 0  # how it is meant to end
    return 0
