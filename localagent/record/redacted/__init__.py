"""Documents of ours with every text left out that could be one of a repository; what they may keep, field by field."""
