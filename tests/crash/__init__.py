"""Crashes: real processes that are killed, and sessions cut off after each record."""
