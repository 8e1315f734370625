"""A kept session lives in a jail of the backend that was asked for, and tells another one no."""

from collections.abc import Iterator

import pytest
from support.jail_backends import KINDS, jail_by
from support.session_builder import Kept, kept

from localagent.errors import UsageFault
from localagent.jail.api import BackendKind
from localagent.jail_sessions.supervisor_messages import order_of, pack_order


@pytest.fixture(scope="module")
def place() -> Iterator[Kept]:
    with kept() as made:
        yield made


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_a_session_has_the_backend_that_its_first_step_named(place: Kept, kind: BackendKind) -> None:
    jail_by(kind)
    name = f"of-{kind}"
    first = place.step("x = 6", name=name, backend=str(kind))
    assert first.backend.split(" ")[0] == kind
    again = place.step("x * 7", name=name)
    assert (again.stdout, again.backend) == ("42\n", first.backend)
    assert place.step("x", name=name, backend=str(kind)).stdout == "6\n"
    other = next(one for one in BackendKind if one is not kind)
    with pytest.raises(UsageFault, match=f"lives in a jail of {kind}: its first step decides"):
        place.step("x", name=name, backend=str(other))
    assert place.step("x", name=name).stdout == "6\n"


def test_what_is_no_backend_is_refused(place: Kept) -> None:
    with pytest.raises(UsageFault, match="'docker' is no backend"):
        place.step("1", name="no", backend="docker")


def test_a_policy_that_denies_the_jail_of_a_package_takes_no_session_begun_without_it(place: Kept) -> None:
    place.step("1", name="free")
    with pytest.raises(UsageFault, match="was started where the policy allows a Python package's jail"):
        place.step("1", name="free", third_party=False)
    assert not order_of(pack_order(place.order("1", third_party=False))).third_party
