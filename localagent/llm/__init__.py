"""The language model: registry, bounded GGUF reader, and a confined child in which llama.cpp scores edits.

The parent process never loads llama.cpp; only `engine` (used by the child) does.
"""
