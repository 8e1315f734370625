"""Escaping, redaction of secrets, confusable letters, strict JSON. Pure."""
