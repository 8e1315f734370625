"""Explanations and dossiers of failures: what the verbs `explain` and `debug` ask for."""
