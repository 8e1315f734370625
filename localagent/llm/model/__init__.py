"""Model files: GGUF, manifest, registry, adapters, memory and threads they need."""
