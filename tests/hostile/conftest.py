"""What the hostile tests share."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A folder that a jail's uid can pass: pytest keeps its own to their owner."""
    with tempfile.TemporaryDirectory(prefix="la-attacks-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)
