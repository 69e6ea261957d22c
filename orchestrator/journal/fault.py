"""What a store raises.

::

    StoreError
    ├── StoreUnavailable   it cannot be opened, reached, or written at all; or another writer holds the session
    ├── StoreDamaged       it was read, and what it holds is not what was written
    ├── StoreVersion       it was written by a release with a newer layout
    ├── StoreFull          there is no room; what was written before is intact
    ├── LeaseLost          another writer took the session over; nothing was written after that
    ├── SessionUnknown     no session of that name is in the store
    └── SessionExists      a session of that name is in the store already

Each error keeps its fields in ``args`` as well, so that it can be copied and pickled.
"""

from __future__ import annotations

__all__ = (
    "LeaseLost",
    "SessionExists",
    "SessionUnknown",
    "StoreDamaged",
    "StoreError",
    "StoreFull",
    "StoreUnavailable",
    "StoreVersion",
)


class StoreError(Exception):
    """The root of everything a store raises about itself. Misuse by the caller is a ``ValueError`` instead."""


class StoreUnavailable(StoreError):
    """The store, or one session of it, cannot be used now: *fault* says why, *remedy* what changes that."""

    def __init__(self, place: str, fault: str, remedy: str) -> None:
        super().__init__(place, fault, remedy)
        self.place = place
        self.fault = fault
        self.remedy = remedy

    def __str__(self) -> str:
        """Place, fault, remedy."""
        return f"{self.place}: {self.fault}; {self.remedy}"


class StoreDamaged(StoreError):
    """Record *seq* of *place* is not what was written (0: the damage is in the file, not in one record)."""

    def __init__(self, place: str, seq: int, fault: str) -> None:
        super().__init__(place, seq, fault)
        self.place = place
        self.seq = seq
        self.fault = fault

    def __str__(self) -> str:
        """Place, record, fault, and what can still be done."""
        if not self.seq:
            return f"{self.place}: {self.fault}; restore the file from a copy, or choose another store"
        whole = self.seq - 1
        return (
            f"{self.place}, record {self.seq}: {self.fault}; nothing was skipped or changed. "
            f"Restore the file from a copy; records 1 to {whole} can still be read with limit={whole}"
            if whole
            else f"{self.place}, record 1: {self.fault}; nothing was skipped or changed. Restore the file from a copy"
        )


class StoreVersion(StoreError):
    """The store at *place* has layout *found*; this release knows layouts up to *known*."""

    def __init__(self, found: int, known: int, place: str) -> None:
        super().__init__(found, known, place)
        self.found = found
        self.known = known
        self.place = place

    def __str__(self) -> str:
        """Both versions and the remedy."""
        return (
            f"{self.place}: written by a newer release (layout {self.found}, this one knows up to {self.known}); "
            f"upgrade this installation, or choose another store"
        )


class StoreFull(StoreError):
    """There is no room left at *place*. Everything acknowledged before is intact and readable."""

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self.place = place

    def __str__(self) -> str:
        """Place, consequence, remedy."""
        return (
            f"{self.place}: no room left; what was acknowledged before is intact. Free space, then resume the session"
        )


class LeaseLost(StoreError):
    """Another writer took *session* over from the one that held *fence*; the late writes were not stored."""

    def __init__(self, session: str, fence: int) -> None:
        super().__init__(session, fence)
        self.session = session
        self.fence = fence

    def __str__(self) -> str:
        """Session, fence, remedy."""
        return (
            f"session {self.session} was taken over by another writer (this one held fence {self.fence}); "
            f"nothing was written after that: stop here and follow the session with read"
        )


class SessionUnknown(StoreError):
    """No session is called *session*; *close* holds at most three names that look like it."""

    def __init__(self, session: str, close: tuple[str, ...]) -> None:
        super().__init__(session, close)
        self.session = session
        self.close = close

    def __str__(self) -> str:
        """The name, and those that are close to it."""
        hint = f"did you mean {' or '.join(self.close)}?" if self.close else "list the sessions to see which there are"
        return f"no session {self.session!r} in this store; {hint}"


class SessionExists(StoreError):
    """A session called *session* was created before."""

    def __init__(self, session: str) -> None:
        super().__init__(session)
        self.session = session

    def __str__(self) -> str:
        """The name and the remedy."""
        return f"session {self.session!r} exists already; resume it, or choose another id"
