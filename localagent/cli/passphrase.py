"""The passphrase of the signing key, from a file or an open descriptor; never out of the command line."""

import argparse
import os
from pathlib import Path

from localagent.errors import UsageFault
from localagent.record.attest.keys import MOST_PASSPHRASE_BYTES, read_passphrase, right_passphrase

_MOST_BYTES = MOST_PASSPHRASE_BYTES + 1  # and a newline


def add_passphrase(parser: argparse.ArgumentParser) -> None:
    """`--passphrase-file FILE`, `--passphrase-fd N`."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--passphrase-file", type=Path, metavar="FILE", help="file with the key's passphrase (mode 0600)"
    )
    group.add_argument(
        "--passphrase-fd", type=int, metavar="N", help="file descriptor to read the key's passphrase from"
    )


def passphrase_of(args: argparse.Namespace) -> bytes:
    """The passphrase that was named, or nothing. UsageFault if it cannot be read or is empty."""
    if args.passphrase_file is not None:
        return read_passphrase(args.passphrase_file)
    if args.passphrase_fd is None:
        return b""
    parts: list[bytes] = []
    try:
        while sum(map(len, parts)) <= _MOST_BYTES and (part := os.read(args.passphrase_fd, _MOST_BYTES)):
            parts.append(part)
    except OSError as error:
        fault = f"--passphrase-fd: descriptor {args.passphrase_fd} cannot be read: {error.strerror or error}"
        raise UsageFault(fault) from error
    return right_passphrase(b"".join(parts), "--passphrase-fd")
