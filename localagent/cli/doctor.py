"""`localagent doctor`: what works on this machine, what does not, and what to do about it.

Everything is tried, not guessed: jails are made, tools are started (inside a jail), the model's file is looked for.
Not promised: that a task succeeds; the model's digest is checked by `model verify` and before each load.
"""

import argparse
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from localagent.app import Settings
from localagent.app.evidence.task_evidence import key_ring, open_signer, remembered
from localagent.cli import advisories, attack
from localagent.cli.render import Render
from localagent.domain.jailspec import JailLimits, JailSpec
from localagent.domain.outcome import JailOutcome
from localagent.errors import LocalagentError, UsageFault
from localagent.jail.api import BackendKind, NamespaceJail, interpreter_binds, open_jail
from localagent.jail.probe.diagnose import DiagnosisRow, jail_rows
from localagent.jail.probe.selection import ProbeState
from localagent.llm.model.gpu import NO_BACKEND, NO_DEVICE, devices, offloads
from localagent.llm.model.quantized_store import AS_IT_IS, load, stands
from localagent.llm.model.registry import ModelFile, Registry
from localagent.record.attest.keys import CREDENTIAL, PASSPHRASE, KeyNote, PassphraseMissing

# What `doctor` says of the signing key: whether one signs the journal's heads here, and can without a person.
#
# The key is opened as a task opens it. Not promised: that the same is so for another user, or for a service that
# systemd hands other credentials; and that nobody copied the key.

PART = "evidence"
NAME = "signing key"
_MAKE = (
    "`localagent key new` creates one; others can then verify signatures "
    "(`localagent key export`) and detect a rewritten journal"
)
_UNATTENDED = (
    "set LOCALAGENT_PASSPHRASE_FILE to a file (mode 0600) with its passphrase, or pass it as the systemd "
    f"credential {PASSPHRASE}; until then `fix` does not run"
)


def key_rows(settings: Settings) -> Iterator[DiagnosisRow]:
    """One row for the key, one for what it signed last. Neither keeps tasks from running that a fault does not."""
    try:
        note = key_ring(settings).active()
        signer = open_signer(settings) if note is not None else None
    except LocalagentError as fault:
        yield DiagnosisRow(
            part=PART, name=NAME, state=ProbeState.FAULTY, detail=_unopened(settings, fault), remedy=_mend(fault)
        )
        return
    if note is None or signer is None:
        detail = "none: the audit journal and patches are not signed"
        yield DiagnosisRow(part=PART, name=NAME, state=ProbeState.ABSENT, detail=detail, remedy=_MAKE)
        return
    yield DiagnosisRow(
        part=PART, name=NAME, state=ProbeState.WORKS, detail=f"{signer.key_id} signs, {_storage_kind(note, settings)}"
    )
    yield _signed(settings)


def _storage_kind(note: KeyNote, settings: Settings) -> str:
    """How the private part is kept."""
    if not note.created:
        return f"passed by systemd as {CREDENTIAL}"
    if note.encrypted:
        named = settings.passphrase_file is not None
        return f"encrypted; its passphrase comes {'from localagent_PASSPHRASE_FILE' if named else 'from systemd'}"
    return f"not encrypted: anyone who can read {key_ring(settings).folder} can sign"


def _unopened(settings: Settings, fault: LocalagentError) -> str:
    """Which key it is, where that can be said, and why it does not sign."""
    try:
        active = next((note for note in key_ring(settings).notes() if not note.retired), None)
    except LocalagentError:
        active = None
    which = f"{active.id}{', encrypted' if active.encrypted else ''}: " if active is not None else ""
    return f"{which}cannot be used unattended: {fault}"


def _mend(fault: LocalagentError) -> str:
    return _UNATTENDED if isinstance(fault, PassphraseMissing) or not fault.remedy else fault.remedy


def _signed(settings: Settings) -> DiagnosisRow:
    """What the key signed last of this journal."""
    try:
        last = remembered(settings)
    except LocalagentError as fault:
        remedy = fault.remedy or "`localagent audit verify` says more"
        return DiagnosisRow(part=PART, name="signed head", state=ProbeState.FAULTY, detail=str(fault), remedy=remedy)
    if last is None:
        remedy = "the next task signs it, or run `localagent audit sign`"
        return DiagnosisRow(part=PART, name="signed head", state=ProbeState.ABSENT, detail="none yet", remedy=remedy)
    detail = f"entry {last.seq}, {last.digest}"
    return DiagnosisRow(part=PART, name="signed head", state=ProbeState.WORKS, detail=detail)


TOOLS = ("pytest", "ruff", "mypy", "bandit", "hypothesis")
NEEDED_TOOLS = frozenset({"pytest", "bandit"})
TOOL_SCRIPT = """
import importlib.metadata, subprocess, sys
for name in sys.argv[1:]:
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        print(name, "absent")
        continue
    program = ["import " + name] if name == "hypothesis" else ["import runpy, sys; sys.argv = ['x', '--version']; "
               "runpy.run_module(" + repr(name) + ", run_name='__main__')"]
    done = subprocess.run([sys.executable, "-I", "-c", *program], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    print(name, "works" if done.returncode == 0 else "faulty", version)
"""
LAYERS = "layers"
LAYER_WORDS = {ProbeState.WORKS: "held", ProbeState.ABSENT: "missing", ProbeState.FAULTY: "missing"}
LIMITS = JailLimits(wall_seconds=60, cpu_seconds=60)
ENV = (("HOME", "/tmp"), ("PATH", "/usr/bin:/bin"), ("LANG", "C.UTF-8"))  # noqa: S108 - the jail's own


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument("--json", action="store_true", help="one JSON object: usable, rows; with --attack: attacks")
    parser.add_argument("--attack", action="store_true", help="try attacks inside real jails")
    parser.add_argument("--osv", type=Path, metavar="FILE", help="match an OSV export against what is installed")
    names = ("auto", *(str(kind) for kind in BackendKind))
    text = "with --attack: which jail backends (auto: every one that works here)"
    parser.add_argument("--backend", choices=names, default="auto", help=text)


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0 when tasks can run here, 4 when not; with --attack see cli.attack, with --osv cli.advisories."""
    if args.osv is not None:
        if args.attack:
            raise UsageFault("--osv and --attack exclude each other", remedy="run them one after the other")
        return advisories.run(args.osv, render, as_json=args.json)
    if args.attack:
        return attack.run(args, settings, render)
    if args.backend != "auto":
        raise UsageFault("--backend needs --attack", remedy="add --attack; without it doctor checks every backend")
    rows = list(collect(settings))
    usable = not any(row.needed and row.state is not ProbeState.WORKS for row in rows)
    if args.json:
        render.json({"usable": usable, "rows": [_as_json(row) for row in rows]})
    else:
        for line in table(rows):
            render.line(line)
        render.line("tasks can run here" if usable else "tasks cannot run here: see the rows marked absent or faulty")
    return 0 if usable else 4


def collect(settings: Settings) -> Iterator[DiagnosisRow]:
    """Every row, in the order shown."""
    yield from jail_rows()
    try:
        jail = open_jail()
    except LocalagentError as fault:
        yield DiagnosisRow(
            part="tools", name="tools", state=ProbeState.ABSENT, detail="not tested: no jail", remedy=fault.remedy
        )
    else:
        yield from tool_rows(jail)
    yield from model_rows(settings)
    yield from key_rows(settings)
    yield from machine_rows()


def tool_rows(jail: NamespaceJail) -> Iterator[DiagnosisRow]:
    """The checking tools, started in a jail on our own interpreter, and git."""
    try:
        python, binds = interpreter_binds(sys.executable)
    except LocalagentError as fault:
        yield DiagnosisRow(
            part="tools", name="python", state=ProbeState.FAULTY, detail=str(fault), remedy=fault.remedy, needed=True
        )
        return
    argv = (python, "-I", "-c", TOOL_SCRIPT, *TOOLS)
    result = jail.run(JailSpec(argv=argv, cwd="/", binds=binds, env=ENV, limits=LIMITS))
    told = {line.split()[0]: line.split()[1:] for line in result.stdout.decode(errors="replace").splitlines()}
    for name in TOOLS:
        word, *version = told.get(name, ["faulty", f"the trial ended as {result.ending}"])
        remedy = "" if word == "works" else "run `make setup`"
        needed = name in NEEDED_TOOLS
        yield DiagnosisRow(
            part="tools", name=name, state=ProbeState(word), detail=" ".join(version), remedy=remedy, needed=needed
        )
    yield _git(jail)


def _git(jail: NamespaceJail) -> DiagnosisRow:
    program = shutil.which("git", path="/usr/local/bin:/usr/bin:/bin")
    if program is None:
        return DiagnosisRow(
            part="tools", name="git", state=ProbeState.ABSENT, detail="only plain folders", remedy="apt install git"
        )
    result = jail.run(JailSpec(argv=(program, "--version"), cwd="/", env=ENV, limits=LIMITS))
    works = result.ending is JailOutcome.EXITED and result.returncode == 0
    text = result.stdout.decode(errors="replace").strip()
    return DiagnosisRow(part="tools", name="git", state=ProbeState.WORKS if works else ProbeState.FAULTY, detail=text)


def model_rows(settings: Settings) -> Iterator[DiagnosisRow]:
    """The default model's file, and what llama.cpp computes on. A missing model never stops a task."""
    try:
        from localagent.llm.model.llama_build import backend_name  # noqa: PLC0415 - heavy, only here
    except ImportError as fault:
        yield DiagnosisRow(
            part="model", name="llama.cpp", state=ProbeState.ABSENT, detail=str(fault), remedy="run `make setup`"
        )
        return
    remedy = "run `make setup`, or `localagent model add FILE.gguf`; until then tasks run without a model"
    try:
        model = Registry(settings.models_dir, settings.data_dir).default()
        yield DiagnosisRow(
            part="model", name=model.name, state=ProbeState.WORKS, detail=f"{model.path}, {model.bytes} bytes"
        )
        yield _tuned_row(model, settings)
        yield _trial_row(model, settings)
    except LocalagentError as fault:
        yield DiagnosisRow(
            part="model", name="default model", state=ProbeState.ABSENT, detail=str(fault), remedy=remedy
        )
    try:
        backend = backend_name()
        yield DiagnosisRow(part="model", name="llama.cpp", state=ProbeState.WORKS, detail=backend)
        yield DiagnosisRow(part="model", name="offload", state=ProbeState.WORKS, detail=offload(backend))
    except LocalagentError as fault:
        yield DiagnosisRow(
            part="model", name="llama.cpp", state=ProbeState.FAULTY, detail=str(fault), remedy=fault.remedy
        )


def _trial_row(model: ModelFile, settings: Settings) -> DiagnosisRow:
    """Whether its process runs here; without it tasks go on, and worse."""
    from localagent.app.models.trial import try_model  # noqa: PLC0415 - heavy, only here

    try:
        state, detail, remedy = ProbeState.WORKS, try_model(model, settings), ""
    except LocalagentError as fault:
        state, detail, remedy = ProbeState.FAULTY, str(fault), fault.remedy
    return DiagnosisRow(part="model", name="model runs", state=state, detail=detail, remedy=remedy)


def _tuned_row(model: ModelFile, settings: Settings) -> DiagnosisRow:
    """Which format of the weights serves here, as `model tune` measured it."""
    found = load(settings.data_dir, model.sha256)
    state, detail, remedy = ProbeState.WORKS, AS_IT_IS, ""
    if found is None:
        state, detail = ProbeState.ABSENT, "not measured on this machine; the model is used as it is"
        remedy = "`localagent model tune` finds the fastest weight format on this machine"
    elif found.failed:
        state, remedy = ProbeState.FAULTY, "run `localagent model tune` again; the model works without it"
        detail = f"{found.form}; not measured: " + "; ".join(f"{form} ({why})" for form, why in found.failed.items())
    elif not stands(found, model, settings.data_dir):
        state, detail = ProbeState.FAULTY, f"the weights rewritten as {found.form} are gone or altered"
        remedy = "run `localagent model tune`; until then the model is used as it is"
    elif found.form != AS_IT_IS:
        detail = f"{found.form}, {found.faster:.1f} times as fast as the registered file"
    return DiagnosisRow(part="model", name="format", state=state, detail=detail, remedy=remedy)


def offload(backend: str) -> str:
    """Whether layers of a model can go to a GPU, which they do where it is asked for."""
    if not offloads(backend):
        return NO_BACKEND
    found = devices()
    if not found:
        return NO_DEVICE
    return f"where --gpu-layers asks for it, with {', '.join(found)}; a task reports whether its jail could use them"


def machine_rows() -> Iterator[DiagnosisRow]:
    """Cores and how busy they are; the interpreter."""
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    busy = "; other work slows the search" if load > cores * 0.75 else ""
    detail = f"{cores} usable, load {load:.1f}{busy}"
    yield DiagnosisRow(part="machine", name="cores", state=ProbeState.WORKS, detail=detail)
    version = ".".join(str(part) for part in sys.version_info[:3])
    yield DiagnosisRow(part="machine", name="python", state=ProbeState.WORKS, detail=f"{version} {sys.executable}")


def table(rows: Sequence[DiagnosisRow]) -> Iterator[str]:
    """Aligned lines; the remedy of what does not work on a line of its own."""
    width = max((len(row.name) for row in rows), default=0)
    part = ""
    for row in rows:
        if row.part != part:
            part = row.part
            yield part
            if part == LAYERS:
                yield f"  {'layer':<{width}}  {'state':<7} found"
        state = LAYER_WORDS[row.state] if part == LAYERS else row.state
        yield f"  {row.name:<{width}}  {state:<7} {row.detail}".rstrip()
        if row.tried:
            yield f"  {'':<{width}}  tried:  {row.tried}"
        if row.remedy and row.state is not ProbeState.WORKS:
            yield f"  {'':<{width}}  -> {row.remedy}"


def _as_json(row: DiagnosisRow) -> dict[str, object]:
    return {
        "part": row.part,
        "name": row.name,
        "state": str(row.state),
        "detail": row.detail,
        "tried": row.tried,
        "remedy": row.remedy,
        "needed": row.needed,
    }
