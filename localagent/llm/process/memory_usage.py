"""How much memory this process took."""

import resource


def resident_bytes() -> int:
    """The most that was resident at once, so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
