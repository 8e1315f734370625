"""What was measured of a model, and the record of it below the user's models, named by the model's digest.

A record counts on the machine it was made on, and only as far as it can be read whole.
"""

import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from localagent.app.models.repairs import Repairs
from localagent.app.settings import Settings
from localagent.domain.edit import SPAN
from localagent.errors import AnswerIsNo
from localagent.fs.atomic_files import write_through
from localagent.llm.model.quantized_store import machine

SCHEMA = 2
_MAX_BYTES = 4 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class WayYield:
    """What came of one way of writing: different replies, those that were edits, bugs whose repair was one."""

    bugs: int
    replies: int
    valid: int
    exact: int
    tokens: int
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelMeasurement:
    """What was measured of one model on one machine. `ranks` and `plain` are of the right edit, with and without it.

    `repairs` is None where whole repairs were not asked for.
    """

    name: str
    sha256: str
    machine: str
    threads: int
    ranks: tuple[int, ...]
    plain: tuple[int, ...]
    edits: int
    tokens_per_second: float
    tokens_per_cpu_second: float
    load_seconds: float
    resident_bytes: int
    ways: dict[str, WayYield] = field(default_factory=dict)
    repairs: Repairs | None = None

    @property
    def median(self) -> float:
        """Median rank of the right edit."""
        return statistics.median(self.ranks)

    @property
    def best(self) -> str:
        """The way that wrote most exact repairs; span search where none is better."""
        spans = self.ways[SPAN].exact if SPAN in self.ways else 0
        better = [(w.exact, w.valid / max(1, w.replies), name) for name, w in self.ways.items() if w.exact > spans]
        return max(better)[2] if better else SPAN


def share(ranks: Sequence[int], most: int) -> float:
    """How much of some ranks is at most so much."""
    return sum(rank <= most for rank in ranks) / max(1, len(ranks))


def record_path(settings: Settings, sha256: str) -> Path:
    """Where the last measurement of a model lies."""
    return settings.data_dir / "models" / "bench" / f"{sha256}.json"


def keep(found: ModelMeasurement, settings: Settings) -> None:
    """Write the record. AnswerIsNo where it cannot be written."""
    path = record_path(settings, found.sha256)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
        write_through(path, (json.dumps(as_json(found), indent=1, sort_keys=True) + "\n").encode())
    except OSError as fault:
        raise AnswerIsNo(f"cannot keep the measurement at {path}: {fault.strerror or fault}") from None


def as_json(found: ModelMeasurement) -> dict[str, Any]:
    """What is kept and shown; `last_bench` reads it back."""
    return {"schema": SCHEMA, **asdict(found)}


def last_bench(settings: Settings, sha256: str) -> ModelMeasurement | None:
    """The last measurement of a model on this machine; None where there is none that can be read."""
    try:
        with record_path(settings, sha256).open("rb") as stream:
            table = json.loads(stream.read(_MAX_BYTES))
        if not isinstance(table, dict) or table.pop("schema", None) != SCHEMA:
            return None
        ways = {str(name): WayYield(**way) for name, way in table.pop("ways").items()}
        numbers = [float(table[name]) for name in ("tokens_per_second", "load_seconds", "resident_bytes", "edits")]
        ranks, plain = (tuple(int(rank) for rank in table.pop(name)) for name in ("ranks", "plain"))
        told = table.pop("repairs")
        repairs = Repairs(**told) if told is not None else None
        found = ModelMeasurement(**table, ranks=ranks, plain=plain, ways=ways, repairs=repairs)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    sound = ranks and len(ranks) == len(plain) and all(map(math.isfinite, numbers))
    return found if sound and found.sha256 == sha256 and found.machine == machine() else None
