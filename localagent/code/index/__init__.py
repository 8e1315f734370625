"""The index over a repository's text: chunks of files by digest in SQLite (FTS5), and the ranking of what is found."""
