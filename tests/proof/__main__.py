"""The proof as a command: every small history, then random ones for a chosen time; says last what was checked."""

from __future__ import annotations

import argparse
import asyncio
import logging
import secrets
import time

from tests.proof.machine import search
from tests.proof.small import histories, play
from tests.proof.world import Differs, Tally

CHUNK = 25


def small() -> tuple[Tally, str]:
    """Play every small history; return what was checked and, in words, the first that differed, if any."""
    tally = Tally()
    with asyncio.Runner() as runner:
        for cast, steps in histories():
            try:
                runner.run(play(cast, steps, tally))
            except Differs as found:
                return tally, str(found)
    return tally, ""


def prove(seconds: float, seed: int) -> tuple[Tally, str]:
    """Play all the small histories, then random ones for *seconds*; return what was checked and what differed."""
    total, words = small()
    print(f"small histories: {total.histories}, all there are" if not words else "a small history differs")
    until = time.monotonic() + seconds
    while not words and time.monotonic() < until:
        tally, words = search(CHUNK, seed=seed)
        total, seed = total + tally, seed + 1
    return total, words


def main() -> int:
    """Read the options, run, print; 1 if anything differed."""
    parser = argparse.ArgumentParser(prog="scripts/prove", description=__doc__)
    parser.add_argument(
        "--seconds", type=float, default=30.0, help="how long to go on with random histories (default 30)"
    )
    parser.add_argument("--seed", type=int, default=None, help="repeat the random histories of this seed")
    options = parser.parse_args()
    logging.getLogger("orchestrator").setLevel(logging.CRITICAL)
    seed = secrets.randbelow(1_000_000_000) if options.seed is None else options.seed
    print(f"seed: {seed}")
    total, words = prove(options.seconds, seed)
    if words:
        print(words)
    print(f"{total.histories} histories and {total.calls} calls checked, {total.differed} differed")
    return 1 if words else 0


if __name__ == "__main__":
    raise SystemExit(main())
