"""The supervisor of kept sessions: a process of the user's that outlives the command line and holds their jails."""
