"""`localagent deps check|approve|approvals|install`: which distributions may come in, and bringing them in."""

import argparse
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from localagent.app import Settings
from localagent.app.evidence.refusals import refused_names
from localagent.app.jail_level import open_policy_jail
from localagent.app.policies import OpenPolicy, open_policy
from localagent.cli.actions import add_action
from localagent.cli.deps_approve import approvals, approve, approved_wheels
from localagent.cli.render import Render
from localagent.deps.choose import ChosenWheel
from localagent.deps.dependency_check import DependencyGuard
from localagent.deps.install import InstallOrder, install
from localagent.deps.known_distributions import load_known
from localagent.deps.locks import Locks, read_locks, unread_files
from localagent.deps.requirement import parse_requirement
from localagent.deps.setup_files import parse_setup_config, parse_setup_script
from localagent.deps.site_packages import Environment, environment, fresh_target
from localagent.deps.sources import MOST_FILE_BYTES, Item, names_dependencies, parse_project, parse_requirements
from localagent.deps.squat import KnownNames
from localagent.deps.wheelhouse import index_folder
from localagent.domain.dependency import DependencyVerdict, Ruling, Wanted
from localagent.domain.policy import Permission, Policy
from localagent.errors import UsageFault
from localagent.fs.bounded_read import matches_below, read_below, read_named
from localagent.record.approval_journal import dependency_approvals

PROJECT = "pyproject.toml"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's arguments."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    checking = add_action(actions, "check", "check whether distributions are allowed")
    _requirements(checking)
    installing = add_action(actions, "install", "install from a folder of wheels, unpacked in a jail")
    _requirements(installing)
    installing.add_argument("--index", required=True, metavar="DIR", help="a folder of wheels: *.whl or NAME/*.whl")
    where = installing.add_mutually_exclusive_group()
    where.add_argument("--target", type=Path, metavar="DIR", help="folder to create; without it, a dry run")
    where.add_argument(
        "--python", type=Path, metavar="VENV", help="install into the site-packages of this virtual environment"
    )
    approving = add_action(actions, "approve", "approve a name")
    approving.add_argument("name", metavar="NAME[==VERSION]")
    approving.add_argument("--reason", required=True, metavar="TEXT", help="the reason; recorded with the approval")
    approving.add_argument("--distinct-from", default="", metavar="NAME", help="the well-known name it resembles")
    approving.add_argument(
        "--hash-from", type=Path, metavar="WHEEL", help="approve this wheel of NAME==VERSION, by its SHA-256"
    )
    approving.add_argument("--withdraw", action="store_true", help="withdraw every approval of NAME")
    listing = add_action(actions, "approvals", "list approvals")
    for action in (checking, installing, approving, listing):
        action.add_argument("--policy", type=Path, metavar="NAME|FILE", help="the policy to use (default: default)")
        action.add_argument("--json", action="store_true", help="one JSON object on standard output")


def _requirements(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("specs", nargs="*", metavar="SPEC", help="a requirement (PEP 508), such as 'attrs>=23'")
    parser.add_argument(
        "-r",
        dest="files",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="a requirements file; repeatable",
    )
    parser.add_argument("--repo", type=Path, metavar="DIR", help="use the lock files of this repository")


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0 when everything asked for may come in (or was recorded), 1 when not."""
    opened = open_policy(settings, args.policy, getattr(args, "repo", None))
    path, policy = opened.path, opened.policy
    rules = policy.dependencies
    if args.action == "approvals":
        return approvals(args, dependency_approvals(settings.state_dir), rules, render)
    known = load_known(path.parent / rules.known_names)
    if args.action == "approve":
        return approve(args, dependency_approvals(settings.state_dir), path, rules, known, render)
    if args.action == "install":
        return _install(args, settings, opened, known, render)
    return _check(args, settings, opened, known, render)


def _check(args: argparse.Namespace, settings: Settings, opened: OpenPolicy, known: KnownNames, render: Render) -> int:
    guard, locks = guard_of(args, settings, opened.policy, known)
    items = wanted_items(args, known)
    if not (args.specs or args.files):
        items = project_items(args, known)
    rulings = [guard.rule(item) for item in items]
    answer = overall(rulings)
    _record(settings, opened, answer, rulings, render)
    if args.json:
        render.json({**verdict_json(rulings, locks), "answer": str(answer)})
    else:
        show(rulings, locks, render)
    return 0 if answer is DependencyVerdict.ALLOWED else 1


def _record(
    settings: Settings, opened: OpenPolicy, answer: DependencyVerdict, rulings: list[Ruling], render: Render
) -> None:
    """What may not come in, on the record; a warning where that cannot be."""
    if answer is not DependencyVerdict.ALLOWED and (warning := refused_names(settings, opened, answer, rulings)):
        render.note(f"warning: {warning}")


def _install(
    args: argparse.Namespace, settings: Settings, opened: OpenPolicy, known: KnownNames, render: Render
) -> int:
    policy = opened.policy
    index = index_folder(args.index)
    if not (args.specs or args.files):
        raise UsageFault("nothing to install", remedy="name requirements or -r FILE")
    place: Path | Environment | None = None
    if args.target is not None:
        place = fresh_target(args.target)
    elif args.python is not None:
        place = environment(args.python)
    guard, locks = guard_of(args, settings, policy, known)
    items = wanted_items(args, known)
    rulings = [guard.rule(item) for item in items]
    if (answer := overall(rulings)) is not DependencyVerdict.ALLOWED:
        _record(settings, opened, answer, rulings, render)
        if args.json:
            render.json({**verdict_json(rulings, locks), "answer": str(answer), "installed": []})
        else:
            show(rulings, locks, render)
            render.error("nothing was installed: not every name is allowed")
        return 1
    order = InstallOrder(
        wanted=[item for item in items if isinstance(item, Wanted)],
        index=index,
        locked=(*locks.entries, *approved_wheels(guard.approvals)),
        require_hashes=policy.dependencies.require_hashes,
        place=place,
    )
    chosen = install(order, open_policy_jail(settings, policy), settings.scratch_dir)
    landed = place.site if isinstance(place, Environment) else place
    if args.json:
        rows = [installed_json(one) for one in chosen]
        where = str(landed) if landed else None
        render.json({**verdict_json(rulings, locks), "answer": str(answer), "target": where, "installed": rows})
    else:
        show_installed(chosen, landed, render)
    return 0


def installed_json(one: ChosenWheel) -> dict[str, object]:
    """One installed distribution as JSON."""
    return {
        "name": one.wheel.name,
        "version": one.wheel.version,
        "wheel": one.copy.name,
        "sha256": one.sha256,
        "digest_named_by": one.vouched or None,
        "files": len(one.wheel.files),
        "scripts": list(one.wheel.scripts),
        "left_out": list(one.wheel.left_out),
        "startup": list(one.wheel.startup),
    }


def show_installed(chosen: list[ChosenWheel], landed: Path | None, render: Render) -> None:
    """One line a distribution; what was not written below it."""
    for one in chosen:
        vouched = one.vouched or "nothing (the policy requires no hashes)"
        what = f"{one.wheel.name}=={one.wheel.version}  {len(one.wheel.files)} files"
        render.line(f"{what}  sha256:{one.sha256} named by {vouched}")
        for script in one.wheel.scripts:
            render.line(f"  entry script, not written: {script}")
        for line in one.wheel.left_out:
            render.line(f"  left out: {line}")
        for line in one.wheel.startup:
            render.line(f"  would run whenever Python starts, if in a site folder: {line}")
    render.line(f"installed into {landed}" if landed else "dry run: unpacked in the jail, nothing was written")


def guard_of(
    args: argparse.Namespace, settings: Settings, policy: Policy, known: KnownNames
) -> tuple[DependencyGuard, Locks]:
    """The guard that the arguments describe, and the lock files it counts."""
    rules = policy.dependencies
    if args.repo is not None and not args.repo.is_dir():
        raise UsageFault(f"--repo: {args.repo} is not a directory")
    locks = Locks() if args.repo is None else read_locks(args.repo, rules.lock_files, known)
    approvals = dependency_approvals(settings.state_dir).standing() if rules.approvals is Permission.ALLOW else ()
    option = str(args.policy) if args.policy else ""
    guard = DependencyGuard(rules=rules, known=known, locked=locks.entries, approvals=approvals, policy_option=option)
    return guard, locks


def wanted_items(args: argparse.Namespace, known: KnownNames) -> list[Item]:
    """What the command line and the files named on it ask for."""
    if not (args.specs or args.files or args.repo):
        raise UsageFault("nothing to check", remedy="name requirements, -r FILE, or --repo DIR")
    items = [parse_requirement(spec, "the command line", known) for spec in args.specs]
    for path in args.files:
        items += parse_requirements(read_named(path, MOST_FILE_BYTES), str(path), known)
    return items


def project_items(args: argparse.Namespace, known: KnownNames) -> list[Item]:
    """What the repository asks for: by pyproject.toml's [project], or else by all the older files that say it."""
    data = _read(args.repo, PROJECT)
    items = [] if data is None else parse_project(data, PROJECT, known)
    if data is not None and names_dependencies(data):
        return items
    found = [PROJECT] if data is not None else []
    for name, parse in (("setup.cfg", parse_setup_config), ("setup.py", parse_setup_script)):
        if (data := _read(args.repo, name)) is not None:
            found.append(name)
            items += parse(data, name, known)
    for name in matches_below(args.repo, "*requirements*.txt"):
        if (data := _read(args.repo, name)) is not None:
            found.append(name)
            items += parse_requirements(data, name, known)
    if not found:
        told = f"no {PROJECT}, setup.cfg, setup.py or requirements file"
        raise UsageFault(
            f"{args.repo}: {'; '.join((told, *unread_files(args.repo)))}", remedy="name requirements or -r FILE"
        )
    return items


def _read(folder: Path, name: str) -> bytes | None:
    """A file of the repository, None where there is none."""
    try:
        return read_below(folder, name, MOST_FILE_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageFault(
            f"{folder / name}: cannot be read: {error.strerror or error}", remedy="name requirements or -r FILE"
        ) from error


def overall(rulings: Iterable[Ruling]) -> DependencyVerdict:
    """REFUSED if anything is, else UNKNOWN if anything is, else ALLOWED."""
    answers = {ruling.answer for ruling in rulings}
    return next(
        (a for a in (DependencyVerdict.REFUSED, DependencyVerdict.UNKNOWN) if a in answers), DependencyVerdict.ALLOWED
    )


def verdict_json(rulings: list[Ruling], locks: Locks) -> dict[str, object]:
    """The answers as JSON."""
    return {
        "requirements": [{**asdict(ruling), "approve": ruling.approve or None} for ruling in rulings],
        "locks": list(locks.files),
        "not_locks": list(locks.left_out),
    }


def show(rulings: list[Ruling], locks: Locks, render: Render) -> None:
    """One line a requirement; the approval command below what a person may approve."""
    for line in locks.left_out:
        render.note(f"not used as a lock: {line}")
    width = max((len(str(ruling.answer)) for ruling in rulings), default=0)
    for ruling in rulings:
        render.line(f"{ruling.answer:<{width}}  {ruling.shown}  ({ruling.source}): {ruling.why}")
        if ruling.approve:
            render.line(f"{'':<{width}}  to approve: {ruling.approve}")
    if not rulings:
        render.line("nothing to check")
