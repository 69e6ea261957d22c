"""The journal's statements over one SQLite connection. Everything here blocks, and runs on the writer's thread.

Each method is one transaction: it happens wholly or not at all. The order of a session's records is their number.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import msgspec

from orchestrator.journal.fault import LeaseLost, SessionExists, SessionUnknown, StoreUnavailable
from orchestrator.journal.lease import LEASE_MS, Holder, Lease, is_alive, is_held
from orchestrator.journal.row import SessionRow, close_names
from orchestrator.journal.schema import transaction
from orchestrator.journal.tail import checksum, sound

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Collection, Mapping, Sequence

__all__ = ("Ledger",)

INSERT = "INSERT INTO records (session, seq, crc, data) VALUES (?, ?, ?, ?)"

INSERTS = {size: INSERT + ", (?, ?, ?, ?)" * (size - 1) for size in (256, 64, 16, 4, 1)}
"""By rows, the largest first: one statement for many rows hands the interpreter lock over once, not once a row."""

WRITE = "UPDATE sessions SET records = ?, updated_ms = ? WHERE key = ? AND fence = ? AND token = ?"

RENEW = "UPDATE sessions SET expires_ms = :expires_ms WHERE key = :key AND fence = :fence AND token = :token"

GIVE_BACK = """UPDATE sessions SET status = coalesce(:status, status), token = NULL
    WHERE key = :key AND fence = :fence AND token = :token"""

TAKE = """UPDATE sessions SET status = 'open', records = :last, fence = :fence, token = :token, host = :host,
    pid = :pid, started = :started, expires_ms = :expires_ms WHERE key = :key"""


class Ledger:
    """One connection, in the name of one *holder*. *clock_ms* is the wall clock; *place* names the file in errors."""

    def __init__(self, db: sqlite3.Connection, place: str, holder: Holder, clock_ms: Callable[[], int]) -> None:
        self.db = db
        self.place = place
        self.holder = holder
        self.clock_ms = clock_ms
        self.given_back: dict[str, Lease] = {}

    def create(self, session: str, title: str, labels: Mapping[str, str]) -> Lease:
        """Add an empty session and take it.

        :raises SessionExists: the id is taken.
        """
        now = self.clock_ms()
        text = msgspec.json.encode(sorted(labels.items())).decode()
        with transaction(self.db):
            if self.db.execute("SELECT 1 FROM sessions WHERE id = ?", (session,)).fetchone():
                raise SessionExists(session)
            key = self.db.execute(
                "INSERT INTO sessions (id, title, labels, status, created_ms, updated_ms, records, fence)"
                " VALUES (?, ?, ?, 'open', ?, ?, 0, 0)",
                (session, title, text, now, now),
            ).lastrowid
            lease = Lease(key or 0, session, 1, secrets.token_hex(8), 0)
            sign(self, lease)
        return lease

    def take(self, session: str) -> tuple[Lease, tuple[bytes, ...]]:
        """Take an existing session: its records, after a torn last one was removed.

        :raises SessionUnknown: there is no such session.
        :raises StoreUnavailable: another writer holds it.
        :raises StoreDamaged: a record before the last is damaged or missing.
        """
        with transaction(self.db):
            key, last = find(self.db, session)
            refuse_if_held(self, key, session)
            records, dropped = self.rows(key, session, 0, last, last)
            if dropped:
                self.db.execute("DELETE FROM records WHERE session = ? AND seq = ?", (key, dropped))
            (fence,) = self.db.execute("SELECT fence + 1 FROM sessions WHERE key = ?", (key,)).fetchone()
            lease = Lease(key, session, fence, secrets.token_hex(8), len(records), dropped)
            sign(self, lease)
        return lease, records

    def read(self, session: str, after: int, limit: int | None) -> tuple[bytes, ...]:
        """At most *limit* records after *after*, as of one moment.

        :raises SessionUnknown: there is no such session.
        :raises StoreDamaged: a wanted record before the last is damaged or missing.
        """
        after = max(after, 0)
        with transaction(self.db, "DEFERRED"):
            key, last = find(self.db, session)
            reach = last if limit is None else min(last, after + max(limit, 0))
            return self.rows(key, session, after, reach, last)[0]

    def sessions(self) -> tuple[SessionRow, ...]:
        """Every session, in the order of creation."""
        found = self.db.execute(
            "SELECT id, title, labels, status, created_ms, updated_ms, records FROM sessions ORDER BY key"
        ).fetchall()
        pairs = tuple[tuple[str, str], ...]
        return tuple(
            SessionRow(id_, title, msgspec.json.decode(labels, type=pairs), *rest)
            for id_, title, labels, *rest in found
        )

    def write(self, groups: Sequence[tuple[Lease, Sequence[tuple[int, bytes]]]]) -> tuple[Lease, ...]:
        """Store all the records in one transaction, but those of leases that no longer stand: these are returned."""
        now = self.clock_ms()
        lost: list[Lease] = []
        rows: list[int | bytes] = []
        with transaction(self.db):
            for lease, entries in groups:
                values = (entries[-1][0], now, lease.key, lease.fence, lease.token)
                # The fence is looked at inside the transaction that writes: a stale writer can never slip in between.
                if not self.db.execute(WRITE, values).rowcount:
                    lost.append(lease)
                    continue
                for seq, data in entries:
                    rows += (lease.key, seq, checksum(lease.session, seq, data), data)
            insert(self.db, rows)
        return tuple(lost)

    def renew(self, leases: Collection[Lease]) -> tuple[Lease, ...]:
        """Move the expiry of *leases* on; those that no longer stand are returned.

        Leases whose giving back could not be recorded at the time are given back now.
        """
        if not (leases or self.given_back):
            return ()
        expires = self.clock_ms() + LEASE_MS
        with transaction(self.db):
            for late in self.given_back.values():
                self.db.execute(GIVE_BACK, terms(late) | {"status": None})
            lost = tuple(
                lease for lease in leases if not self.db.execute(RENEW, terms(lease) | {"expires_ms": expires}).rowcount
            )
        self.given_back.clear()
        return lost

    def give_back(self, lease: Lease, status: str | None) -> None:
        """End *lease*; *status* None leaves the session's status as it is.

        :raises LeaseLost: it was another's already, and nothing was changed.
        """
        self.given_back[lease.token] = lease
        with transaction(self.db):
            changed = self.db.execute(GIVE_BACK, terms(lease) | {"status": status}).rowcount
        del self.given_back[lease.token]
        if not changed:
            raise LeaseLost(lease.session, lease.fence)

    def close(self) -> None:
        """Let go of the file."""
        self.db.close()

    def rows(self, key: int, session: str, after: int, reach: int, last: int) -> tuple[tuple[bytes, ...], int]:
        """The sound records after *after* up to *reach*, and the seq of a torn last one (0: none)."""
        query = "SELECT seq, crc, data FROM records WHERE session = ? AND seq > ? AND seq <= ? ORDER BY seq"
        found = self.db.execute(query, (key, after, reach)).fetchall()  # a half-read cursor would keep the moment open
        return sound(found, place=self.place, session=session, after=after, reach=reach, last=last)


def find(db: sqlite3.Connection, session: str) -> tuple[int, int]:
    """The key of *session*, and the number of its last record.

    :raises SessionUnknown: there is no such session.
    """
    row = db.execute("SELECT key, records FROM sessions WHERE id = ?", (session,)).fetchone()
    if row is None:
        known: Collection[str] = [name for (name,) in db.execute("SELECT id FROM sessions ORDER BY key")]
        raise SessionUnknown(session, close_names(session, known))
    key, counted = row
    (stored,) = db.execute("SELECT coalesce(max(seq), 0) FROM records WHERE session = ?", (key,)).fetchone()
    return key, max(counted, stored)


def refuse_if_held(ledger: Ledger, key: int, session: str) -> None:
    """Raise if the lease of *session* stands.

    :raises StoreUnavailable: it does; the error names the process.
    """
    query = "SELECT token, host, pid, started, expires_ms FROM sessions WHERE key = ?"
    token, host, pid, started, expires_ms = ledger.db.execute(query, (key,)).fetchone()
    if token is None or token in ledger.given_back:
        return
    alive = is_alive(Holder(host, pid, started), ledger.holder)
    now = ledger.clock_ms()
    if is_held(alive=alive, expires_ms=expires_ms, now_ms=now):
        where = "" if alive else " of another host"
        wait = "stop it or wait" if alive else f"stop it or wait: its lease ends in {(expires_ms - now) / 1000:.0f} s"
        raise StoreUnavailable(ledger.place, f"session {session} is open in process {pid}{where}", wait)


def sign(ledger: Ledger, lease: Lease) -> None:
    """Put this process down as the holder of *lease*."""
    ledger.db.execute(
        TAKE,
        terms(lease)
        | {
            "last": lease.last,
            "host": ledger.holder.host,
            "pid": ledger.holder.pid,
            "started": ledger.holder.started,
            "expires_ms": ledger.clock_ms() + LEASE_MS,
        },
    )


def insert(db: sqlite3.Connection, values: list[int | bytes]) -> None:
    """Insert the records whose four values each follow one another in *values*."""
    at = 0
    for size, statement in INSERTS.items():
        while len(values) - at >= 4 * size:
            db.execute(statement, values[at : at + 4 * size])
            at += 4 * size


def terms(lease: Lease) -> dict[str, int | str | None]:
    """What identifies *lease* in a statement."""
    return {"key": lease.key, "fence": lease.fence, "token": lease.token}
