"""Command line: one verb, one module, one int. Only `render` prints."""
