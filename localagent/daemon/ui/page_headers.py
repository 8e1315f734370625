"""What goes along with every web page, and how it is renewed.

There is no script, no inline style and nothing from elsewhere, and the policy that is sent along forbids all three, so
that a fault in a page would still run nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass

POLICY = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
HEADERS: Mapping[str, str] = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "content-security-policy": POLICY,
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "x-frame-options": "DENY",
}
ROOT = "/ui/"


@dataclass(frozen=True, kw_only=True, slots=True)
class Renewal:
    """After how many seconds a page is renewed, 0 for never, and the link that changes it."""

    seconds: int
    link: str


def span(seconds: float) -> str:
    """Seconds for people."""
    if seconds < 100:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
