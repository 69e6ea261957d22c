"""Workflow files and the plans they become."""
