"""`localagent bisect`: wiring."""
