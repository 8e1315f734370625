"""Which learned order a task uses: the one that `train` registered here, else the bundled one if it is switched on."""

from dataclasses import replace
from pathlib import Path

from localagent.app.settings import Settings
from localagent.repair.ordering.ranker import Ranker, load_ranker
from localagent.repair.ordering.weights import Weights, load_weights

REGISTERED = Path("ranker") / "ranker.json"  # below the data directory


def open_order(settings: Settings) -> tuple[Weights, Ranker | None]:
    """The order's weights and the learned order beside them, None where the hand's order stands alone.

    UsageFault where a file is wrong. A registered order is there because it was better; the bundled one counts for
    `learned` of `models/order.json`.
    """
    weights = load_weights(settings.models_dir / "order.json")
    own = load_ranker(settings.data_dir / REGISTERED)
    if own is not None:
        return replace(weights, learned=1.0), own
    bundled = load_ranker(settings.models_dir / "ranker.json") if weights.learned else None
    return weights, bundled
