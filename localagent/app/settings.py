"""Settings: every place outside a repository. With the rest of `app` and `cli` the only reader of the environment."""

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from localagent.record.state_schema import live

SYSTEM_DIR = Path("/etc/localagent")
PACKAGE = Path(__file__).resolve().parent.parent


def data_root() -> Path:
    """Where `models/`, `policies/`, `sandbox/`, `systemd/` lie: in a wheel below `_data/`, else beside the package."""
    packed = PACKAGE / "_data"
    return packed if packed.is_dir() else PACKAGE.parent


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """Every place localagent reads or writes outside a repository.

    `state_dir` holds tasks (journal, report, patch, undo); `data_dir` registered models; `cache_dir` what may be
    deleted; `scratch_dir` throw-away workspaces, reachable for an unprivileged uid; `runtime_dir` the socket of kept
    sessions, there while sessions are. `credentials_dir` is where systemd hands over secrets, `passphrase_file` what
    the user named for the signing key; None where there is none. `gpu_layers` is how many layers of a model go to a GPU
    where a command does not say it (`auto`, a number, or "" for none). `chat_model`, `review_model`, `roles` and
    `trust` are what `do` and `chat` take where they are not told ("": nothing). `recorder` is the descriptor of a line
    to the process that writes the audit journal, for a process that does not write it itself.

    `system_dir` holds what the machine's owner says (`policy.d/`, `policies/`), and belongs to `system_owner`. Neither
    is read from the environment: whoever runs localagent could leave the owner's rules by setting a variable. Tests
    give other values.
    """

    state_dir: Path
    data_dir: Path
    cache_dir: Path
    scratch_dir: Path
    models_dir: Path
    policies_dir: Path
    sandbox_dir: Path
    runtime_dir: Path
    system_dir: Path = field(default_factory=lambda: SYSTEM_DIR)
    system_owner: int = 0
    credentials_dir: Path | None = None
    passphrase_file: Path | None = None
    recorder: int | None = None
    gpu_layers: str = ""
    chat_model: str = ""
    review_model: str = ""
    roles: str = ""
    trust: str = ""

    @classmethod
    def from_environ(cls, environ: Mapping[str, str] | None = None) -> "Settings":
        """XDG directories (XDG_STATE_HOME, XDG_DATA_HOME, XDG_CACHE_HOME), TMPDIR for scratch.

        CREDENTIALS_DIRECTORY (systemd's) and LOCALAGENT_PASSPHRASE_FILE for the signing key, LOCALAGENT_GPU_LAYERS,
        LOCALAGENT_CHAT_MODEL, LOCALAGENT_REVIEW_MODEL, LOCALAGENT_ROLES, LOCALAGENT_TRUST.
        """
        env = os.environ if environ is None else environ
        home = Path(env.get("HOME") or "~").expanduser()

        def xdg(name: str, default: str) -> Path:
            value = env.get(name, "")
            base = Path(value) if value.startswith("/") else home / default
            return base / "localagent"

        root = data_root()
        runtime = env.get("XDG_RUNTIME_DIR", "")
        credentials, passphrase = env.get("CREDENTIALS_DIRECTORY", ""), env.get("LOCALAGENT_PASSPHRASE_FILE", "")
        state_dir = live(xdg("XDG_STATE_HOME", ".local/state"))
        return cls(
            state_dir=state_dir,
            data_dir=xdg("XDG_DATA_HOME", ".local/share"),
            cache_dir=xdg("XDG_CACHE_HOME", ".cache"),
            scratch_dir=Path(env.get("TMPDIR") or tempfile.gettempdir()),
            models_dir=root / "models",
            policies_dir=root / "policies",
            sandbox_dir=root / "sandbox",
            runtime_dir=Path(runtime) / "localagent" if runtime.startswith("/") else state_dir / "run",
            credentials_dir=Path(credentials) if credentials.startswith("/") else None,
            passphrase_file=Path(passphrase) if passphrase else None,
            gpu_layers=env.get("LOCALAGENT_GPU_LAYERS", ""),
            chat_model=env.get("LOCALAGENT_CHAT_MODEL", ""),
            review_model=env.get("LOCALAGENT_REVIEW_MODEL", ""),
            roles=env.get("LOCALAGENT_ROLES", ""),
            trust=env.get("LOCALAGENT_TRUST", ""),
        )
