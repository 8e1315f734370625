"""The database of the daemon: tasks, leases, blobs, approvals, retention."""
