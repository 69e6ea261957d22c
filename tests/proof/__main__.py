"""The proof as a command: every small history and random ones, for a chosen time; says last what was checked."""

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


def small(until: float) -> tuple[Tally, str, bool]:
    """Play the small histories until the time is up; return what was checked, what differed, whether all were played.

    They are taken in strides, so that a run cut short has seen something of every kind.
    """
    tally = Tally()
    every = list(histories())
    stride = 97
    with asyncio.Runner() as runner:
        for number in range(len(every)):
            if time.monotonic() > until:
                return tally, "", False
            cast, steps = every[number * stride % len(every)]
            try:
                runner.run(play(cast, steps, tally))
            except Differs as found:
                return tally, str(found), True
    return tally, "", True


def prove(seconds: float, seed: int) -> tuple[Tally, str]:
    """Run both for *seconds* in all, half of it at most for the small ones; return what was checked, what differed."""
    began = time.monotonic()
    total, words, whole = small(began + seconds / 2)
    print(f"small histories: {total.histories} of {len(list(histories()))}{'' if whole else ' (the time was up)'}")
    while not words and time.monotonic() < began + seconds:
        tally, words = search(CHUNK, seed=seed)
        total, seed = total + tally, seed + 1
    return total, words


def main() -> int:
    """Read the options, run, print; 1 if anything differed."""
    parser = argparse.ArgumentParser(prog="scripts/prove", description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0, help="how long to search (default 30)")
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
