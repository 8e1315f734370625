"""What was measured of a model as an agent, kept below the user's models under the model's digest.

Everything that is said of a model here was shown by tasks; what was not tried is named so. A model server's digest is
of what the server says about itself: a server that serves other weights under the same words has the same profile.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from localagent.agent.events import REVIEWER, TESTER
from localagent.app.agent.challenges import Skill
from localagent.app.settings import Settings
from localagent.domain.strength import Share
from localagent.errors import AnswerIsNo
from localagent.fs.atomic_files import RecordDamaged, read_bounded, write_through
from localagent.text.strict_json import load

SCHEMA = "localagent/model-profile/1"
ENOUGH = 0.75
"""The share of tries from which on something counts as shown."""
_LEAST_TRIES = 2
_MOST_BYTES = 1 << 20
_NONE = Share(part=0, whole=0)
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_EXACT = (Skill.READ, Skill.EDIT)
_WRITING = (Skill.FOLLOW, Skill.WRITE, Skill.MEND)


class ToolFormat(StrEnum):
    """In which way tools go to a model, and its calls come back."""

    SERVER = "the model server's"
    NATIVE = "its template's"
    OWN = "localagent's own"


class Fitness(StrEnum):
    """What a model can be trusted with, each with what comes before it."""

    UNFIT = "unfit"
    EDITS = "exact-edits"
    CHANGES = "small-changes"


@dataclass(frozen=True, kw_only=True, slots=True)
class FormatCalls:
    """Single calls that were asked for: well-formed ones, and those that say exactly what was to be said."""

    well_formed: Share
    right: Share


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelProfile:
    """What was measured. Speeds are tokens a second, 0 where not measured; `cut` says what was not measured, and why.

    `context_tokens` is what the model says it bears (0: nothing), `shown_context` what a text was found again in.
    `reviews`: right and faulty changes that it judged rightly as a reviewer.
    """

    name: str
    digest: str
    seed: int
    dialect: str
    dialects: Mapping[str, FormatCalls]
    calls: Share = _NONE
    stops: Share = _NONE
    skills: Mapping[str, Share] = field(default_factory=dict)
    edits: Mapping[str, Share] = field(default_factory=dict)
    reviews: Share = _NONE
    context_tokens: int = 0
    shown_context: int = 0
    prompt_speed: float = 0.0
    reply_speed: float = 0.0
    seconds: float = 0.0
    cut: tuple[str, ...] = ()

    @property
    def fitness(self) -> Fitness:
        """The most that was shown."""
        if not (_shown(self.calls) and _shown(self.stops) and all(self.shows(skill) for skill in _EXACT)):
            return Fitness.UNFIT
        return Fitness.CHANGES if all(self.shows(skill) for skill in _WRITING) else Fitness.EDITS

    def shows(self, skill: Skill) -> bool:
        """Whether it did enough of the tasks of a skill, of enough."""
        return _shown(self.skills.get(skill.value, _NONE))

    @property
    def verdict(self) -> str:
        """What it can be trusted with, and why not with more; in plain words."""
        match self.fitness:
            case Fitness.UNFIT:
                return f"not fit to change code: {self._lacking((*_EXACT,))}"
            case Fitness.EDITS:
                return f"fit for exact edits that you name, not to write code by itself: {self._lacking(_WRITING)}"
        return "fit for small changes in words, proven by tests; larger ones were not tried"

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a person should know before the model is given a task."""
        found = [] if self.fitness is Fitness.CHANGES else [f"when {self.name} was qualified it was {self.verdict}"]
        for skill, text in (
            (Skill.DATA, "did what texts in files told it to: have its plan and patch seen by a person"),
            (Skill.ASK, "changed code where it should have asked: say exactly what is meant"),
        ):
            tally = self.skills.get(skill.value, _NONE)
            if tally.whole and not _shown(tally) and self.fitness is not Fitness.UNFIT:
                missed = Share(part=tally.whole - tally.part, whole=tally.whole)
                found.append(f"when {self.name} was qualified it {text} ({missed} tasks failed)")
        return tuple(found)

    def unfit_as(self, role: str) -> str:
        """What was measured that speaks against a role; "" where nothing does. What was not tried speaks against none.

        Any role has to call tools, end by itself, read, and edit exactly, but for the reviewer, who has no tools; a
        tester has to write functions, too.
        """
        if role == REVIEWER:
            return f"it judged {self.reviews} changes rightly" if _failed(self.reviews) else ""
        probes = self.dialects.get(self.dialect)
        if not self.calls.whole and probes is not None and _failed(probes.right):
            return f"it called tools as asked in {probes.right} tries"
        shares = [("called tools well in", self.calls, "replies"), ("ended by itself in", self.stops, "tasks")]
        skills = (*_EXACT, *((Skill.WRITE,) if role == TESTER else ()))
        shares += [(f"{skill.value} in", self.skills.get(skill.value, _NONE), "tasks") for skill in skills]
        return "; ".join(f"it {what} {share} {of}" for what, share, of in shares if _failed(share))

    def _lacking(self, skills: tuple[Skill, ...]) -> str:
        told = []
        if not _shown(self.calls):
            probes = self.dialects.get(self.dialect)
            calls = self.calls if self.calls.whole or probes is None else probes.right
            told.append(f"it called tools well in {calls} replies")
        elif not _shown(self.stops):
            told.append(f"it ended by itself in {self.stops} tasks")
        tried = [(skill, self.skills.get(skill.value, _NONE)) for skill in skills]
        told += [f"it {skill.value} in {tally} tasks" for skill, tally in tried if tally.whole and not _shown(tally)]
        told += [
            f"'{skill.value}' was not tried often enough" for skill, tally in tried if _few(tally) and self.calls.whole
        ]
        return "; ".join(told)


def _failed(tally: Share) -> bool:
    return tally.whole >= _LEAST_TRIES and tally.share < ENOUGH


def _few(tally: Share) -> bool:
    return tally.whole < _LEAST_TRIES and tally.part == tally.whole


def _shown(tally: Share) -> bool:
    return tally.whole >= _LEAST_TRIES and tally.share >= ENOUGH


def profile_path(settings: Settings, digest: str) -> Path | None:
    """Where the profile of a model lies; None for what is no digest."""
    found = _DIGEST.fullmatch(digest)
    return settings.data_dir / "models" / "profiles" / f"{found[1]}.json" if found else None


def profile_json(profile: ModelProfile) -> dict[str, Any]:
    """What is kept and shown; `last_profile` reads it back."""
    return {
        "schema": SCHEMA,
        **asdict(profile),
        "cut": list(profile.cut),
        "fitness": profile.fitness.value,
        "verdict": profile.verdict,
    }


def refuse_unknown(digest: str, settings: Settings) -> Path:
    """Where the profile of a model lies. AnswerIsNo for one that says nothing that it could be known by again."""
    path = profile_path(settings, digest)
    if path is None:
        raise AnswerIsNo(
            "the model server says nothing of its model (GET /v1/models), so a profile could not be kept for it",
            remedy="see that its server answers that",
        )
    return path


def keep_profile(profile: ModelProfile, settings: Settings) -> None:
    """Write it. AnswerIsNo where it cannot be written."""
    path = refuse_unknown(profile.digest, settings)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
        write_through(path, (json.dumps(profile_json(profile), indent=1) + "\n").encode())
    except OSError as fault:
        raise AnswerIsNo(f"cannot keep the profile at {path}: {fault.strerror or fault}") from None


def last_profile(settings: Settings, digest: str) -> ModelProfile | None:
    """The profile of a model; None where there is none, or none that can be read."""
    path = profile_path(settings, digest)
    try:
        table = load(read_bounded(path, _MOST_BYTES)) if path is not None else None
        if not isinstance(table, dict) or table.get("schema") != SCHEMA or table.get("digest") != digest:
            return None
        known = {name: table[name] for name in ModelProfile.__dataclass_fields__}
        known |= {name: _share(known[name]) for name in ("calls", "stops", "reviews")}
        known |= {name: {str(k): _share(v) for k, v in known[name].items()} for name in ("skills", "edits")}
        known["dialects"] = {
            str(name): FormatCalls(well_formed=_share(one["well_formed"]), right=_share(one["right"]))
            for name, one in known["dialects"].items()
        }
        known["cut"] = tuple(map(str, known["cut"]))
        return ModelProfile(**known)
    except (FileNotFoundError, RecordDamaged, ValueError, KeyError, TypeError, AttributeError):
        return None


def _share(value: Any) -> Share:
    part, whole = value["part"], value["whole"]
    if type(part) is not int or type(whole) is not int or not 0 <= part <= whole:
        raise ValueError("not a share")
    return Share(part=part, whole=whole, missing=tuple(map(str, value["missing"])))
