"""Rules on dangerous calls by resolved name, bandit, swallowed exceptions."""
