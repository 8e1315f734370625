"""Where an installation's parts lie: for one user, or for the machine. Only names; nothing is made here."""

import os
import pwd
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


class Impossible(Exception):  # noqa: N818 - an answer, as in localagent.errors
    """It cannot be done here; the message says what, why and what to do."""


@dataclass(frozen=True)
class Place:
    """`prefix` holds the versions, `commands` the links in the user's path; `data` is what an uninstall keeps."""

    system: bool
    prefix: Path
    commands: Path
    data: tuple[Path, ...]

    @classmethod
    def of(cls, *, system: bool, prefix: Path | None, environ: Mapping[str, str]) -> "Place":
        """The usual places, or those below `prefix`. Impossible where they cannot be."""
        if system:
            if os.geteuid() != 0:
                raise Impossible("--system installs for the machine and needs root: sudo sh install --system ...")
            names = ("/var/lib/localagent", "/var/lib/localagent-audit", "/var/cache/localagent", "/etc/localagent")
            return cls(
                system=True,
                prefix=(prefix or Path("/opt/localagent")).absolute(),
                commands=Path("/usr/local/bin"),
                data=tuple(Path(name) for name in names),
            )
        home = Path(environ.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir)
        if not home.is_absolute():
            raise Impossible(f"HOME is {str(home)!r}, not an absolute path: set it, or install with --system")

        def xdg(name: str, default: str) -> Path:
            value = environ.get(name, "")
            return Path(value) if value.startswith("/") else home / default

        data = xdg("XDG_DATA_HOME", ".local/share")
        kept = (data, xdg("XDG_STATE_HOME", ".local/state"), xdg("XDG_CACHE_HOME", ".cache"))
        kept += (xdg("XDG_CONFIG_HOME", ".config"),)
        return cls(
            system=False,
            prefix=(prefix or data / "localagent-kit").absolute(),
            commands=home / ".local" / "bin",
            data=tuple(folder / "localagent" for folder in kept),
        )

    @property
    def versions(self) -> Path:
        """One folder a kit."""
        return self.prefix / "versions"

    @property
    def current(self) -> Path:
        """The one link whose switch is an installation, an upgrade or a rollback."""
        return self.prefix / "current"

    @property
    def key(self) -> Path:
        """The public key of the maker whose kits are taken."""
        return self.prefix / "maker.pub"
