"""Instructions: builds the agent's parts, runs a session, proves what comes of it, keeps it."""
