"""The pages of the daemon for a browser on this machine."""
