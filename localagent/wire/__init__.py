"""What front ends and the supervisor of kept sessions say to each other, and the socket they say it over."""
