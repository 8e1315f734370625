"""The processes of the daemon: the service, its workers, the model host, the recorder."""
