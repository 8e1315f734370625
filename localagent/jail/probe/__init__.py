"""Which sandbox programs are there, which of them hold, and why others do not."""
