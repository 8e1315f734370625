"""The daemon: a queue of tasks in SQLite, an HTTP front on a Unix socket, one worker process a task."""
