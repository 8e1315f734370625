"""What verbs on the command line use to ask a daemon."""
