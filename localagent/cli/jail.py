"""`localagent jail run -- CMD`: one command in the jail that tests run in. Nothing of it runs when there is no jail."""

import argparse
import os
from pathlib import Path

from localagent.app import Settings
from localagent.app.least_level import least_level
from localagent.cli.backend import add_backend, backend_of
from localagent.cli.render import Render
from localagent.domain.jailspec import Access, Bind, JailLimits, JailResult, JailSpec
from localagent.domain.outcome import Ending
from localagent.errors import UsageFault
from localagent.jail.open import open_jail

ENV = (("HOME", "/tmp"), ("LANG", "C.UTF-8"), ("PATH", "/usr/local/bin:/usr/bin:/bin"), ("TMPDIR", "/tmp"))  # noqa: S108
EXIT_ENDED_BY_LIMIT = 1
BYTES_PER_MB = 1 << 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    verbs = parser.add_subparsers(dest="jail_verb", metavar="run", required=True)
    run_parser = verbs.add_parser("run", help="run a command in the jail", allow_abbrev=False)
    run_parser.add_argument("--rw", metavar="DIR", action="append", default=[], help="show a folder writable")
    run_parser.add_argument("--ro", metavar="DIR", action="append", default=[], help="show a folder or file read-only")
    run_parser.add_argument(
        "--cwd", metavar="DIR", default="", help="working folder inside (default: first --rw, /tmp)"
    )
    run_parser.add_argument("--wall", metavar="S", type=float, default=60.0, help="wall clock, seconds (60)")
    run_parser.add_argument("--memory", metavar="MB", type=int, default=1536, help="memory of the whole tree (1536)")
    add_backend(run_parser)
    run_parser.add_argument("--json", action="store_true", help="one JSON object instead of the output itself")
    run_parser.add_argument("command", nargs="+", metavar="CMD", help="after --")


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """The command's exit code; 1 when a limit ended it; 4 when there is no sound jail."""
    spec = spec_of(args)
    result = open_jail(backend=backend_of(args), least=least_level(settings)).run(spec)
    if args.json:
        render.json(as_json(result))
    else:
        if result.stdout:
            render.line(result.stdout.decode(errors="replace").removesuffix("\n"))
        if result.stderr:
            render.note(result.stderr.decode(errors="replace").removesuffix("\n"))
        if result.ending is not Ending.EXITED:
            render.error(f"the command's ending: {result.ending} after {result.wall_seconds:.1f} s")
    return exit_code(result)


def exit_code(result: JailResult) -> int:
    """The command's own code, except that a code of ours with another meaning is never borrowed for a limit."""
    if result.ending is Ending.EXITED:
        return result.returncode
    return EXIT_ENDED_BY_LIMIT


def spec_of(args: argparse.Namespace) -> JailSpec:
    """The jail spec that the arguments describe; UsageFault lists every fault."""
    faults = [f"{path}: no such folder or file" for path in (*args.rw, *args.ro) if not Path(path).exists()]
    faults += [f"--wall {args.wall}: must be above 0"] if not args.wall > 0 else []
    faults += [f"--memory {args.memory}: must be above 0"] if args.memory <= 0 else []
    if faults:
        raise UsageFault(faults)
    binds = [_bind(path, Access.READ_ONLY) for path in args.ro] + [_bind(path, Access.READ_WRITE) for path in args.rw]
    cwd = args.cwd or (os.path.realpath(args.rw[0]) if args.rw and Path(args.rw[0]).is_dir() else "/tmp")  # noqa: S108
    limits = JailLimits(wall_seconds=args.wall, cpu_seconds=args.wall * 4, resident_bytes=args.memory * BYTES_PER_MB)
    return JailSpec(argv=tuple(args.command), cwd=cwd, binds=tuple(binds), env=ENV, limits=limits)


def _bind(path: str, access: Access) -> Bind:
    real = os.path.realpath(path)
    return Bind(source=real, target=real, access=access, untrusted=True)


def as_json(result: JailResult) -> dict[str, object]:
    """The result as one JSON object; output as text, undecodable bytes replaced."""
    return {
        "ending": str(result.ending),
        "returncode": result.returncode,
        "stdout": result.stdout.decode(errors="replace"),
        "stderr": result.stderr.decode(errors="replace"),
        "wall_seconds": round(result.wall_seconds, 3),
        "backend": result.backend,
        "level": result.level,
    }
