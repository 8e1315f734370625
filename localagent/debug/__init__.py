"""From a symptom to its cause: tracebacks read and mapped, explanations from facts, traced runs, experiments."""
