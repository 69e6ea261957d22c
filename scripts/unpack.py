"""Unpack a source distribution without trusting it: ``python unpack.py ARCHIVE TOP DESTINATION``.

Only plain files and folders beneath the one folder TOP are written, with ordinary modes. A link, a device, an absolute
name, or a name that climbs out stops the run before anything is written. DESTINATION must not exist; it appears only
when everything is in it. Exit 2 with one line when the archive is refused.
"""

from __future__ import annotations

import shutil
import sys
import tarfile
import tempfile
from pathlib import Path, PurePosixPath

MAX_BYTES = 50_000_000


def checked(members: list[tarfile.TarInfo], top: str) -> list[tarfile.TarInfo]:
    """Return the plain files of *members*; raise ValueError naming the first one that may not be unpacked."""
    for member in members:
        parts = PurePosixPath(member.name).parts
        if not parts or parts[0] != top or ".." in parts or "\\" in member.name:
            fault = f"{member.name!r} is not beneath {top}/"
            raise ValueError(fault)
        if not (member.isreg() or member.isdir()):
            fault = f"{member.name!r} is neither a file nor a folder"
            raise ValueError(fault)
    if sum(member.size for member in members) > MAX_BYTES:
        fault = f"more than {MAX_BYTES} bytes"
        raise ValueError(fault)
    return [member for member in members if member.isreg()]


def unpack(archive: Path, top: str, destination: Path) -> int:
    """Write the files of *archive* to *destination* and return how many; on any error *destination* is absent."""
    destination.parent.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(dir=destination.parent) as scratch,
        tarfile.open(archive, "r:gz") as tar,
    ):
        files = checked(tar.getmembers(), top)
        for member in files:
            source = tar.extractfile(member)
            if source is None:
                fault = f"{member.name!r} has no content"
                raise ValueError(fault)
            target = Path(scratch, *PurePosixPath(member.name).parts)
            target.parent.mkdir(parents=True, exist_ok=True)
            with source, target.open("xb") as sink:
                shutil.copyfileobj(source, sink)
        Path(scratch, top).rename(destination)
    return len(files)


def main() -> int:
    """Unpack what the command line names."""
    archive, top, destination = sys.argv[1:]
    try:
        count = unpack(Path(archive), top, Path(destination))
    except (OSError, ValueError, tarfile.TarError) as fault:
        print(f"unpack: {archive} is refused: {fault}", file=sys.stderr)
        return 2
    print(f"unpack: {count} files in {destination}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
