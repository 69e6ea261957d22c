"""Explaining, auditing, selecting and discovering: tests of the catalog."""
