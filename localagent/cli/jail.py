"""`localagent jail run`: a program or command in the jail that tests run in. Nothing of it runs when there is no jail.

`run --keep SESSION` gives a step to a session that outlives this process; `list` and `end` look after those.
"""

import argparse
import sys
from pathlib import Path

from localagent.app import Settings
from localagent.app.execute.execution_json import LIMITS, as_json
from localagent.app.execute.known_secrets import open_sanitizer
from localagent.app.execute.run import CODE_LIMIT_BYTES, code_in, code_of, execute, faults_of, refused
from localagent.app.jail_level import open_policy_jail
from localagent.app.policies import open_policy
from localagent.app.review.code_gates import findings_on, refuse_ungateable
from localagent.cli.actions import add_action
from localagent.cli.backend import add_backend, backend_of
from localagent.cli.jail_sessions import end_session, interrupted, list_sessions, order_for, remark, take_step
from localagent.cli.render import Render
from localagent.domain.execution import Code, Executed, Execution, Language
from localagent.domain.outcome import JailOutcome
from localagent.domain.policy import Policy
from localagent.errors import AnswerIsNo, Interrupted, UsageFault
from localagent.jail.files.transfer import read_regular
from localagent.jail.limits import profile
from localagent.jail.limits.options import NAMES, with_limits
from localagent.jail_sessions.client import history
from localagent.ports import Jail

EXIT_ENDED_BY_LIMIT = 1
COMMAND_FOLLOWS = "--"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    verbs = parser.add_subparsers(dest="jail_verb", metavar="run", required=True)
    run_parser = add_action(verbs, "run", "run a command or a program in the jail")
    add = run_parser.add_argument
    add("--lang", choices=[str(one) for one in Language], help="the program's language (default: by suffix, python)")
    add("-c", dest="code", metavar="CODE", help="the program itself")
    add("--python", metavar="PY", default="", help="an interpreter or virtual environment (default: ours)")
    add("--file", metavar="IN", action="append", default=[], help="copy a file or folder into the workspace")
    add("--out", metavar="DIR", type=Path, help="copy files that the program produced to DIR")
    add("--force", action="store_true", help="--out may overwrite files")
    add("--limit", metavar="KEY=VALUE", action="append", default=[], help=f"a limit: {', '.join(NAMES)}")
    add("--profile", metavar="FILE", type=Path, help="limits from a sandbox profile (default: run.toml)")
    add("--gate", action="store_true", help="check with the static gates first; refused code does not run")
    add("--policy", metavar="NAME|FILE", type=Path, help="the policy to use (default: default)")
    add("--rw", metavar="DIR", action="append", default=[], help="mount a folder writable")
    add("--ro", metavar="DIR", action="append", default=[], help="mount a folder or file read-only")
    add("--cwd", metavar="DIR", default="", help="working folder inside (default: first --rw, else the workspace)")
    add("--wall", metavar="S", type=float, help="the same as --limit wall=S")
    add("--memory", metavar="MB", type=int, help="the same as --limit memory=MBM")
    add("--raw", action="store_true", help="output bytes unchanged: unsafe for terminals and models")
    add("--json", action="store_true", help="one JSON object instead of the output itself")
    add("--keep", metavar="SESSION", help="run in a session that keeps its state; started by the first use")
    add_backend(run_parser)
    add("--ttl", metavar="TIME", default="30m", help="how long a new session stays open (30m)")
    add(
        "command",
        nargs=argparse.REMAINDER,
        metavar="-- CMD | FILE [ARG]",
        help="a command, a program's file, - for stdin",
    )
    list_parser = add_action(verbs, "list", "list open sessions")
    list_parser.add_argument("--json", action="store_true", help="one JSON list")
    end_parser = add_action(verbs, "end", "close a session")
    end_parser.add_argument("session", metavar="SESSION")
    end_parser.add_argument("--out", metavar="DIR", type=Path, help="copy the session's files to DIR first")
    end_parser.add_argument("--force", action="store_true", help="--out may overwrite files")
    end_parser.add_argument("--json", action="store_true", help="one JSON object")


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """One of the verbs of `jail`."""
    if args.jail_verb == "list":
        return list_sessions(args, settings, render)
    if args.jail_verb == "end":
        return end_session(args, settings, render)
    return keep_step(args, settings, render) if args.keep is not None else run_once(args, settings, render)


def run_once(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """The command's exit code; 1 when a limit ended it or a gate denied it; 4 when there is no sound jail."""
    request, policy, least = requested(args, settings)
    language = None if request.code is None else request.code.language
    if args.gate:
        refuse_ungateable(language)
    jail = open_policy_jail(settings, policy, backend_of(args), least=least)
    executed = gated(policy, request, jail) if args.gate else None
    if executed is None:
        executed = execute(request, settings, jail, open_sanitizer(), out=args.out, force=args.force)
    show(executed, render, raw=args.raw, json=args.json)
    return exit_code(executed)


def keep_step(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """The step's exit code; 130 when it was interrupted, else as `run_once`."""
    request, policy, least = requested(args, settings)
    after = None
    executed = None
    if args.gate:
        refuse_ungateable(None if request.code is None else request.code.language)
        known = history(args.keep, settings)
        after = 0 if known is None else known[0].steps
        earlier = () if known is None else known[1]
        executed = gated(
            policy,
            request,
            open_policy_jail(settings, policy, backend_of(args), least=least),
            "".join(code.rstrip("\n") + "\n" for code in earlier),
        )
    if executed is None:
        executed = take_step(order_for(args, request, policy, least, after=after), settings)
    show(executed, render, raw=args.raw, json=args.json)
    if not args.json:
        remark(executed, render)
    return Interrupted.exit_code if interrupted(executed) else exit_code(executed)


def gated(policy: Policy, request: Execution, jail: Jail, earlier: str = "") -> Executed | None:
    """The refusal of the gates, or None: the program after a session's `earlier` steps, and inputs that are Python."""
    assert request.code is not None
    sources = [(request.code.name, earlier.encode("utf-8", "surrogateescape") + request.code.text)]
    for path in map(Path, request.files):
        inputs = sorted(path.rglob("*.py")) if path.is_dir() else [path] if path.suffix == ".py" else []
        sources += [(one.name, read_regular(one, CODE_LIMIT_BYTES)) for one in inputs if not one.is_symlink()]
    findings = findings_on(sources, policy)
    return refused(findings, request.code.language, jail) if findings else None


def requested(args: argparse.Namespace, settings: Settings) -> tuple[Execution, Policy, str]:
    """(what the arguments ask for, the policy, the lowest level that will do); UsageFault lists every fault."""
    loaded = profile.load(args.profile or settings.sandbox_dir / "run.toml")
    faults: list[str] = []
    remedy = ""
    limits = loaded.limits
    code: Code | None = None
    command: tuple[str, ...] = ()
    try:
        faults += [f"--wall {args.wall}: must be above 0"] if args.wall is not None and not args.wall > 0 else []
        faults += [f"--memory {args.memory}: must be above 0"] if args.memory is not None and args.memory <= 0 else []
        limits = with_limits(loaded.limits, args.limit if faults else limit_options(args))
    except UsageFault as fault:
        faults += fault.faults
    try:
        code, command = program(args)
    except UsageFault as fault:
        faults += fault.faults
        remedy = fault.remedy
    request = Execution(
        limits=limits,
        command=command,
        code=code,
        python=args.python,
        files=tuple(args.file),
        read_only=tuple(args.ro),
        read_write=tuple(args.rw),
        cwd=args.cwd,
    )
    faults += faults_of(request)
    if faults:
        raise UsageFault(faults, remedy=remedy)
    policy = open_policy(settings, args.policy).policy
    return request, policy, max(loaded.minimum_level, policy.least_jail_level.value)  # L1 to L4 sort as they rank


def limit_options(args: argparse.Namespace) -> list[str]:
    """--limit, with the two older options in its words."""
    words = list(args.limit)
    words += [] if args.wall is None else [f"wall={args.wall}s"]
    return words + ([] if args.memory is None else [f"memory={args.memory}M"])


def program(args: argparse.Namespace) -> tuple[Code | None, tuple[str, ...]]:
    """(code, command): one of them. UsageFault when neither or both were given."""
    rest = list(args.command)
    language = None if args.lang is None else Language(args.lang)
    if rest[:1] == [COMMAND_FOLLOWS]:
        if args.code is not None or language is not None or args.python:
            raise UsageFault("-c, --lang and --python apply to a program, not to a command after --")
        if not rest[1:]:
            raise UsageFault("no command after --")
        return None, tuple(rest[1:])
    if args.code is not None:
        text = args.code.encode("utf-8", "surrogateescape")
        return code_of(text, language or Language.PYTHON, arguments=tuple(rest)), ()
    if not rest:
        raise UsageFault("nothing to run", remedy="give -c CODE, a FILE, - for standard input, or -- and a command")
    if rest[0] == "-":
        text = sys.stdin.buffer.read(CODE_LIMIT_BYTES + 1)
        return code_of(text, language or Language.PYTHON, arguments=tuple(rest[1:])), ()
    return code_in(Path(rest[0]), language, tuple(rest[1:])), ()


def show(executed: Executed, render: Render, *, raw: bool, json: bool) -> None:
    """The answer: the program's output as it may be read, what became of its files, and why it ended."""
    if json:
        render.json(as_json(executed, raw=raw))
        return
    if raw:
        render.raw(executed.raw_stdout, executed.raw_stderr)
    else:
        render.output(executed.stdout, executed.stderr)
    for file in executed.files:
        render.note(f"file: {file.name}, {file.bytes:,} bytes, {file.digest}" + (", copied" if file.copied else ""))
    for one in executed.left_out:
        render.note(f"not copied: {one.name}: {one.why}")
    if executed.redacted and not raw:
        counts = ", ".join(f"{count} {kind}" for kind, count in executed.redacted.items())
        render.note(f"redacted from the output: {counts}")
    for finding in executed.denied:
        render.error(f"denied by {finding.rule}: {finding.path}:{finding.line}: {finding.message}")
    if executed.denied:
        render.error("denied by the gates: nothing ran")
    elif executed.ending is not JailOutcome.EXITED:
        how = "stopped by the limit" if executed.ending in LIMITS else "the command ended:"
        render.error(f"{how} {executed.ending} after {executed.wall_seconds:.1f} s")


def exit_code(executed: Executed) -> int:
    """The command's own code, except that a code of ours with another meaning is never borrowed for a limit."""
    if executed.denied:
        return AnswerIsNo.exit_code
    if executed.ending is JailOutcome.EXITED:
        return executed.returncode
    return EXIT_ENDED_BY_LIMIT
