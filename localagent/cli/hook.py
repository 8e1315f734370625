"""`localagent hook check|fix|install|uninstall`: known mistakes in files or in what is staged."""

import argparse
import gc
import os
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from localagent.app import Settings
from localagent.app.settings import PACKAGE
from localagent.cli.actions import add_action
from localagent.cli.render import Render
from localagent.domain.paths import RepoPath
from localagent.errors import UsageFault
from localagent.lint.engine import choose
from localagent.lint.lint_rule import LintRule
from localagent.lint.rules import BY_ID, RULES
from localagent.precommit import fix_files
from localagent.precommit.attestation import Attesting
from localagent.precommit.fix_files import FileReport
from localagent.precommit.tool_config import ToolConfig, tool_config
from localagent.repo.discover import repository_root

if TYPE_CHECKING:
    from localagent.app.policies import OpenPolicy


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    verbs = parser.add_subparsers(dest="hook_verb", metavar="VERB", required=True)
    check = add_action(verbs, "check", "report findings; exit 1 if any is more than a suggestion")
    fix = add_action(verbs, "fix", "make safe repairs; exit 1 if files were changed")
    fix.add_argument(
        "--suggestions", action="store_true", help="show repairs that are not made automatically, as diffs"
    )
    fix.add_argument(
        "--policy", type=Path, metavar="NAME|FILE", help="policy whose gates review the repairs (default: default)"
    )
    for one in (check, fix):
        one.add_argument("files", nargs="*", metavar="FILE", help="default: what is staged for the next commit")
        one.add_argument("--staged", action="store_true", help="check the index, even if nothing is staged")
        one.add_argument(
            "--select", metavar="RULE,…", action="append", default=[], help="only these rules; `all` for every rule"
        )
        one.add_argument("--ignore", metavar="RULE,…", action="append", default=[], help="all but these rules")
        one.add_argument("--rules", action="store_true", help="list the rules and exit")
        one.add_argument("--json", action="store_true", help="one JSON object on standard output")
    suggest = add_action(verbs, "suggest", "verified patches for what is staged, within a time limit")
    suggest.add_argument(
        "--policy", type=Path, metavar="NAME|FILE", help="policy whose gates review the patches (default: default)"
    )
    suggest.add_argument("--json", action="store_true", help="one JSON object on standard output")
    check.add_argument("--strict", action="store_true", help="suggestions fail the check as well")
    check.add_argument("--suggest", action="store_true", help="also search for verified patches until the deadline")
    for one in (check, suggest):
        one.add_argument(
            "--deadline",
            default="3s",
            metavar="TIME",
            help="time limit, counted from the start of the program (3s)",
        )
        one.add_argument("--python", default="", metavar="PY", help="the project's interpreter or virtual environment")
        asked = one.add_mutually_exclusive_group()
        asked.add_argument("--daemon", metavar="SOCKET", help="daemon to ask first (default: the machine's)")
        asked.add_argument("--no-daemon", action="store_true", help="do not ask a daemon")
    install = add_action(verbs, "install", "a git hook without the pre-commit framework")
    does = install.add_mutually_exclusive_group()
    does.add_argument("--fix", action="store_true", help="the hook repairs files instead of only reporting")
    does.add_argument("--suggest", action="store_true", help="the hook also searches for verified patches, for 3 s")
    install.add_argument("--chain", action="store_true", help="keep an existing hook and run it first")
    add_action(verbs, "uninstall", "remove that hook")


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0 nothing found but suggestions (or nothing changed), 1 findings (or files changed, or a repair refused)."""
    if args.hook_verb in ("install", "uninstall"):
        return _installed(args, render)
    if args.hook_verb == "suggest":
        from localagent.cli import hook_suggest  # noqa: PLC0415 - the repair loop takes long to import

        return hook_suggest.run(args, settings, render)
    if args.rules:
        return _listed(args, render)
    rules = _rules(args)
    gc.set_threshold(200_000)  # trees are many small objects and few cycles: a fifth of the time otherwise
    if args.files and args.staged:
        raise UsageFault("files and --staged exclude each other", remedy="name files, or none")
    suggest = args.hook_verb == "check" and args.suggest
    if suggest and args.files:
        raise UsageFault("--suggest works on staged files only", remedy="leave one of them out")
    reports, attesting = (_named if args.files else _staged)(args, settings, rules, render)
    suggested: dict[str, object] = {}
    if suggest:
        from localagent.cli.hook_suggest import beside  # noqa: PLC0415 - the repair loop takes long to import

        suggested = beside(args, settings, render)
    _shown(args, reports, render, attesting, suggested)
    if args.hook_verb == "check":
        return 1 if any(args.strict or not f.suggested for r in reports for f in r.findings) else 0
    return 1 if any(r.after is not None or r.refused for r in reports) else 0


def _rules(args: argparse.Namespace) -> tuple[LintRule, ...]:
    select, ignore = (
        [name.strip() for text in texts for name in text.split(",") if name.strip()]
        for texts in (args.select, args.ignore)
    )
    unknown = [name for name in (*select, *ignore) if name not in BY_ID and name != "all"]
    if unknown:
        raise UsageFault([f"there is no rule {name!r}" for name in unknown], remedy="--rules lists them")
    return choose(select, ignore)


def _named(
    args: argparse.Namespace, settings: Settings, rules: Sequence[LintRule], render: Render
) -> tuple[list[FileReport], Attesting]:
    folder = Path.cwd()
    root = repository_root(folder)
    gates, attesting = _judged(args, settings, root)
    if args.hook_verb == "fix":
        _settle(root, settings, render)
    config = _configured(root, render)
    running = _running(args, config, rules)
    reports = []
    for path, data in fix_files.read_named(root, folder, args.files):
        reports.append(
            fix_files.unreadable(path, data)
            if isinstance(data, str)
            else _report(args, path, data, running(path), gates, config)
        )
    if args.hook_verb == "fix":
        fix_files.write_named(root, reports, settings.state_dir, attesting.around)
    return reports, attesting


def _staged(
    args: argparse.Namespace, settings: Settings, rules: Sequence[LintRule], render: Render
) -> tuple[list[FileReport], Attesting]:
    from localagent.repo.git import Git  # noqa: PLC0415 - named files need no git
    from localagent.repo.staged_index import staged_files, work_tree  # noqa: PLC0415

    git = Git(Path.cwd(), os.environ)
    root = work_tree(git)
    fix_files.refuse_outside(root, git.folder)
    git = git.at(root)
    if args.hook_verb == "fix":
        _settle(root, settings, render)
    files = {file.path: file for file in staged_files(git)}
    gates, attesting = _judged(args, settings, root)
    config = _configured(root, render)
    running = _running(args, config, rules)
    reports = [
        fix_files.unreadable(path, file.reason)
        if file.data is None
        else _report(args, path, file.data, running(path), gates, config)
        for path, file in files.items()
    ]
    if args.hook_verb == "fix":
        reports = fix_files.write_index(git, root, files, reports, settings.state_dir, attesting.around)
    return reports, attesting


def _configured(root: Path, render: Render) -> ToolConfig:
    config = tool_config(root)
    for fault in config.faults:
        render.note(fault)
    return config


def _running(
    args: argparse.Namespace, config: ToolConfig, rules: Sequence[LintRule]
) -> Callable[[RepoPath], Sequence[LintRule]]:
    """The rules for a file: without those that the project's linters ignore there, unless they were selected."""
    if args.select:
        return lambda _: rules
    return lambda path: [rule for rule in rules if rule.id not in config.at(path)]


def _settle(root: Path, settings: Settings, render: Render) -> None:
    """Before anything is read: what a killed run left half done."""
    if remark := fix_files.settled(root, os.environ, settings.state_dir / fix_files.UNDO):
        render.note(remark)


def _judged(args: argparse.Namespace, settings: Settings, root: Path) -> tuple[fix_files.Gates, Attesting]:
    """What judges repairs, and what attests those that are written, under one policy."""

    @cache
    def load() -> "OpenPolicy":
        from localagent.app.policies import open_policy  # noqa: PLC0415 - most runs repair nothing

        return open_policy(settings, getattr(args, "policy", None), root)

    return fix_files.Gates(lambda: load().policy), Attesting(settings, load)


def _attested(attesting: Attesting) -> dict[str, object]:
    """For the answer: task and key of what was written and attested; nothing where no key signs."""
    return {"attested": {"task": attesting.task, "key": attesting.key}} if attesting.key else {}


def _report(
    args: argparse.Namespace,
    path: RepoPath,
    data: bytes,
    rules: Sequence[LintRule],
    gates: fix_files.Gates,
    config: ToolConfig,
) -> FileReport:
    if args.hook_verb == "check":
        return fix_files.check(path, data, rules)
    longest = config.longest_line
    return fix_files.fix(path, data, rules, gates, suggestions=args.suggestions, longest_line=longest)


def _shown(
    args: argparse.Namespace,
    reports: Sequence[FileReport],
    render: Render,
    attesting: Attesting,
    suggested: dict[str, object],
) -> None:
    if args.json:
        files = [_as_json(r) for r in reports if _telling(r)]
        render.json({"files": files, "looked_at": len(reports), **_attested(attesting), **suggested})
        return
    for report in reports:
        for f in report.applied:
            render.line(f"{report.path}:{f.line}: repaired [{f.rule}] {f.message}")
        if report.refused:
            render.error(f"{report.path}: not repaired: {report.refused}")
        reasons = {id(f): why for f, why in report.withheld}
        for f in report.findings:
            kind = "safe repair" if f.repairable else "suggestion" if f.cuts else "by hand"
            kind = f"not repaired: {reasons[id(f)]}" if id(f) in reasons else kind
            render.line(f"{report.path}:{f.line}:{f.column + 1}: [{f.rule}] {f.message} ({kind})")
        for diff in report.suggestions:
            render.text(diff.rstrip("\n"))
    changed = sum(r.after is not None for r in reports)
    count, left = _count(len(reports), "file"), _count(sum(len(r.findings) for r in reports), "finding")
    render.note(f"{count} checked, {changed} changed, {left}{' left' if changed else ''}")
    if attesting.key:
        render.note(f"attested by key {attesting.key[:16]}, kept with task {attesting.task}")


def _telling(report: FileReport) -> bool:
    return bool(report.findings or report.applied or report.refused)


def _as_json(report: FileReport) -> dict[str, object]:
    reasons = {id(f): why for f, why in report.withheld}
    return {
        "path": report.path,
        "changed": report.after is not None,
        "refused": report.refused,
        "applied": [{"rule": f.rule, "line": f.line, "message": f.message} for f in report.applied],
        "findings": [
            {
                "rule": f.rule,
                "line": f.line,
                "column": f.column + 1,
                "message": f.message,
                "grade": str(f.grade) if f.cuts else None,
                "not_repaired": reasons.get(id(f), ""),
            }
            for f in report.findings
        ],
        "suggestions": list(report.suggestions),
    }


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _listed(args: argparse.Namespace, render: Render) -> int:
    if args.json:
        render.json([{"id": r.id, "grade": str(r.grade), "standard": r.standard, "why": r.why} for r in RULES])
        return 0
    for rule in RULES:
        render.line(f"{rule.id:24} {rule.best_repair:10} {'' if rule.standard else '(only with --select) '}{rule.why}")
    return 0


def _installed(args: argparse.Namespace, render: Render) -> int:
    from localagent.repo.git import Git  # noqa: PLC0415
    from localagent.repo.git_hook import install, uninstall  # noqa: PLC0415

    git = Git(Path.cwd(), os.environ)
    if args.hook_verb == "uninstall":
        render.line(f"removed {uninstall(git, os.environ)}")
        return 0
    more = ("--suggest",) if args.suggest else ()
    command = (*_ourselves(), "hook", "fix" if args.fix else "check", "--staged", *more)
    render.line(f"wrote {install(git, os.environ, command, chain=args.chain)}")
    return 0


def _ourselves() -> tuple[str, ...]:
    """How the hook starts us: isolated, so that no module of the repository or of PYTHONPATH is imported instead."""
    home = PACKAGE.parent
    if home.name in ("site-packages", "dist-packages"):
        return (sys.executable, "-I", "-m", "localagent")
    start = f"import sys; sys.path.insert(0, {str(home)!r}); from localagent.cli.main import main; sys.exit(main())"
    return (sys.executable, "-I", "-c", start)
