"""The desk's small database: customers, invoices, refunds, mails. Blocking; the tools hop to a thread.

Money is whole cents. A refund is booked once for its key, and never for more than what is left of its invoice: the
database holds these rules itself, whoever calls.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["Desk", "NotBooked"]

NAME = "support.db"
SCHEMA = """
CREATE TABLE customer (id TEXT PRIMARY KEY, name TEXT NOT NULL, mail TEXT NOT NULL);
CREATE TABLE invoice (
    id TEXT PRIMARY KEY, customer TEXT NOT NULL REFERENCES customer, cents INTEGER NOT NULL CHECK (cents > 0),
    what TEXT NOT NULL
);
CREATE TABLE refund (
    key TEXT PRIMARY KEY, invoice TEXT NOT NULL REFERENCES invoice, cents INTEGER NOT NULL CHECK (cents > 0),
    by TEXT NOT NULL
);
CREATE TABLE mail (id INTEGER PRIMARY KEY, customer TEXT NOT NULL REFERENCES customer, text TEXT NOT NULL);
INSERT INTO customer VALUES ('c-17', 'Ada Byron', 'ada@example.org'), ('c-18', 'Emil Post', 'emil@example.org');
INSERT INTO invoice VALUES
    ('i-301', 'c-17', 2500, 'Annual plan'), ('i-302', 'c-17', 1000, 'Extra seat'), ('i-303', 'c-18', 4999, 'Team plan');
"""


class NotBooked(Exception):
    """The database did not take a refund; the text says why."""


class Desk:
    """The database in the folder *root*; it is made, with a few customers in it, when it is not there."""

    def __init__(self, root: Path) -> None:
        self._path = root / NAME

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._path, isolation_level=None, timeout=5.0)) as connection:
            connection.row_factory = sqlite3.Row
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("BEGIN IMMEDIATE")
            try:
                if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'customer'").fetchone():
                    for statement in SCHEMA.split(";\n"):
                        connection.execute(statement)
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                connection.execute("ROLLBACK")
                raise

    def rows(self, query: str, *values: object) -> list[dict[str, Any]]:
        """Return the rows of *query* as plain data."""
        with self._open() as connection:
            return [dict(row) for row in connection.execute(query, values)]

    def refund(self, key: str, account: str, invoice: str, cents: int, by: str) -> str:
        """Book a refund once for *key*; return what was done. Raises `NotBooked`."""
        with self._open() as connection:
            known = connection.execute("SELECT invoice, cents FROM refund WHERE key = ?", (key,)).fetchone()
            if known is not None and (known["invoice"], known["cents"]) != (invoice, cents):
                text = f"the key {key} has another refund already"
                raise NotBooked(text)
            if known is not None:
                return f"refund {key} was booked before"
            row = connection.execute("SELECT customer, cents FROM invoice WHERE id = ?", (invoice,)).fetchone()
            if row is None or row["customer"] != account:
                text = f"account {account} has no invoice {invoice}"
                raise NotBooked(text)
            if cents < 1:
                text = "a refund is of more than 0.00"
                raise NotBooked(text)
            query = "SELECT COALESCE(SUM(cents), 0) FROM refund WHERE invoice = ?"
            left = row["cents"] - connection.execute(query, (invoice,)).fetchone()[0]
            if cents > left:
                text = f"invoice {invoice} has {left / 100:.2f} left to refund, not {cents / 100:.2f}"
                raise NotBooked(text)
            connection.execute("INSERT INTO refund VALUES (?, ?, ?, ?)", (key, invoice, cents, by))
        return f"refunded {cents / 100:.2f} on invoice {invoice}"

    def send(self, account: str, text: str) -> bool:
        """Put a mail to a customer into the outbox; tell whether there is such a customer."""
        with self._open() as connection:
            if not connection.execute("SELECT 1 FROM customer WHERE id = ?", (account,)).fetchone():
                return False
            connection.execute("INSERT INTO mail (customer, text) VALUES (?, ?)", (account, text))
        return True
