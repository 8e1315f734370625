"""Composition root: the only place that builds concrete parts from settings."""

from localagent.app.settings import Settings, data_root

__all__ = ["Settings", "data_root"]
