"""What ran inside a jail: system calls and attempts to reach a network."""
