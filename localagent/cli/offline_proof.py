"""`localagent offline-proof`: every socket that localagent asked for while it worked, and whether any leads out."""

import argparse
from pathlib import Path

from localagent import __version__
from localagent.app import Settings
from localagent.app.inventory.egress_proof import OfflineProof, ProofStep, prove, steps
from localagent.cli.render import Render
from localagent.fs.atomic_files import write_through
from localagent.jail.trace.syscall_trace import Tracer
from localagent.text.strict_json import dump


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output (docs/kit.md)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="also write that JSON to FILE")
    text = "only this step; may be repeated"
    parser.add_argument("--only", action="append", choices=list(steps()), default=[], help=text)


def run(args: argparse.Namespace, settings: Settings, render: Render) -> int:
    """0 nothing but AF_UNIX, no write and no read beyond what is said; 1 something else; 4 when it cannot be seen."""
    tracer, done = Tracer(program="", version=""), []
    for told in prove(settings, args.only):
        if isinstance(told, Tracer):
            tracer = told
            render.note(f"under strace {told.version}; a step may take a minute")
        else:
            done.append(told)
            render.note(f"{told.name}: exit {told.exit}, {len(told.judged.findings)} findings")
    proof = OfflineProof(tracer=tracer, steps=tuple(done))
    value = as_json(proof)
    if args.out is not None:
        write_through(args.out, dump(value, indent=1))
    if args.json:
        render.json(value)
    else:
        _text(proof, render)
    return 0 if proof.offline else 1


def as_json(proof: OfflineProof) -> dict[str, object]:
    """The documented object."""
    return {
        "schema": 1,
        "localagent": __version__,
        "tracer": f"strace {proof.tracer.version}",
        "offline": proof.offline,
        "steps": [
            {
                "name": step.name,
                "argv": list(step.argv),
                "exit": step.exit,
                "threads": step.judged.processes,
                "sockets": [
                    {"call": call, "family": family, "namespace": where, "times": times}
                    for (call, family, where), times in sorted(step.judged.sockets.items())
                ],
                "findings": [{"kind": f.kind, "what": f.what} for f in step.judged.findings],
            }
            for step in proof.steps
        ],
    }


def _text(proof: OfflineProof, render: Render) -> None:
    for step in proof.steps:
        render.line(f"{step.name}: exit {step.exit}, {step.judged.processes} threads traced")
        for (call, family, where), times in sorted(step.judged.sockets.items()):
            render.line(f"  {call:<11} {family:<11} {times:>5} times, in {where} network namespace")
        for finding in step.judged.findings:
            render.line(f"  FOUND {finding.kind}: {finding.what}")
        if step.exit != 0:
            _failed(step, render)
    tried = ", ".join(step.name for step in proof.steps)
    good = f"offline ({tried}): only AF_UNIX, and in jails the kernel's own loopback"
    render.line(good if proof.offline else f"NOT shown to be offline ({tried})")


def _failed(step: ProofStep, render: Render) -> None:
    render.line("  it failed, so it proves nothing; its last output:")
    for line in step.said.strip().splitlines()[-5:]:
        render.line(f"    {line}")
