"""Which ways of writing a task uses: those that are named, those that a manifest of an earlier version names."""

import pytest

from localagent.app.fix.edit_writers import NAMES, known_ways, measured_ways
from localagent.errors import UsageFault


def test_each_way_is_used_once() -> None:
    assert NAMES == ("span", "search", "function")
    assert known_ways(["function", "span", "function"]) == ("function", "span")


def test_every_fault_is_named_and_a_removed_way_names_its_successor() -> None:
    with pytest.raises(UsageFault) as fault:
        known_ways(["line", "magic", "span"])
    told = str(fault.value)
    assert "'line' was removed: use `search`" in told
    assert "no way of writing is called 'magic' (known: span, search, function)" in told


def test_a_manifest_of_an_earlier_version_falls_back_to_span_search() -> None:
    assert measured_ways(["skeleton"]) == ("span",)
    assert measured_ways(["span", "fim"]) == ("span",)
    assert measured_ways(["function"]) == ("function",)
