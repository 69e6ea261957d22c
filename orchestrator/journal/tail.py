"""Pure: which of the stored rows are the records that were written.

Each row carries a checksum over its session, its seq and its bytes, so that a cut, padded, glued or misplaced record
shows. The *last* record of a log may be torn or missing: it was being written, and is dropped. Anything wrong before
that is damage, and is reported with its place.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from orchestrator.journal.fault import StoreDamaged

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ("checksum", "sound")


def checksum(session: str, seq: int, data: bytes) -> int:
    """The CRC-32 of one record in its place."""
    return zlib.crc32(data, zlib.crc32(b"%d " % seq + session.encode()))


def sound(
    rows: Iterable[tuple[int, int, object]], *, place: str, session: str, after: int, reach: int, last: int
) -> tuple[tuple[bytes, ...], int]:
    """The records of *rows* (seq, checksum, data; ascending) that follow *after*, and the seq dropped (0: none).

    *last* is the number of the session's last record, *reach* that of the last one asked for.

    :raises StoreDamaged: a record before the last is damaged or missing.
    """
    where = f"{place}, session {session}"
    records: list[bytes] = []
    seq = after
    for found, crc, data in rows:
        seq += 1
        if found != seq:
            raise StoreDamaged(where, seq, f"it is missing (the next one found is {found})")
        if isinstance(data, bytes) and checksum(session, seq, data) == crc:
            records.append(data)
        elif seq == last:
            return tuple(records), seq
        else:
            raise StoreDamaged(where, seq, "its bytes do not match its checksum")
    if seq >= reach:
        return tuple(records), 0
    if seq == last - 1:
        return tuple(records), last
    raise StoreDamaged(where, seq + 1, f"it is missing, and so is all up to {reach}")
