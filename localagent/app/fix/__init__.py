"""`fix`: from the request to the outcome."""
