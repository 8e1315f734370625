"""A confidence in short, as lists tell it and go by it. Takes the JSON of reports; older ones have none."""

import math
from collections.abc import Mapping
from typing import Any

Told = Mapping[str, Any]


def short(told: Told | None) -> dict[str, Any] | None:
    """Without the words and the signals; null where it is not known."""
    return None if told is None else {name: told[name] for name in ("probability", "calibrated", "model")}


def best_confidence(report: Told) -> dict[str, Any] | None:
    """That of the accepted patch, else of the likeliest proposal."""
    every = (report.get("confidence"), *(p.get("confidence") for p in report.get("proposals", ())))
    return short(min((told for told in every if told is not None), key=likeliest_first, default=None))


def likeliest_first(told: Told | None) -> float:
    """A key to sort by: the highest probability first, what is not known last."""
    return 1.0 if told is None else -float(told["probability"])


def confidence_figure(told: Told | None) -> str:
    """For a table; in brackets where it was not calibrated for the model of the search."""
    if told is None:
        return ""
    figure = shown_probability(told["probability"])
    return figure if told["calibrated"] else f"({figure})"


def shown_probability(probability: float) -> str:
    """Two digits, never rounded up: what is below a bar does not look as if it reached it."""
    return f"{math.floor(probability * 100 + 1e-9) / 100:.2f}"


def confidence_line(told: Told) -> str:
    """In words, with what the number rests on."""
    figure = shown_probability(told["probability"])
    return f"confidence {figure}{'' if told['calibrated'] else ', not calibrated for this search'}"
