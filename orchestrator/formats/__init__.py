"""Files that people write agents in, read into definitions."""
