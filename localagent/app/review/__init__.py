"""`gate`, `verify` and `approve`: patches that somebody else wrote."""
