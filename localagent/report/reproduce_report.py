"""What `reproduce` found, as text and as JSON."""

from typing import Any

from localagent.domain.reproduction import FailureRate, FlakyReport, Reproduction

_TRIALS_SHOWN = 12


def reproduction_json(found: Reproduction) -> dict[str, Any]:
    """One object (docs/reproduce.md)."""
    signature = found.signature
    return {
        "status": found.status.value,
        "test": found.test,
        "reason": found.reason,
        "remedy": found.remedy,
        "signature": None
        if signature is None
        else {
            "exception": signature.exception,
            "pattern": signature.pattern,
            "path": signature.path,
            "function": signature.function,
        },
        "message": found.message,
        "rate": _rate_json(found.rate),
        "path": found.path,
        "command": found.command,
        "file": found.file.decode("utf-8", "backslashreplace"),
        "bytes_before": found.bytes_before,
        "bytes_after": found.bytes_after,
        "complete": found.complete,
        "runs": found.runs,
        "seconds": round(found.seconds, 3),
        "flaky": None if found.flaky is None else _flaky_json(found.flaky),
        "remarks": list(found.remarks),
        "exit": found.exit,
    }


def _rate_json(rate: FailureRate | None) -> dict[str, Any] | None:
    if rate is None:
        return None
    return {"failed": rate.failed, "runs": rate.runs, "interval": [round(bound, 4) for bound in rate.interval]}


def _flaky_json(report: FlakyReport) -> dict[str, Any]:
    return {
        "cause": report.cause.value,
        "sentence": report.sentence,
        "polluters": list(report.polluters),
        "show": report.show,
        "trials": [{"condition": trial.condition, "rate": _rate_json(trial.rate)} for trial in report.trials],
    }


def reproduction_text(found: Reproduction) -> str:
    """For people: what fails and how often, how small it got, how to run it; the file itself is not in it."""
    lines = [f"{found.test or 'the tests'}: {found.status.value}"]
    if found.signature is not None:
        lines.append(f"  fails with   {found.signature}")
    if found.rate is not None and found.rate.runs:
        low, high = found.rate.interval
        lines.append(f"  how often    {found.rate} runs (95 % interval {low:.0%} to {high:.0%})")
    if found.bytes_before and found.file:
        share = found.bytes_after / found.bytes_before
        end = "" if found.complete else "; the time ended the search, smaller may be possible"
        lines.append(f"  size         {found.bytes_before:,} -> {found.bytes_after:,} bytes ({share:.0%}){end}")
    kind = "because" if found.flaky is not None else "confirmed" if found.file else "answer"
    lines.append(f"  {kind:12} {found.reason}")
    if found.flaky is not None:
        lines += _flaky_lines(found.flaky)
    if found.command:
        lines.append(f"  run it       {found.command}")
    if found.remedy:
        lines.append(f"  what to do   {found.remedy}")
    lines += [f"  note         {remark}" for remark in found.remarks]
    lines.append(f"  {found.runs} run{'s' * (found.runs != 1)} in {found.seconds:.1f} s")
    return "\n".join(lines)


def _flaky_lines(report: FlakyReport) -> list[str]:
    shown = report.trials[-_TRIALS_SHOWN:]
    lines = [f"  cause        {report.cause.value}", "  varied"]
    if len(report.trials) > len(shown):
        lines.append(f"    ({len(report.trials) - len(shown)} earlier trials; all with --json)")
    return [*lines, *(f"    fails {trial.rate!s:>9}  {trial.condition}" for trial in shown)]
