"""Evidence of past tasks: attestations, integrity, redaction, git notes."""
