"""What a model may ask for. Each tool is described in a few words, checks what it is given, and acts on the copy."""
