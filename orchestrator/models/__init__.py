"""Models: what answers an actor's requests."""
