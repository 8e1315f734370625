"""Learning inside the wall: what a repository's own history, and bugs put into its code, teach the order."""
