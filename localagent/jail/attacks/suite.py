"""Runs attacks in jails and judges them: held only where the reason seen is the one of the wall.

Attacks that leave each other alone share a jail, each in a process of its own; those that end their jail have it to
themselves. Two or three jails run at once. CannotEnforce when there is no jail; an attack whose jail could not be made
or answered nothing counts as escaped, with the reason.
"""

import json
import queue
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from localagent.domain.jailspec import Access, Bind, JailLimits, JailResult, JailSpec
from localagent.errors import CannotEnforce
from localagent.jail.attacks.attack import DID, LACKS, Attack, Bait, Witness
from localagent.jail.attacks.row import AttackRow, AttackVerdict
from localagent.jail.attacks.stage import AttackStage
from localagent.jail.files.binds import interpreter_binds
from localagent.jail.files.workspace import Workspace
from localagent.ports import Jail

HERE = Path(__file__).resolve().parent
ENV = (
    ("HOME", "/tmp"),
    ("LANG", "C.UTF-8"),
    ("LOCALAGENT_ATTACK", "inside"),
    ("PATH", "/usr/bin:/bin"),
    ("TMPDIR", "/tmp"),
)
LIMITS = JailLimits(wall_seconds=60, cpu_seconds=30, tmp_bytes=64 << 20)
AT_ONCE = 3
SHARED_JAILS = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class AttackOutcome:
    """What one attack came to: a reason (errno, signal, word, `ending:...`, or that it succeeded), and a text."""

    reason: str
    text: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cast:
    """One jail's worth of attacks: all with the same limits."""

    attacks: tuple[Attack, ...]
    limits: JailLimits = LIMITS
    binds: tuple[Bind, ...] = ()
    env: tuple[tuple[str, str], ...] = ENV
    standin: bool = False

    @property
    def alone(self) -> bool:
        """True when this is one attack that may end its jail."""
        return any(attack.alone for attack in self.attacks)


def casts(attacks: Sequence[Attack]) -> tuple[Cast, ...]:
    """Attacks by jail: the long ones first, since they decide when all is done."""
    alone = [Cast(attacks=(attack,), limits=limits_of(attack.limits)) for attack in attacks if attack.alone]
    shared: dict[tuple[tuple[str, float], ...], list[Attack]] = {}
    for attack in attacks:
        if not attack.alone:
            shared.setdefault(attack.limits, []).append(attack)
    plain = shared.pop((), [])
    parts = [plain[start::SHARED_JAILS] for start in range(SHARED_JAILS)]
    together = [Cast(attacks=tuple(part)) for part in parts if part]
    tight = [Cast(attacks=tuple(part), limits=limits_of(limits)) for limits, part in shared.items()]
    return (*together, *alone, *tight)


def limits_of(changes: Sequence[tuple[str, float]]) -> JailLimits:
    """The suite's limits with some of them changed."""
    changed = {name: value if name.endswith("_seconds") else int(value) for name, value in changes}
    return replace(LIMITS, **changed)  # type: ignore[arg-type]


def run(jail: Jail, attacks: Sequence[Attack], stage: AttackStage) -> Iterator[AttackRow]:
    """One row for each attack, as they are done."""
    ready: queue.SimpleQueue[list[AttackRow] | None] = queue.SimpleQueue()
    work = casts(attacks)
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="attack") as pool:
        for cast in work:
            pool.submit(_judged, jail, cast, stage).add_done_callback(lambda done: ready.put(done.result()))
        for _ in work:
            yield from ready.get() or []


def _judged(jail: Jail, cast: Cast, stage: AttackStage) -> list[AttackRow]:
    wanted = tuple(attack for attack in cast.attacks if not missing(attack))
    seen: dict[str, AttackOutcome] = {}
    try:
        if wanted:
            seen = play(jail, replace(cast, attacks=wanted), stage)
    except (CannotEnforce, OSError) as fault:
        seen = {attack.name: AttackOutcome(reason="no-jail", text=str(fault)) for attack in wanted}
    return [_row(jail, attack, seen.get(attack.name), stage) for attack in cast.attacks]


def missing(attack: Attack) -> str:
    """What this machine lacks for the attack to make sense, or ""."""
    targets = attack.target.split("|") if attack.target else []
    if targets and not any(Path(target).exists() for target in targets):
        return f"this machine has no {' or '.join(targets)}"
    return ""


def play(jail: Jail, cast: Cast, stage: AttackStage) -> dict[str, AttackOutcome]:
    """Run the attacks in one jail with a workspace of its own; what each came to, by name."""
    workspace = stage.workspace(own=cast.alone)
    try:
        result = jail.run(spec_of(cast, workspace, stage))
        seen = answers(result)
    finally:
        workspace.remove()
    for attack in cast.attacks:
        if attack.ends_jail:
            seen[attack.name] = seen.get(attack.name) or AttackOutcome(reason=f"ending:{result.ending}")
        elif attack.name not in seen:
            why = result.stderr.decode(errors="replace").strip()[-200:]
            seen[attack.name] = AttackOutcome(reason="no-answer", text=f"the jail ended as {result.ending}: {why}")
        if attack.witness is Witness.REST and workspace.folder.exists():
            seen[attack.name] = AttackOutcome(reason=DID, text=str(Witness.REST.value))
    return seen


def bait_for_child(cast: Cast, bait: Bait, interpreter: Sequence[Bind]) -> dict[str, object]:
    """The bait as the program inside gets it."""
    allowed = (*(name for name, _ in ENV), "PWD")
    shown = tuple(bind.target for bind in interpreter)
    return {**asdict(replace(bait, allowed=allowed, interpreter=shown)), "standin": cast.standin}


def spec_of(cast: Cast, workspace: Workspace, stage: AttackStage) -> JailSpec:
    """The jail of a cast."""
    python, binds = interpreter_binds(sys.executable)
    code, own = f"{stage.inside}/code/_la", stage.bait.workspace_inside
    bait = json.dumps(bait_for_child(cast, stage.bait, binds))
    words = [f"{attack.module}:{attack.name}" for attack in cast.attacks]
    shown = () if cast.alone else (Bind(source=str(stage.shown), target=stage.bait.shown_inside),)
    return JailSpec(
        argv=(
            python,
            "-I",
            "-S",
            "-B",
            f"{code}/attacks/inside.py",
            bait,
            *words,
        ),
        cwd=own,
        binds=(
            *binds,
            Bind(source=str(HERE), target=f"{code}/attacks"),
            Bind(source=str(HERE.parent / "boundaries.py"), target=f"{code}/boundaries.py"),
            Bind(source=str(workspace.tree), target=own, access=Access.READ_WRITE, untrusted=True),
            *shown,
            *cast.binds,
        ),
        env=cast.env,
        limits=cast.limits,
    )


def answers(result: JailResult) -> dict[str, AttackOutcome]:
    """What the program inside told, by the attack's name."""
    found = {}
    for line in result.stdout.splitlines():
        if line.startswith(b'{"name"'):
            told = json.loads(line)
            found[str(told["name"])] = AttackOutcome(reason=str(told["seen"]), text=str(told["text"]))
    return found


def _row(jail: Jail, attack: Attack, seen: AttackOutcome | None, stage: AttackStage) -> AttackRow:
    result, why = judged(attack, seen, witnessed=attack.witness is not None and stage.witnessed(attack.witness))
    return AttackRow(
        name=attack.name,
        category=attack.category.value,
        backend=jail.backend,
        level=jail.level,
        result=result,
        why=why,
    )


def judged(attack: Attack, seen: AttackOutcome | None, *, witnessed: bool) -> tuple[AttackVerdict, str]:
    """The result and its reason. Whatever is not the wall's own answer is an escape."""
    lacking = missing(attack)
    if lacking or seen is None:
        return (AttackVerdict.NOT_APPLICABLE, lacking) if lacking else (AttackVerdict.ESCAPED, "it was not run")
    text = f": {seen.text}" if seen.text else ""
    if witnessed and attack.witness is not None:
        return AttackVerdict.ESCAPED, f"{attack.witness.value} (it said {seen.reason}{text})"
    if seen.reason == LACKS:
        return AttackVerdict.NOT_APPLICABLE, seen.text
    if seen.reason in attack.reasons:
        return AttackVerdict.HELD, f"{attack.wall.value}: {seen.reason}"
    if seen.reason == DID:
        return AttackVerdict.ESCAPED, f"it succeeded{text}"
    expected = ", ".join(sorted(attack.reasons))
    return (
        AttackVerdict.ESCAPED,
        f"not the answer of this wall ({attack.wall.value}: {expected}) but {seen.reason}{text}",
    )
