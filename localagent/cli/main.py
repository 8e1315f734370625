"""Entry point: parse the verb, run its module, turn errors into exit codes."""

import argparse
import atexit
import difflib
import gc
import importlib
import os
import platform
import re
import shlex
import sys
import tempfile
import textwrap
import traceback
from collections.abc import Sequence
from types import ModuleType
from typing import NoReturn

from localagent import __version__
from localagent.app import Settings
from localagent.cli.render import ReaderGone, Render
from localagent.errors import AnswerIsNo, CannotEnforce, InternalFault, Interrupted, LocalagentError, UsageFault
from localagent.record.state_schema import base_of, ready
from localagent.text.visible_text import one_line

# group -> verb -> (module in localagent.cli, one line of help). Imported only when used: starting must stay quick.
GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "repair": {
        "fix": ("fix", "repair a repository until its failing tests pass"),
        "do": ("do", "change a repository by an instruction, with a model"),
        "chat": ("chat", "the same as `do`, in conversation in the terminal"),
        "session": ("session", "list, show, resume, undo, export sessions of `do`"),
        "show": ("show", "show the report of a past task"),
        "history": ("history", "list past tasks"),
        "stats": ("stats", "statistics over past tasks"),
        "apply": ("apply", "write an accepted patch into the repository"),
        "undo": ("undo", "revert an applied patch"),
        "reject": ("reject", "record that a task's patch or proposals are wrong"),
        "remediate": ("remediate", "repair findings of other tools (SARIF)"),
        "replay": ("replay", "verify a past task's patch again, and run the task again"),
    },
    "debug": {
        "debug": ("debug", "find the cause of a failing test: frames, values, experiments"),
        "explain": ("explain", "explain a traceback, a line, a rule or a task"),
        "reproduce": ("reproduce", "reduce a failing test or script; find why a test is flaky"),
        "bisect": ("bisect", "find the commit that broke a test"),
    },
    "code": {
        "search": ("search", "search the code: words, identifiers or a sentence"),
        "symbol": ("symbol", "show what a name is: definition, bases, tests, last commit"),
        "refs": ("refs", "list where a name is used, over all files"),
        "references": ("refs", "the same as refs"),
        "callers": ("calls", "list the callers of a function or class"),
        "callees": ("calls", "list what a function calls"),
        "impact": ("impact", "list what a changed line or diff may reach, and its tests"),
        "skeleton": ("skeleton", "print a patch with the code that new tests lack"),
        "map": ("map", "show the repository's main parts, within a token limit"),
        "index": ("index", "show or rebuild the index behind search"),
    },
    "review": {
        "gate": ("gate", "check a patch with static rules; nothing runs"),
        "verify": ("verify", "test a patch: before and after, old against new"),
        "approve": ("approve", "approve a patch that needs a person"),
        "hook": ("hook", "find and fix known mistakes in staged files"),
        "jail": ("jail", "run code in the jail"),
    },
    "server": {
        "batch": ("batch", "repair many repositories overnight"),
        "serve": ("serve", "run the daemon, on a Unix socket"),
        "tasks": ("tasks", "list, show, cancel, approve tasks of the daemon"),
        "top": ("top", "watch the daemon in the terminal"),
        "ui": ("ui", "watch the daemon in a browser, read-only"),
        "recorder": ("recorder", "write the daemon's audit journal"),
    },
    "admin": {
        "doctor": ("doctor", "check what works on this machine"),
        "policy": ("policy", "show, check, explain or test policies"),
        "model": ("model", "list, add, measure, verify models"),
        "train": ("train", "learn the search order from your repositories"),
        "deps": ("deps", "check and install dependencies offline"),
        "key": ("key", "manage signing keys"),
        "attest": ("attest", "sign or verify statements about a patch"),
        "audit": ("audit", "verify, export, sign the audit journal"),
        "sbom": ("sbom", "print a software bill of materials (CycloneDX)"),
        "offline-proof": ("offline_proof", "show that nothing leaves the machine"),
        "help": ("help", "list every verb; with a verb, its options"),
    },
}
VERBS = {verb: entry for verbs in GROUPS.values() for verb, entry in verbs.items()}
# Explained by `localagent --help`, which is to fit one screen; the others are named there, and explained by `help`.
_COMMON = frozenset({
    "fix", "do", "chat", "show", "apply", "undo", "debug", "explain", "bisect", "reproduce",
    "search", "refs", "verify", "hook", "batch", "serve", "doctor", "model", "policy", "help",
})  # fmt: skip

_WHAT_IT_IS = """\
an air-gapped coding agent: repairs and improves Python repositories with a
local model, and proves every change; nothing leaves the machine, and no
file is changed until you apply a patch"""
_WHERE_TO_BEGIN = """\
getting started:
  localagent doctor                       check what works on this machine
  localagent fix --repo DIR --test tests  search for a patch; writes nothing
  localagent show ID                      the patch, and the evidence for it
  localagent apply ID                     write the patch to the repository

exit status: 0 success, 1 failure or findings (with the reason), 2 usage error,
  3 internal error, 4 no sound jail or gate: nothing ran, 130 interrupted"""


_KINDS = {  # as the daemon names them
    AnswerIsNo: "no",
    UsageFault: "usage",
    InternalFault: "internal",
    CannotEnforce: "cannot-enforce",
    Interrupted: "interrupted",
}
_TAKES_FILES = frozenset({"hook", "gate", "verify", "remediate"})
_OPTION = re.compile(r"-h?|--[\w-]*(?:=.*)?", re.DOTALL)


class _Parser(argparse.ArgumentParser):
    """Says what a verb takes to who gave nothing to it, and where to read on to everybody else."""

    _given: Sequence[str] | None = None
    _meant = ""

    def parse_known_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def]  # overloads of the base
        self._given = args
        parsed, unknown = super().parse_known_args(args, namespace)
        if not hasattr(parsed, "parser"):  # the innermost verb's: its usage is the one to show
            parsed.parser = self
        return parsed, unknown

    def unknown(self, words: Sequence[str]) -> NoReturn:
        """Refuse words that the verb does not take, with what may have been meant by the first of them."""
        self._meant = self._likely(words[0])
        self.error(f"unrecognized arguments: {' '.join(words)}")

    def _likely(self, word: str) -> str:
        """An option that is spelled like a word, or that takes what the word names; "" for none."""
        options = [name for name in self._option_string_actions if name.startswith("--")]
        if word.startswith("-"):
            return next(iter(difflib.get_close_matches(word.partition("=")[0], options, n=1)), "")
        option = "--repo" if os.path.isdir(word) else "--test"  # noqa: PTH112
        named = option == "--repo" or "::" in word or os.path.exists(word)  # noqa: PTH110
        return f"{option} {shlex.quote(word)}" if named and option in options else ""

    def error(self, message: str) -> NoReturn:
        message = one_line(message, 2000)  # it quotes arguments, which may be names of hostile files
        remedy = (f"did you mean {one_line(self._meant, 200)}? " if self._meant else "") + f"{self.prog} --help"
        as_json = self._option_string_actions.get("--json")
        if self._given and "--json" in self._given and as_json is not None and as_json.nargs == 0:
            Render().json_fault(UsageFault(message, remedy=remedy), _KINDS[UsageFault])
        if self._given:
            self.print_usage(sys.stderr)
            self.exit(UsageFault.exit_code, f"{self.prog}: error: {message}\n  what to do: {remedy}\n")
        self.print_help(sys.stderr)
        self.exit(UsageFault.exit_code, f"\n{self.prog}: error: {message}\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb. Returns the exit code of docs/errors.md; never lets an exception out."""
    atexit.register(gc.freeze)  # else the interpreter's end looks through every object once more: 0.3 s of CPU
    try:
        return _verb(argv)
    except ReaderGone as gone:  # nobody is there to be told
        return gone.exit_code


def _verb(argv: Sequence[str] | None) -> int:
    args = list(sys.argv[1:] if argv is None else argv)
    if args and not args[0].startswith("-") and args[0] not in VERBS:
        return _unknown(args[0])
    parser = _Parser(
        prog="localagent",
        usage="localagent [-h] [--version] VERB ...",
        description=_WHAT_IT_IS,
        epilog=f"{_common_verbs()}\n{_WHERE_TO_BEGIN}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"localagent {__version__}")
    sub = parser.add_subparsers(prog="localagent", dest="verb", metavar="VERB", required=True, help=argparse.SUPPRESS)
    chosen = args[0] if args and args[0] in VERBS else None
    render = Render()
    parsed = argparse.Namespace()
    try:
        for verb, (module, text) in VERBS.items():
            child = sub.add_parser(verb, description=text, allow_abbrev=False)
            if verb == chosen:  # a second or more on a busy machine: Ctrl-C may come within
                _imported(module).add_arguments(child)
        if not args:
            parser.print_help(sys.stderr)
            return UsageFault.exit_code
        if chosen in _TAKES_FILES:
            args = _dashed_files(args)
        parsed, unknown = parser.parse_known_args(args)  # type: ignore[no-untyped-call]  # as above
        if unknown:
            parsed.parser.unknown(unknown)
        parsed.is_program = argv is None  # the process is this verb's alone, and is as old as the verb
        settings = Settings.from_environ()
        ready(base_of(settings.state_dir))
        return int(_imported(VERBS[parsed.verb][0]).run(parsed, settings, render))
    except SystemExit as stop:  # argparse: 2 for usage, 0 for --help
        return int(stop.code or 0)
    except ReaderGone:
        raise
    except LocalagentError as fault:
        return _told(render, fault, parsed)
    except KeyboardInterrupt:
        return _told(render, Interrupted("interrupted; the tree is as it was"), parsed)
    except Exception as bug:  # noqa: BLE001 - the front end: one line for the user, everything in the log
        remedy = f"please report it with this log (check it first, it may quote your code): {_log(bug, args)}"
        return _told(render, InternalFault(f"a bug of localagent: {type(bug).__name__}: {bug}", remedy=remedy), parsed)


def _told(render: Render, fault: LocalagentError, parsed: argparse.Namespace) -> int:
    """Say what ended the verb, to standard error, and where JSON was asked for there too; the exit code."""
    if isinstance(fault, UsageFault):
        for line in fault.faults:
            render.error(line)
        if fault.remedy:
            render.note(f"  what to do: {fault.remedy}")
    else:
        render.error(str(fault), fault.remedy)
    if getattr(parsed, "json", None) is True:
        kind = next((name for known, name in _KINDS.items() if isinstance(fault, known)), "internal")
        render.json_fault(fault, kind)
    return fault.exit_code


def _imported(module: str) -> ModuleType:
    """A verb's module. Importing makes no garbage; looking for some meanwhile takes a sixth of the time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        return importlib.import_module(f"localagent.cli.{module}")
    finally:
        if collects:
            gc.enable()


def _dashed_files(args: list[str]) -> list[str]:
    """The arguments with `./` before names of files that begin with a dash, as pre-commit passes them."""
    end = args.index("--") if "--" in args else len(args)
    return [
        f"./{a}" if a.startswith("-") and not _OPTION.fullmatch(a) and os.path.lexists(a) else a for a in args[:end]
    ] + args[end:]


def _common_verbs() -> str:
    """By group: the common verbs with their line of help, the others by name."""
    lines = []
    for group, verbs in GROUPS.items():
        lines += [f"{group}:", *(f"  {verb:14} {text}" for verb, (_, text) in verbs.items() if verb in _COMMON)]
        if others := [verb for verb in verbs if verb not in _COMMON]:
            lines += textwrap.wrap(
                ", ".join(others), 78, initial_indent="  also: ", subsequent_indent="    ", break_on_hyphens=False
            )
    return "\n".join([*lines, ""])


def _unknown(verb: str) -> int:
    """Say which verbs are spelled like a word that is none."""
    like = difflib.get_close_matches(verb, VERBS, n=3)
    remedy = f"did you mean {' or '.join(like)}?" if like else "localagent help lists the verbs"
    Render().error(f"unknown verb {verb!r}", remedy)
    return UsageFault.exit_code


def _log(bug: Exception, args: Sequence[str]) -> str:
    """Keeps a log shaped as a bug report, without what looks like a token; returns its path, or why there is none."""
    from localagent.text.secret_redaction import Sanitizer  # noqa: PLC0415 - starting must stay quick

    text = "\n".join(
        (
            f"localagent {__version__}, Python {sys.version.split()[0]}, {platform.platform()}",
            f"arguments: {list(args)!r}",
            "",
            "".join(traceback.format_exception(bug)),
        )
    )
    text = Sanitizer().clean_text(text).text
    folder = Settings.from_environ().state_dir / "faults"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", errors="backslashreplace", dir=folder, prefix="fault-", suffix=".log", delete=False
        ) as f:
            f.write(text)
        return f.name
    except OSError as error:
        return f"this (no log could be written: {error}):\n{text}"
