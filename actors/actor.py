"""The driver of one actor: its mailbox, the pure loop, and the one task that is active while there is work.

Rules:

- One activation task at a time; an idle actor has none. The task is the turn's cancel scope.
- Effects run inline. Several calls of one reply run in one task group, when the toolbox says that they may.
- A message for the turn in flight is applied at arrival, between two effects of the loop. Every applied fact is
  recorded first; a call's result is recorded by the toolbox, at the moment it is known.
- A final text that the definition has a schema for is judged by the owner, and its fault is part of the fact.
- A stop cancels the task; what the cancelled code returns afterwards is not listened to. Code that swallows the
  cancellation is cancelled once more after the grace time, and after another one it is left behind, named.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from actors.loop import IDLE, LoopState, Phase, advance, unanswered
from actors.messages import (
    AskModel,
    CallFinished,
    EndTurn,
    ModelFailed,
    ModelReplied,
    Note,
    RunCalls,
    Steered,
    ToolCall,
    TurnOpened,
    TurnStopped,
)
from actors.ports import ModelError, ModelRequest, Offer, clean_reply
from actors.text import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from actors.definition import AgentDefinition
    from actors.mailbox import Mailbox
    from actors.messages import Effect, Fact
    from actors.ports import Model, Owner, Toolbox

__all__ = ["Actor"]


class Actor:
    """One running incarnation of a definition. Made and owned by a supervisor; others hold an `ActorRef`.

    ``path`` names it from the root down, ``id`` is its last part. ``state`` is the loop's state, never shared.
    """

    __slots__ = (
        "_spawn",
        "_started",
        "_task",
        "definition",
        "instructions",
        "mailbox",
        "model",
        "owner",
        "path",
        "state",
        "toolbox",
    )

    def __init__(
        self,
        path: str,
        definition: AgentDefinition,
        instructions: str,
        model: Model,
        owner: Owner,
        spawn: Callable[[Actor, Callable[[], Coroutine[Any, Any, None]]], asyncio.Task[None]],
        mailbox: Mailbox,
    ) -> None:
        self.path = path
        self.definition = definition
        self.instructions = instructions
        self.model = model
        self.owner = owner
        self.mailbox = mailbox
        self.state: LoopState = IDLE
        self.toolbox: Toolbox | None = None
        self._spawn = spawn
        self._task: asyncio.Task[None] | None = None
        self._started = False

    @property
    def busy(self) -> bool:
        """Whether a turn is in flight or waits to be opened."""
        return self._task is not None or self.state.phase is not Phase.IDLE

    @property
    def parked(self) -> bool:
        """Whether a turn is in flight that waits for a person, without a task."""
        return self._task is None and self.state.phase is not Phase.IDLE

    def open(self, fact: TurnOpened) -> None:
        """Queue a turn and wake the actor. Never waits. Raises `MailboxFull`."""
        self.mailbox.put(fact, len(self.state.steered))
        self.wake()

    def steer(self, text: str, notices: tuple[str, ...] = ()) -> bool:
        """Give *text* to the turn in flight; return False when there is none. Never waits. Raises `MailboxFull`."""
        if self.state.phase is Phase.IDLE or self.mailbox.stopping(self.state.turn):
            return False
        self.mailbox.check(len(self.state.steered))
        self._apply(Steered(self.state.turn, text, notices))
        return True

    def wake(self) -> None:
        """Start the activation task unless it runs."""
        if self._task is None:
            self._started = False
            self._task = self._spawn(self, self._activate)

    def stop(self, fact: TurnStopped) -> bool:
        """Stop the turn that *fact* names, now or, if it only waits, when it is opened. Never waits.

        Returns whether running work was cancelled. A second stop of the same turn cancels it again.
        """
        self.mailbox.stop(fact)
        if self._task is None and self.state.phase is not Phase.IDLE and self.state.turn == fact.turn:
            self.wake()
        task = self._task if self._started else None
        if task is None or self.state.phase is Phase.IDLE or self.state.turn != fact.turn:
            return False
        return task.cancel()

    def abandon(self) -> asyncio.Task[None] | None:
        """Leave the activation task behind, because it does not yield to cancellation, and end the turn without it.

        Returns the task left behind. Whatever it does later finds its turn closed and its capability revoked.
        """
        task, self._task = self._task, None
        self.wake()
        return task

    def halt(self) -> None:
        """The session ends: apply nothing any more, ask nothing any more; the turn goes on when it is resumed."""
        self._task = self.toolbox = None

    def crashed(self) -> None:
        """The activation ended with an exception: a stop waits in the control lane instead of cancelling it."""
        self._started = False

    def active(self) -> bool:
        """Whether the running task is this actor's activation."""
        return self._task is not None and self._task is asyncio.current_task()

    def end(self, fact: TurnStopped) -> EndTurn:
        """End the turn in flight without any task: the history is closed by *fact*. Return how the turn ended."""
        self._task = None
        self.toolbox = None
        (end,) = self._apply(fact)
        assert isinstance(end, EndTurn)
        return end

    async def _activate(self) -> None:
        self._started = True
        task = asyncio.current_task()
        if self.state.phase is not Phase.IDLE:
            await self._go_on()
        while self._task is task and self.state.phase is Phase.IDLE:
            opened = self.mailbox.take()
            if opened is None:
                self._task = None
                return
            await self._drive(self._open(opened))

    def _open(self, opened: TurnOpened) -> deque[Effect]:
        self.toolbox = self.owner.opened(self, opened.turn)
        effects = self._apply(opened)
        stop = self.mailbox.take_stop(opened.turn)
        return deque(effects if stop is None else self._apply(stop))

    async def _go_on(self) -> None:
        """Take a turn up where the state stands: after a resume, a restart, or an abandoned task."""
        stop = self.mailbox.take_stop(self.state.turn)
        if self.toolbox is None:
            self.toolbox = self.owner.opened(self, self.state.turn)
        if stop is not None:
            await self._drive(deque(self._apply(stop)))
        elif self.state.phase is Phase.MODEL:
            await self._drive(deque((AskModel(final=self.state.final),)))
        else:
            await self._drive(deque((RunCalls(unanswered(self.state)),)))

    async def _drive(self, effects: deque[Effect]) -> None:
        """Perform effects until none is left: the turn is over, or waits for a person."""
        task = asyncio.current_task()
        assert task is not None
        while effects:
            turn, effect = self.state.turn, effects.popleft()
            try:
                if isinstance(effect, AskModel):
                    fact = await self._ask(final=effect.final)
                    if self._task is task and not self.mailbox.stopping(turn):
                        effects.extend(self._apply(fact))
                elif isinstance(effect, RunCalls):
                    await self._run(effect.calls, effects)
                elif isinstance(effect, EndTurn):
                    self.toolbox = None
                    await self.owner.ended(self, effect)
                else:
                    self.owner.noted(self, effect)
            except asyncio.CancelledError:
                if self._task is not task or not self.mailbox.stopping(turn):
                    raise
            if self._task is not task:
                return
            if self.mailbox.stopping(turn):
                effects = self._heed(task, turn, effects)
        if self.state.phase is Phase.TOOLS:
            self._task = self.toolbox = None
            await self.owner.parked(self)

    def _heed(self, task: asyncio.Task[Any], turn: str, effects: deque[Effect]) -> deque[Effect]:
        """Take the stop of *turn*: nothing of what was to be done is done, the turn ends."""
        stop = self.mailbox.take_stop(turn)
        while task.cancelling():
            task.uncancel()
        return effects if stop is None or self.state.phase is Phase.IDLE else deque(self._apply(stop))

    async def _ask(self, *, final: bool) -> ModelReplied | ModelFailed:
        turn, state = self.state.turn, self.state
        assert self.toolbox is not None
        offer = self.toolbox.manifest()
        if final:
            offer = Offer(offer.fingerprint, (), ())
        self.owner.offered(self, offer)
        request = ModelRequest(
            self.definition.name,
            self.path,
            turn,
            self.instructions,
            state.history,
            offer.tools,
        )
        try:
            reply = clean_reply(await self.model.reply(request, self._delta))
        except ModelError as error:
            return ModelFailed(turn, clean(str(error)))
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return ModelFailed(turn, "the model's request was cancelled, and nobody asked to stop it")
        if self.definition.output and not reply.calls:
            return self.owner.judged(self.definition.output, turn, reply)
        return ModelReplied(turn, reply)

    def _delta(self, piece: str | Note) -> None:
        """Hand on what the model tells while it answers; a note that comes when no turn is open goes nowhere."""
        if isinstance(piece, str):
            self.owner.delta(self, piece)
        elif self.toolbox is not None:
            self.owner.noted(self, Note(clean(piece.kind), clean(piece.text)))

    async def _run(self, calls: tuple[ToolCall, ...], effects: deque[Effect]) -> None:
        turn, toolbox = self.state.turn, self.toolbox
        assert toolbox is not None
        if len(calls) > 1 and toolbox.concurrent(calls):
            async with asyncio.TaskGroup() as group:
                for call in calls:
                    group.create_task(self._call(toolbox, turn, call, effects))
            return
        for call in calls:
            result = await toolbox.call(call)
            if result is None or self.toolbox is not toolbox:
                return
            effects.extend(self._apply(CallFinished(turn, result), record=False))
            if self.mailbox.stopping(turn):
                return

    async def _call(self, toolbox: Toolbox, turn: str, call: ToolCall, effects: deque[Effect]) -> None:
        result = await toolbox.call(call)
        if result is not None and self.toolbox is toolbox:
            effects.extend(self._apply(CallFinished(turn, result), record=False))

    def _apply(self, fact: Fact, *, record: bool = True) -> tuple[Effect, ...]:
        """Advance the loop by *fact*; one that changes nothing is not recorded."""
        state, effects = advance(self.state, fact)
        if state is self.state:
            return ()
        if record:
            self.owner.recorded(self, fact)
        self.state = state
        return effects
