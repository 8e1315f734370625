"""Reports for people and programs: text, JSON, SARIF in and out. Pure."""
