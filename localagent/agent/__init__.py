"""From an instruction to a proven patch: the loop, its tools and what they may do."""
