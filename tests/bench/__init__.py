"""The benchmark behind ``scripts/bench``: the same work done by a bare asyncio actor and by this library."""
