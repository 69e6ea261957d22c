"""Guarded roots: every path given by a model is opened beneath one directory, or refused."""
