"""What speaks for and against a plausible patch, read from its two syntax trees alone."""
