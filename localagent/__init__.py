"""localagent: an air-gapped coding agent that repairs Python repositories and proves every change."""

__version__ = "0.1.0"
