"""The product ``support-desk``."""
