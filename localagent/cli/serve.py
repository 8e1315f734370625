"""`localagent serve`: the daemon. Listens on a Unix socket only, works on tasks that clients order."""

import argparse
import os
from pathlib import Path

from localagent.app import Settings, data_root
from localagent.app.policies import open_policy
from localagent.cli.gpu_layers import add_gpu_layers, describe_layers, with_layers
from localagent.cli.render import Render
from localagent.daemon.processes.service_main import ServeRequest, serve
from localagent.errors import UsageFault
from localagent.record.state_schema import ready


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument(
        "--socket",
        type=Path,
        metavar="PATH",
        help="socket to listen on, mode 0660 (default: the one passed by systemd)",
    )
    parser.add_argument("--group", default="", metavar="NAME", help="group that owns --socket")
    parser.add_argument("--workers", type=int, metavar="N", help="tasks in parallel (default: from the settings)")
    parser.add_argument("--settings", type=Path, metavar="FILE", help="default: systemd/daemon.toml as it comes")
    parser.add_argument("--policy", type=Path, metavar="NAME|FILE", help="policy for every task (default: default)")
    parser.add_argument("--state", type=Path, metavar="DIR", help="queue, uploads, results (default: the user's)")
    parser.add_argument(
        "--recorder",
        type=Path,
        metavar="SOCKET",
        help="socket of the process that writes the audit journal (default: a child process)",
    )
    add_gpu_layers(parser)


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0 after SIGTERM; 2 for faults of settings or policy; 4 when it cannot serve safely."""
    faults = []
    if args.workers is not None and not 1 <= args.workers <= 64:
        faults.append("--workers: 1 to 64")
    if args.group and args.socket is None:
        faults.append("--group: goes with --socket; systemd's socket has SocketGroup=")
    if faults:
        raise UsageFault(faults)
    settings = with_layers(args, settings)
    describe_layers(settings, render.note)
    request = ServeRequest(
        folder=settings.state_dir / "daemon" if args.state is None else ready(args.state.absolute()),
        configuration=(args.settings or data_root() / "systemd" / "daemon.toml").absolute(),
        policy=_policy(settings, args.policy),
        socket_path=args.socket,
        group=args.group,
        workers=args.workers,
        environ=dict(os.environ),
        recorder=None if args.recorder is None else args.recorder.absolute(),
    )
    return serve(request, settings, render.note)


def _policy(settings: Settings, named: Path | None) -> Path:
    """What every worker opens: a name stays one, since an owner's layers take no file; without one, what holds here."""
    if named is None:
        return Path(open_policy(settings).path.stem)
    return named if len(named.parts) == 1 and not named.suffix else named.absolute()
