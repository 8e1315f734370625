"""Rules on texts in a change: secrets, trojan source, prompt injection, shell payloads, suppressions of tools."""
