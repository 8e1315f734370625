"""Rules on changes of tests: deleted, skipped, weakened, mocked."""
