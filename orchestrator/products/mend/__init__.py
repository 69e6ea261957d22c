"""The product ``mend``."""
