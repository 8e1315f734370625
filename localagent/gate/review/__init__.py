"""Rules on what a change means: checks that go, conditions that widen, hidden triggers. All of them ask a person."""
