"""How busy the machine is, as the kernel counts it for this process."""

from pathlib import Path


def slowdown(most: float) -> float:
    """How many times longer than on a free machine the main thread took so far: 1 to `most`."""
    try:
        ran, waited = Path("/proc/self/schedstat").read_text().split()[:2]
    except (OSError, ValueError):  # a kernel that does not count
        return 1.0
    return min(most, 1.0 + int(waited) / max(1, int(ran)))
