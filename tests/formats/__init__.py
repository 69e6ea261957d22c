"""Tests of the files that people write agents in."""
