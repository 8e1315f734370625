"""`model qualify` and `model compare`: a model measured as an agent, in bounded time, on tasks drawn for the occasion.

First whether it calls tools at all; a model that does not is asked for nothing more. What there was no time for is
named, and never counted for it.
"""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from localagent.app.agent.challenge_run import ChallengeResult, ChallengeRunner
from localagent.app.agent.challenges import Challenge, Skill, built_in
from localagent.app.agent.chat_model import open_chat_model, refuse_absent
from localagent.app.agent.model_probes import GO_ON, Prober
from localagent.app.agent.model_profile import ModelProfile, keep_profile, refuse_unknown
from localagent.app.cancellation import Stop
from localagent.app.jail_level import least_level
from localagent.app.settings import Settings
from localagent.domain.strength import Share
from localagent.jail.api import open_jail
from localagent.policy.load import load_policy
from localagent.ports import ChatModel

_PROBE_SHARE = 0.3  # of the time, for all that is no task
_LEAST_SECONDS = 5.0
_NAMED = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class QualificationExtent:
    """How much: the seed of the tasks, tasks of each skill, seconds for a model, seconds for one task."""

    seed: int
    each: int = 3
    seconds: float = 1800.0
    task_seconds: float = 300.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """What one model did of some challenges. `cut` are the names of those that there was no time for."""

    name: str
    digest: str
    results: tuple[ChallengeResult, ...]
    cut: tuple[str, ...]

    @property
    def done(self) -> Share:
        """Challenges that were done, of those that were tried."""
        return _share((one.done, one.name) for one in self.results)

    @property
    def calls(self) -> Share:
        """Replies whose calls are well-formed."""
        return total(one.calls for one in self.results)


def qualify(
    name: str, settings: Settings, say: Callable[[str], None], extent: QualificationExtent, stop: Stop
) -> ModelProfile:
    """Measure one model and keep its profile. AnswerIsNo, CannotEnforce, UsageFault where it cannot be asked."""
    begin = time.monotonic()
    left = _left(extent.seconds)
    runner = _runner(settings, stop)
    with open_chat_model(name, settings, lambda: runner.jail, stop, by_profile=False) as model:
        refuse_unknown(model.digest, settings)
        found, asked = _probed(name, model, extent, left, say, stop)
        if found.dialects[found.dialect].right.share < GO_ON:
            left_out = "everything else: what does not call tools does nothing here"
            found = replace(found, cut=(*found.cut, left_out))
        else:
            results, cut = _ran(runner, asked, built_in(extent.seed, extent.each), extent, left, say)
            found = replace(
                found,
                calls=total(one.calls for one in results),
                stops=_share((one.stopped, one.name) for one in results),
                skills={
                    skill.value: _share((one.done, one.name) for one in results if one.skill == skill.value)
                    for skill in Skill
                    if any(one.skill == skill.value for one in results)
                },
                edits={
                    tool: total(one.edits[tool] for one in results if tool in one.edits)
                    for tool in sorted({tool for one in results for tool in one.edits})
                },
                cut=(*found.cut, *(f"{name}: no time was left" for name in cut)),
            )
    found = replace(found, seconds=round(time.monotonic() - begin, 1))
    keep_profile(found, settings)
    return found


def compare(
    names: Sequence[str],
    settings: Settings,
    say: Callable[[str], None],
    challenges: Sequence[Challenge],
    extent: QualificationExtent,
    stop: Stop,
) -> list[Standing]:
    """Every model at the same challenges, in turn; a name that is none is told before the first is asked.

    UsageFault for one of the user's that is done before a model has begun.
    """
    found = []
    for name in names:
        refuse_absent(name, settings)
    runner = _runner(settings, stop)
    runner.refuse_done([challenge for challenge in challenges if challenge.skill is Skill.OWN])
    for name in names:
        with open_chat_model(name, settings, lambda: runner.jail, stop) as model:
            say(f"{name}:")
            results, cut = _ran(runner, model, challenges, extent, _left(extent.seconds), say)
            found.append(Standing(name=name, digest=model.digest, results=results, cut=cut))
    return found


def total(shares: Iterable[Share]) -> Share:
    """Their sum."""
    return reduce(lambda a, b: Share(part=a.part + b.part, whole=a.whole + b.whole), shares, Share(part=0, whole=0))


def _share(tried: Iterable[tuple[bool, str]]) -> Share:
    """How many were done; the names of those that were not."""
    all_ = list(tried)
    missing = [name for done, name in all_ if not done]
    return Share(part=len(all_) - len(missing), whole=len(all_), missing=tuple(missing[:_NAMED]))


def _runner(settings: Settings, stop: Stop) -> ChallengeRunner:
    """What runs challenges: under the policy that comes with localagent, so that models are measured alike."""
    policy = load_policy(settings.policies_dir / "default.toml")
    return ChallengeRunner(settings=settings, policy=policy, jail=open_jail(least=least_level(settings)), stop=stop)


def _left(seconds: float) -> Callable[[], float]:
    """What tells how many of some seconds, which begin now, are left."""
    end = time.monotonic() + seconds
    return lambda: end - time.monotonic()


def _probed(
    name: str,
    model: ChatModel,
    extent: QualificationExtent,
    left: Callable[[], float],
    say: Callable[[str], None],
    stop: Stop,
) -> tuple[ModelProfile, ChatModel]:
    """What single questions show, and the model in the dialect that it calls best in."""
    cancelled = threading.Event()
    until = left() - extent.seconds * _PROBE_SHARE
    prober = Prober(seed=extent.seed, cancelled=cancelled, left=lambda: max(0.0, left() - until))
    with stop.calling(cancelled.set):
        ways = prober.dialects(model)
        for way, (_, calls) in ways.items():
            say(f"calls in {way} format: {calls.well_formed} well-formed, {calls.right} as asked")
        best = max(ways, key=lambda way: (ways[way][1].right.part, ways[way][1].well_formed.part))
        asked, calls = ways[best]
        found = ModelProfile(
            name=model.name or name,
            digest=model.digest,
            seed=extent.seed,
            dialect=best.value,
            dialects={way.value: one for way, (_, one) in ways.items()},
            context_tokens=model.context_tokens or 0,
        )
        if calls.right.share < GO_ON:
            return found, asked
        speed = prober.speed(asked)
        say(f"writes {speed:.1f} tokens a second" if speed else "how fast it writes is not known")
        reviews = prober.reviews(asked)
        say(f"judges {reviews} changes rightly as a reviewer")
        shown, reading = prober.context(asked, speed)
        say(f"found a line again in {shown:,} tokens" if shown else "found no line of a longer text again")
        return replace(found, reply_speed=speed, reviews=reviews, shown_context=shown, prompt_speed=reading), asked


def _ran(
    runner: ChallengeRunner,
    model: ChatModel,
    challenges: Sequence[Challenge],
    extent: QualificationExtent,
    left: Callable[[], float],
    say: Callable[[str], None],
) -> tuple[tuple[ChallengeResult, ...], tuple[str, ...]]:
    """Results in order, and the names of what there was no time for: one that the time cut short counts as neither."""
    results: list[ChallengeResult] = []
    for number, challenge in enumerate(challenges):
        seconds = min(extent.task_seconds, left())
        if seconds < _LEAST_SECONDS:
            return tuple(results), tuple(c.name for c in challenges[number:])
        one = runner.run(model, challenge, seconds=seconds, seed=extent.seed + number)
        if not one.stopped and seconds < extent.task_seconds and left() <= 0:
            return tuple(results), tuple(c.name for c in challenges[number:])
        results.append(one)
        said = "done" if one.done else f"not done: {one.why}"
        say(f"{one.name}: {said} ({one.calls.whole} replies, {one.seconds:.0f} s)")
    return tuple(results), ()
