"""Tests of the shipped products."""
