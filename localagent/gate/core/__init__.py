"""What a rule is, how a chain of gates is asked, and what a gate is given."""
