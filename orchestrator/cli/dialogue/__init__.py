"""A conversation at a terminal or from a pipe: what is typed, shown and asked. The command itself is `cli/chat.py`."""
