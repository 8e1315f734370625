"""Reading Python: scopes, names, symbols, constants, literals. Runs nothing."""
