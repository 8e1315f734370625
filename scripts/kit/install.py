"""Installs a kit, goes back to the one before, takes all away; nothing of a kit is used before it is verified.

    install KIT --key KEY | upgrade KIT | rollback | uninstall [--purge] | status        (docs/kit.md)

Standard library only. This program and its neighbours stand surety for each other: it holds their digests, and the
list that verify.py checks holds this one's, so a change to either is found by the other before it is imported. Exit
codes: 0 done, 1 refused or not possible here (each reason named, what stood before stands), 2 usage, 130 interrupted.
The scripts of a kit ask with `--done` for another code than 0 and answer 0 for that one alone: a Python or a program
that did not do its work, and ends with 0 all the same, is then no success. Not promised: anything by scripts and
programs that came with the kit they judge; docs/kit.md says how to judge one from outside.
"""

import argparse
import hashlib
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
NEIGHBOURS = "@NEIGHBOURS@"  # file=sha256, put in when a kit is made


def trust_neighbours() -> None:
    """Lets the files beside this one be imported, if they are those that this program was made with."""
    for name, expected in (pair.split("=") for pair in NEIGHBOURS.split(",")):
        if hashlib.sha256((HERE / name).read_bytes()).hexdigest() != expected:
            sys.exit(f"localagent-kit: program/{name}: altered; the kit is refused and nothing of it was used")
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(HERE))


def arguments() -> argparse.ArgumentParser:
    """The commands."""
    parser = argparse.ArgumentParser(prog="localagent-kit", description=(__doc__ or "").splitlines()[0])
    where = argparse.ArgumentParser(add_help=False)
    where.add_argument("--system", action="store_true", help="the appliance: /opt, /etc, a user of its own; as root")
    where.add_argument("--prefix", type=Path, metavar="DIR", help="instead of the usual folder of versions")
    parser.add_argument("--done", type=int, default=0, metavar="CODE", help="end with this code where it went well")
    sub = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, words in (
        ("install", "verify KIT, put it beside what stands, try it, then switch"),
        ("upgrade", "the same, where a kit is installed: its maker's key is known"),
        ("verify", "say whether KIT is what its maker signed"),
    ):
        command = sub.add_parser(name, help=words, description=words, parents=[where])
        command.add_argument("kit", type=Path, metavar="KIT")
        command.add_argument("--key", help="the maker's public key, learned another way than from the kit")
    sub.add_parser("rollback", help="switch to the kit that stood before", parents=[where])
    sub.add_parser("status", help="what is installed", parents=[where])
    gone = sub.add_parser("uninstall", help="remove everything but data and settings", parents=[where])
    gone.add_argument("--purge", action="store_true", help="remove those as well")
    return parser


def main() -> int:
    """Entry point."""
    trust_neighbours()
    import places  # noqa: PLC0415 - beside this file, and known to be sound by now
    import verify  # noqa: PLC0415
    import versions  # noqa: PLC0415

    args: argparse.Namespace = arguments().parse_args()
    mask = os.umask(0o022)  # for the machine: all may read, none but root may write, whatever root's umask is
    if not args.system:
        os.umask(mask | 0o022)
    try:
        place = places.Place.of(system=args.system, prefix=args.prefix, environ=os.environ)
        if args.command == "status":
            return versions.status(place) or args.done
        kit = verify.checked(args.kit.resolve(), versions.known_key(place, args.key)) if "kit" in args else None
        if args.command == "verify" and kit:
            print(f"localagent-kit: {args.kit} is what {kit.key} signed ({len(kit.files)} files)")
            return args.done
        with versions.alone(place):
            went_back = versions.settled(place)
            if args.command == "rollback":
                if not went_back:  # the one that was killed was this one
                    versions.rollback(place)
            elif args.command == "uninstall":
                versions.uninstall(place, purge=args.purge)
            elif kit:
                versions.install(place, kit)
    except verify.NotSound as no:
        for fault in no.faults:
            print(f"localagent-kit: {fault}", file=sys.stderr)
        if "kit" in args:
            print(f"localagent-kit: {args.kit} is refused; nothing of it was unpacked or run", file=sys.stderr)
        return 1
    except (places.Impossible, OSError) as no:
        print(f"localagent-kit: {no}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("localagent-kit: interrupted; what stood before stands, and the same command goes on", file=sys.stderr)
        return 130
    return args.done


if __name__ == "__main__":
    sys.exit(main())
