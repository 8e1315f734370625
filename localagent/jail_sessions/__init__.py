"""Jails that stay open between commands (`jail run --keep`): the session, its supervisor, and the socket between."""
