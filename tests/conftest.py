"""Shared by all tests: makes this folder importable (`support` builds inputs of tests).

Laws are tried on the same examples in every ordinary run, so that a commit is green or not whoever runs it;
`make test-laws` draws new ones. No example has a deadline: a busy machine is no fault. What is the user's own (state,
data, configuration) is not written to, and a session that does fails: `users_own`.
"""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings
from support import users_own

settings.register_profile("ordinary", derandomize=True, deadline=None)
settings.register_profile("explore", print_blob=True, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ordinary"))
users_own.set_apart()  # before any test file is imported: some open their settings there


@pytest.fixture(autouse=True)
def _nothing_of_the_users_own() -> Iterator[None]:
    """The test that touched it is the one that fails."""
    before = len(users_own.touched)
    yield
    assert users_own.touched[before:] == []


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Also where it happened outside a test: while files were imported, or in a fixture of the session."""
    if users_own.touched:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        print("\nof the user's own was touched:", *users_own.touched[:20], sep="\n  ")  # noqa: T201
