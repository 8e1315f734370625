"""Running code as a tool: one program, one jail, one answer. The typed API behind `localagent jail run`.

    from localagent.app.execute.run import code_of, execute
    from localagent.domain.execution import Execution, Language

    program = code_of(b"print(6 * 7)", Language.PYTHON)
    executed = execute(Execution(limits=limits, code=program), settings, jail, sanitizer)

The program gets a workspace of its own with copies of the inputs; what it leaves there are the produced files. Nothing
of the caller's is writable to it but what `read_write` names.
"""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from localagent.app.execute.languages import DEFAULT_NAMES, ENV, SUFFIXES, WORKSPACE, Interpreter, interpreter_for
from localagent.app.settings import Settings
from localagent.domain.execution import Code, Executed, Execution, Language
from localagent.domain.gate import Finding
from localagent.domain.jailspec import Access, Bind, JailResult, JailSpec, LeftOut, Produced
from localagent.domain.outcome import JailOutcome
from localagent.domain.paths import RepoPath
from localagent.errors import UsageFault
from localagent.jail.api import Workspace, fresh_uid, scratch_folder
from localagent.jail.files.transfer import Marks, TransferBounds, marks_of, put_in, read_regular, ready_out, take_out
from localagent.ports import Jail
from localagent.text.secret_redaction import Sanitizer

CODE_LIMIT_BYTES = 4 << 20
BOUNDS = TransferBounds()


@dataclass(frozen=True, kw_only=True, slots=True)
class PreparedWorkspace:
    """A prepared workspace: what it held before anything ran, what of the inputs was left out."""

    workspace: Workspace
    before: Marks
    left_out: tuple[LeftOut, ...]


def code_of(text: bytes, language: Language, *, name: str = "", arguments: tuple[str, ...] = ()) -> Code:
    """A program from its text; `name` is the file it becomes inside (`main.py` and the like)."""
    if len(text) > CODE_LIMIT_BYTES:
        raise UsageFault(f"the code is larger than {CODE_LIMIT_BYTES:,} bytes")
    return Code(language=language, text=text, name=name or DEFAULT_NAMES[language], arguments=arguments)


def code_in(path: Path, language: Language | None = None, arguments: tuple[str, ...] = ()) -> Code:
    """A program from a file; its suffix tells the language where none is given. Never through a link."""
    language = language or SUFFIXES.get(path.suffix)
    if language is None:
        raise UsageFault(
            f"{path}: no known suffix ({', '.join(SUFFIXES)})", remedy="say --lang; a command to run goes after --"
        )
    return code_of(read_regular(path, CODE_LIMIT_BYTES), language, name=path.name, arguments=arguments)


def execute(
    request: Execution,
    settings: Settings,
    jail: Jail,
    sanitizer: Sanitizer,
    *,
    out: Path | None = None,
    force: bool = False,
) -> Executed:
    """Run it to its end. UsageFault for a wrong request, CannotEnforce when there is no sound jail; then nothing ran.

    Produced files are copied below `out` where it is given; what is there already stays unless `force`.
    """
    if faults := faults_of(request):
        raise UsageFault(faults)
    program = request.code
    interpreter = None if program is None else interpreter_for(program.language, request.python)
    with scratch_folder(settings.scratch_dir) as scratch, prepared(request, scratch) as place:
        ready_out(out)
        result = jail.run(spec_of(request, interpreter, place))
        files, left_out = take_out(place.workspace.tree, place.before, out, BOUNDS, force=force)
    executed = executed_of(result, sanitizer, (*place.left_out, *left_out), files)
    return replace(executed, language=None if program is None else program.language)


def faults_of(request: Execution) -> list[str]:
    """Everything that is wrong with a request, but for what it is to run; empty means nothing is."""
    faults = []
    if request.command and request.code is not None:
        faults.append("a command and code: only one of them can run")
    shown = (*request.read_only, *request.read_write, *request.files)
    faults += [f"{path}: no such folder or file" for path in shown if not os.path.lexists(path)]
    names = [Path(os.path.abspath(path)).name for path in request.files]  # noqa: PTH100 - links stay as they are
    names += [request.code.name] if request.code is not None else []
    faults += [f"{name}: two inputs have this name" for name in sorted({n for n in names if names.count(n) > 1})]
    if request.cwd and not request.cwd.startswith("/"):
        faults.append(f"--cwd {request.cwd}: not an absolute path inside the jail")
    return faults


@contextlib.contextmanager
def prepared(request: Execution, scratch: Path) -> Iterator[PreparedWorkspace]:
    """A workspace with the inputs and the program in it, removed at the end."""
    with Workspace(scratch, uid=_owner(request)) as workspace:
        left_out: list[LeftOut] = []
        for path in request.files:
            left_out += put_in(workspace, Path(os.path.abspath(path)), BOUNDS)  # noqa: PTH100
        if request.code is not None:
            workspace.write(RepoPath(request.code.name), request.code.text)
        yield PreparedWorkspace(workspace=workspace, before=marks_of(workspace.tree, BOUNDS), left_out=tuple(left_out))


def _owner(request: Execution) -> int | None:
    """The workspace's owner: a jail that root starts has one uid, the owner of everything it may write."""
    fresh = fresh_uid()
    return os.stat(request.read_write[0]).st_uid if fresh is not None and request.read_write else fresh  # noqa: PTH116


def spec_of(request: Execution, interpreter: Interpreter | None, place: PreparedWorkspace) -> JailSpec:
    """The jail of a request. Later binds never lie below the untrusted workspace, which is a folder of its own."""
    binds = [Bind(source=str(place.workspace.tree), target=WORKSPACE, access=Access.READ_WRITE, untrusted=True)]
    binds += [_shown(path, Access.READ_ONLY) for path in request.read_only]
    binds += [_shown(path, Access.READ_WRITE) for path in request.read_write]
    taken = {bind.target for bind in binds}
    argv, env = request.command, ENV
    if interpreter is not None and request.code is not None:
        argv = (*interpreter.argv, f"{WORKSPACE}/{request.code.name}", *request.code.arguments)
        env = interpreter.env
        binds += [bind for bind in interpreter.binds if bind.target not in taken]
    first = request.read_write[0] if request.read_write else ""
    cwd = request.cwd or (os.path.realpath(first) if first and Path(first).is_dir() else WORKSPACE)
    keeps = bool(request.read_write)  # what lies there afterwards is the user's, and so is who it runs as
    return JailSpec(argv=argv, cwd=cwd, binds=tuple(binds), env=env, limits=request.limits, set_ids=not keeps)


def _shown(path: str, access: Access) -> Bind:
    real = os.path.realpath(path)
    return Bind(source=real, target=real, access=access, untrusted=True)


def executed_of(
    result: JailResult, sanitizer: Sanitizer, left_out: tuple[LeftOut, ...] = (), files: tuple[Produced, ...] = ()
) -> Executed:
    """A jail's result with its output fit to be read."""
    out, err = sanitizer.clean([result.stdout]), sanitizer.clean([result.stderr])
    kinds = sorted({*out.redacted, *err.redacted})
    return Executed(
        ending=result.ending,
        returncode=result.returncode,
        stdout=out.text,
        stderr=err.text,
        raw_stdout=result.stdout,
        raw_stderr=result.stderr,
        wall_seconds=result.wall_seconds,
        backend=result.backend,
        level=result.level,
        files=tuple(replace(file, name=sanitizer.clean_text(file.name).text) for file in files),
        left_out=tuple(replace(one, name=sanitizer.clean_text(one.name).text) for one in left_out),
        redacted={kind: out.redacted.get(kind, 0) + err.redacted.get(kind, 0) for kind in kinds},
        escaped=out.escaped + err.escaped,
    )


def refused(findings: tuple[Finding, ...], language: Language, jail: Jail) -> Executed:
    """The answer for code that the gates denied: nothing ran."""
    return Executed(
        ending=JailOutcome.COULD_NOT_START,
        returncode=-1,
        stdout="",
        stderr="",
        raw_stdout=b"",
        raw_stderr=b"",
        wall_seconds=0.0,
        backend=jail.backend,
        level=jail.level,
        language=language,
        denied=findings,
    )
