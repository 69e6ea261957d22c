"""The model wire: one file a dialect over one HTTP client."""
