"""The journal: records, their fold, and the stores that keep them."""
