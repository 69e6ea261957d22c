"""Supervision: restarts, children, stops, and what is left afterwards."""
