"""A history in the making: each operation is done to the real session and to the naive account, and compared.

`replayed` plays what one actor went through once more, with the focus of all others deleted: the proof that nobody's
policy is felt by anybody else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from tests.proof.actor_steps import Call
from tests.proof.naive import names_of
from tests.proof.society import Society
from tests.proof.stage import Stage
from tests.proof.step import Operation

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.proof.terms import Cast

__all__ = ["Differs", "Tally", "World", "isolated"]

Picture = dict[str, dict[str, str] | None]


class Differs(AssertionError):
    """The kernel and the specification, or two histories, disagree; the text is the history in words."""

    def __init__(self, cast: Cast, history: Iterable[Operation], what: str) -> None:
        self.cast = cast
        self.history = tuple(history)
        lines = [f"the cast: {cast}", *(f"{number}. {step}" for number, step in enumerate(self.history, 1)), what]
        super().__init__("\n".join(lines))


@attrs.define
class Tally:
    """What was checked so far."""

    histories: int = 0
    calls: int = 0
    verdicts: int = 0
    differed: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.histories + other.histories,
            self.calls + other.calls,
            self.verdicts + other.verdicts,
            self.differed + other.differed,
        )


@attrs.frozen
class Entry:
    """One operation, what came of it, and what everybody could do afterwards."""

    operation: Operation
    said: str
    picture: Picture


class World:
    """One session and its naive account, moved in step."""

    def __init__(self, cast: Cast, tally: Tally, *, compares: bool = True) -> None:
        """Without *compares* the naive account only says what can come next."""
        self.cast = cast
        self.stage = Stage(cast)
        self.society = Society(cast)
        self.tally = tally
        self.compares = compares
        self.history: list[Entry] = []

    async def open(self) -> None:
        """Start the session."""
        self.tally.histories += 1
        await self.stage.open(self.cast.principal)

    async def close(self) -> None:
        """End it."""
        await self.stage.close()

    async def do(self, operation: Operation) -> str:
        """Do *operation*; return what came of it. Raises `Differs`."""
        expected = operation.expect(self.society)
        try:
            said = await operation.act(self.stage)
            picture = self.stage.picture()
        except Exception as error:
            raise self._differs(operation, f"the kernel raised {error!r}") from error
        self.history.append(Entry(operation, said, picture))
        self.tally.calls += operation.is_call
        if self.compares and said != expected:
            raise self._differs(None, f"the kernel says {said!r}, the specification says {expected!r}")
        wanted = self.picture()
        if self.compares and picture != wanted:
            raise self._differs(None, "afterwards " + "; ".join(differences(picture, wanted)))
        self.tally.verdicts += sum(len(verdicts) for verdicts in picture.values() if verdicts)
        return said

    def picture(self) -> Picture:
        """Who is there and could do what now, as the specification says."""
        found: Picture = {}
        for actor in self.society.alive():
            names = names_of(actor.node.role, actor.node.tools, parent=bool(actor.node.children))
            decide = self.society.decide
            found[actor.path] = {name: decide(actor.path, name, None) for name in names} if actor.open else None
        return found

    def _differs(self, operation: Operation | None, what: str) -> Differs:
        self.tally.differed += 1
        done = [entry.operation for entry in self.history]
        return Differs(self.cast, [*done, operation] if operation else done, what)


def differences(kernel: Picture, wanted: Picture) -> list[str]:
    """In what two pictures differ, in words."""
    found = [f"{path} is there and should not be" for path in sorted(kernel.keys() - wanted.keys())]
    found += [f"{path} is not there and should be" for path in sorted(wanted.keys() - kernel.keys())]
    for path in sorted(kernel.keys() & wanted.keys()):
        mine, theirs = kernel[path], wanted[path]
        if (mine is None) != (theirs is None):
            found.append(f"{path} is {'idle, and should be at work' if mine is None else 'at work, and should not be'}")
        if mine is None or theirs is None:
            continue
        for name in sorted(mine.keys() | theirs.keys()):
            if mine.get(name) != theirs.get(name):
                found.append(f"{path} is told {mine.get(name)} of {name}, and should be told {theirs.get(name)}")
    return found


def blurred_for(actor: str, history: Sequence[Entry]) -> list[tuple[Operation, Entry]]:
    """The history as it is without anybody else's focus. What was refused to others stays without effect."""
    kept: list[tuple[Operation, Entry]] = []
    for entry in history:
        operation = entry.operation
        if operation.actor != actor:
            refused = operation.is_call and entry.said not in ("permitted", "needs_approval")
            operation = (operation.withheld() or nothing_of(operation)) if refused else operation.blurred()
        kept.append((operation, entry))
    return kept


def nothing_of(operation: Operation) -> Operation:
    """A call that is refused like the operation's own: its model hears of a refusal, and nothing else comes of it."""
    return Call(operation.actor, "nothing", '{"n":%d}')


async def isolated(cast: Cast, actor: str, history: Sequence[Entry]) -> None:
    """Play *history* again without the focus of all but *actor*. Raises `Differs` if *actor* notices.

    Where the others have no focus there is nothing to delete, and nothing is played.
    """
    if all(left == entry.operation for left, entry in blurred_for(actor, history)):
        return
    stage = Stage(cast, watches=False)
    await stage.open(cast.principal)
    try:
        for number, (operation, entry) in enumerate(blurred_for(actor, history), 1):
            what = await compared(stage, actor, operation, entry)
            if what:
                told = [past.operation for past in history[:number]]
                raise Differs(cast, told, f"without the policies of all but {actor}: {what}")
    finally:
        await stage.close()


async def compared(stage: Stage, actor: str, operation: Operation, entry: Entry) -> str:
    """Do *operation* again and say what *actor* notices of it."""
    try:
        said = await operation.act(stage)
    except Exception as error:  # noqa: BLE001  # whatever it is, it did not happen the first time
        return f"the kernel raised {error!r}"
    if operation.actor == actor and said != entry.said:
        return f"{actor} is told {said!r}, and was told {entry.said!r} before"
    now, then = stage.picture(actor), {path: verdicts for path, verdicts in entry.picture.items() if path == actor}
    return "" if now == then else "; ".join(differences(now, then))
