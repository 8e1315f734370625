"""The search: expansion, frontier, beam, rounds."""
