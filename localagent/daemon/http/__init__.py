"""The HTTP side of the daemon: who may ask what, and the handlers of its requests."""
