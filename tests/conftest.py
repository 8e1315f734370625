"""Shared by all test rooms: makes this folder importable (builders of test inputs live here).

Laws are tried on the same examples in every ordinary run, so that a commit is green or not whoever runs it;
`make test-laws` draws new ones. No example has a deadline: a busy machine is no fault.
"""

import os

from hypothesis import settings

settings.register_profile("ordinary", derandomize=True, deadline=None)
settings.register_profile("explore", print_blob=True, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ordinary"))
