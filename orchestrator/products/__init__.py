"""Shipped products, one folder each."""
