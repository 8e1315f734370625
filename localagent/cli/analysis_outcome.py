"""What `do` says of a data analysis: what is wrong with its options, and what came of it."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from localagent.agent.events import IMPLEMENTER
from localagent.app.agent.data_analysis import MOST_PRINTED, input_faults
from localagent.app.agent.request import DoOutcome
from localagent.app.agent.results_folder import results_fault
from localagent.cli.render import Render

_SHOWN = 50


def analysis_faults(args: argparse.Namespace) -> list[str]:
    """What is wrong with --file and --results, and with what does not go with them."""
    if bool(args.file) != bool(args.results):
        return ["--file and --results: an analysis needs both, the data and a new folder for what comes of it"]
    if not args.file:
        return []
    no_patch = (
        ("--test", args.test),
        ("--from-tests", args.from_tests),
        ("--check", args.check),
        ("--out", args.out),
        ("--apply", args.apply),
    )
    faults = [f"{name} and --file: an analysis makes no patch" for name, value in no_patch if value]
    other = (("--review-model", args.review_model), ("--roles", {*args.roles.split(",")} - {"", IMPLEMENTER}))
    faults += [f"{name} and --file: an analysis has no plan, tests or review" for name, value in other if value]
    fault = results_fault(Path(args.results))
    return faults + input_faults([Path(file) for file in args.file]) + ([fault] if fault else [])


def show_analysis(outcome: DoOutcome, analysis: Mapping[str, Any], render: Render) -> None:
    """For a person: what the script printed, the files, and what nobody checked."""
    if not outcome.exit:
        if analysis["text"]:
            render.line(analysis["text"].rstrip("\n"))
            if len(analysis["text"]) == MOST_PRINTED:
                render.note("the rest of the text is in analysis.txt")
            render.line()
        for file in analysis["outputs"][:_SHOWN]:
            render.line(f"  {file['name']}  {file['bytes']:,} bytes")
        if (more := len(analysis["outputs"]) - _SHOWN) > 0:
            render.line(f"  and {more} more files")
    render.line(outcome.reason)
    if outcome.remedy:
        render.line(f"  what to do: {outcome.remedy}")
    if summary := analysis["not_checked"]["summary"]:
        render.note(f"the model says, and nobody checked: {summary}")
    for place in analysis["speaks_to_machine"]:
        render.note(f"warning: the data speak to a machine, read the script before you rely on it: {place}")
    for warning in outcome.warnings:
        render.note(f"warning: {warning}")
    render.note(f"details: localagent show {outcome.session}; localagent session show {outcome.session}")
