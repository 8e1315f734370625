"""What happened, kept: the store of past tasks, the journal, the report. Runs nothing and reads no repository."""
