"""`model`: benchmarks, memory, tuning."""
