"""From a command line to a running jail: spawner, init, Landlock, seccomp, watchdog."""
