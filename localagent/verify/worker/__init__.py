"""The worker processes in jails, and what is said to them."""
