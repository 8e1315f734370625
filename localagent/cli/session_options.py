"""The options that `do` and `chat` share: models, roles, trust, budget; their defaults are in the environment."""

import argparse
import math
from dataclasses import dataclass
from pathlib import Path

from localagent.agent.approval import Trust
from localagent.agent.events import IMPLEMENTER, PLANNER, REVIEWER, TESTER
from localagent.agent.limits import Limits
from localagent.app import Settings
from localagent.app.agent.request import ROLES, DoRequest
from localagent.cli.backend import add_backend, backend_of
from localagent.cli.fix import command_fault

TRUST_LEVELS = [trust.value for trust in Trust]


def add_session_options(parser: argparse.ArgumentParser) -> None:
    """Which repository, which models, what they may do, how long."""
    p = parser
    p.add_argument("--repo", default=".", metavar="DIR", help="a git repository or a plain folder (default: .)")
    p.add_argument("--test", action="append", default=[], metavar="SPEC", help="a test that must pass in the end")
    p.add_argument("--check", action="append", default=[], metavar="CMD", help="a command that must exit 0 (no shell)")
    p.add_argument(
        "--model",
        default="",
        metavar="M",
        help="unix:SOCKET of a model server, or a registered GGUF (default: LOCALAGENT_CHAT_MODEL)",
    )
    p.add_argument(
        "--review-model",
        default="",
        metavar="M",
        help="a model that reads a proven patch, and may object to it (default: LOCALAGENT_REVIEW_MODEL)",
    )
    p.add_argument(
        "--roles",
        default="",
        metavar="LIST",
        help=f"roles for the model: {', '.join(ROLES)} (default: LOCALAGENT_ROLES, else {IMPLEMENTER})",
    )
    p.add_argument(
        "--trust",
        choices=TRUST_LEVELS,
        help="ask a person about every change, plan and patch, or only what the policy requires "
        "(default: LOCALAGENT_TRUST, else plan)",
    )
    p.add_argument(
        "--max-steps", type=int, default=200, metavar="N", help="maximum number of the model's replies (200)"
    )
    p.add_argument("--max-seconds", type=float, default=1800.0, metavar="S", help="time limit in seconds (1800)")
    p.add_argument("--max-tokens", type=int, default=2_000_000, metavar="T", help="maximum number of tokens (2000000)")
    p.add_argument("--python", default="", metavar="PY", help="the project's interpreter or virtual environment")
    p.add_argument("--seed", type=int, default=0, metavar="K", help="random seed (0)")
    p.add_argument("--policy", type=Path, metavar="NAME|FILE", help="the policy to use (default: default)")
    add_backend(p)


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionDefaults:
    """What holds where an option is left out. `roles` and `review_model` only beside a model."""

    model: str = ""
    review_model: str = ""
    roles: str = ""
    trust: str = Trust.PLAN.value


def defaults_of(settings: Settings) -> SessionDefaults:
    """Those of the environment."""
    return SessionDefaults(
        model=settings.chat_model,
        review_model=settings.review_model,
        roles=settings.roles,
        trust=settings.trust or Trust.PLAN.value,
    )


def session_request(args: argparse.Namespace, defaults: SessionDefaults, faults: list[str]) -> DoRequest:
    """What the shared options ask for, without an instruction; what is wrong with them is added to `faults`."""
    if not Path(args.repo).is_dir():
        faults.append(f"--repo: {args.repo} is not a directory")
    model = args.model or defaults.model
    review_model = args.review_model or (defaults.review_model if model else "")
    trust = args.trust or defaults.trust
    if trust not in TRUST_LEVELS:
        faults.append(f"LOCALAGENT_TRUST: {trust!r} is none; known: {', '.join(TRUST_LEVELS)}")
        trust = Trust.PLAN.value
    for name, value in (("--max-steps", args.max_steps), ("--max-tokens", args.max_tokens)):
        if value < 1:
            faults.append(f"{name}: at least 1")
    if not 0 < args.max_seconds < math.inf:
        faults.append("--max-seconds: must be positive and finite")
    faults += [fault for fault in map(command_fault, args.check) if fault]
    return DoRequest(
        instruction="",
        repo=Path(args.repo),
        tests=tuple(args.test),
        checks=tuple(args.check),
        python=args.python,
        model=model,
        review_model=review_model,
        roles=_roles(args, defaults, model, review_model, faults),
        trust=Trust(trust),
        limits=Limits(steps=args.max_steps, seconds=args.max_seconds, tokens=args.max_tokens),
        seed=args.seed,
        policy=args.policy,
        backend=backend_of(args),
    )


def _roles(
    args: argparse.Namespace, defaults: SessionDefaults, model: str, review_model: str, faults: list[str]
) -> tuple[str, ...]:
    """The roles that models play, in their order."""
    named = "--roles" if args.roles else "LOCALAGENT_ROLES"
    roles = tuple(r.strip() for r in (args.roles or (defaults.roles if model else "")).split(",") if r.strip())
    if unknown := [r for r in roles if r not in ROLES]:
        faults.append(f"{named}: {unknown[0]!r} is none; known: {', '.join(ROLES)}")
    elif roles and IMPLEMENTER not in roles:
        faults.append(
            f"{named}: without {IMPLEMENTER} nothing is changed, and there is nothing to plan, test or review"
        )
    if REVIEWER in roles and not (model or review_model):
        faults.append("--roles: the reviewer needs --model or --review-model")
    faults += [f"--roles: the {role} needs --model" for role in (PLANNER, TESTER) if role in roles and not model]
    playing = {*roles, IMPLEMENTER, *((REVIEWER,) if review_model else ())}
    return tuple(role for role in ROLES if role in playing)
