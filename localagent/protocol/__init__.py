"""What clients and the daemon say to each other over its Unix socket: orders, snapshots, states; the HTTP client."""
