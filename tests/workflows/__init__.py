"""Tests of workflow files, plans, and the engine."""
