"""Localization: tracebacks, spectrum and call distance, fused into one ranked list of statements."""
