"""Rules on changes that answer the visible tests instead of the question."""
