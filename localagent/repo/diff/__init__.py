"""Unified diffs: parsed, written, reversed, applied in memory."""
