"""The owner of a session's actors: it starts them, hands out and revokes their right to call, restarts and stops them.

Rules:

- Every activation runs inside a guard that turns any exception into an exit; nothing else catches everything.
- A turn that was accepted ends once: `ended` writes its one terminal record, whatever led there.
- A stop marks the whole subtree before it cancels any of it. What does not yield is cancelled again, then left behind.
- Nobody is left waiting: whoever waits for a turn of an actor that goes gets its failure.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from actors.actor import Actor
from actors.grants import Grants, attenuate
from actors.loop import Phase, failures
from actors.mailbox import Mailbox
from actors.messages import EndTurn, ModelReplied, StopReason, TurnOpened, TurnStopped, Usage
from actors.roles import ROLES
from actors.roles.role import cap
from actors.text import clip
from orchestrator.account import Account
from orchestrator.bridge import Bridge
from orchestrator.capability import Capability
from orchestrator.clock import Deadlines
from orchestrator.events import Delta
from orchestrator.facts import Spent
from orchestrator.journal.fault import StoreError
from orchestrator.journal.records import (
    ActorExited,
    ActorRestarted,
    ActorSpawned,
    Drop,
    Noted,
    OfferMade,
    OutcomeDropped,
    TurnAccepted,
    TurnEnded,
)
from orchestrator.loans import end_loans
from orchestrator.member import Member
from orchestrator.models.gate import gated
from orchestrator.restart import Decision, on_exit
from orchestrator.telemetry import log
from orchestrator.turn import Result
from orchestrator.waits import Waits

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from actors.messages import Fact, Note
    from actors.ports import Offer, Toolbox
    from orchestrator.bridge import Intrinsic
    from orchestrator.events import Events
    from orchestrator.journal.journal import Journal
    from orchestrator.registry import Resolved
    from orchestrator.runtime import RuntimeConfig, SessionLimits
    from orchestrator.workspace.roots import Workspace

__all__ = ["Supervisor"]

MAX_REASON = 500


def crowded(limits: SessionLimits, journal: Journal) -> Callable[[Member], Spent | None]:
    """Return what tells the decision which limit of children an actor has reached."""

    def look(member: Member) -> Spent | None:
        if member.depth >= limits.depth:
            return Spent(children="too_deep", detail=f"{member.path} is at the depth limit of {limits.depth}")
        if member.alive_children() >= limits.alive:
            return Spent(children="too_many_children", detail=f"{limits.alive} children are alive, the limit")
        if journal.state.spawned >= limits.total:
            return Spent(
                children="too_many_children", detail=f"the session has started {limits.total} actors, the limit"
            )
        return None

    return look


class Supervisor:
    """Owns the actors of one session. ``on_ended`` hears of every turn's end before the waiting caller does."""

    def __init__(
        self,
        journal: Journal,
        config: RuntimeConfig,
        workspace: Workspace | None,
        events: Events,
    ) -> None:
        self.journal = journal
        self.limits = config.limits
        self.members: dict[str, Member] = {}
        self.intrinsics: dict[str, Intrinsic] = {}
        self.abandoned: list[str] = []
        self.closing = False
        self.fault: StoreError | None = None
        self.on_ended: Callable[[Member, TurnAccepted, EndTurn], None] = lambda *_: None
        self.on_idle: Callable[[Member], None] = lambda _: None
        self._clock = config.observability.clock
        self._deadlines = Deadlines(self._clock)
        self._model = gated(config.model, config.limits.model_requests)
        self._events = events
        self.waits = Waits()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._turn_deadlines: dict[str, int] = {}
        self.bridge = Bridge(
            journal,
            self._deadlines,
            config.principal.name,
            workspace,
            self.intrinsics,
            crowded(config.limits, journal),
        )

    # Actors

    def spawn(
        self,
        resolved: Resolved,
        parent: Member | None,
        grants: Grants,
        *,
        background: bool = False,
        cause: str = "",
        call: str = "",
        keep: bool = False,
    ) -> Member:
        """Start an actor with at most *grants*, capped by its role and its parent's authority; record it first.

        ``keep`` lets it live on after its turn, for whoever started it to stop.
        """
        definition = resolved.definition
        number = self.journal.state.spawned + 1
        path = definition.address if parent is None else f"{parent.path}/{definition.address}-{number:04d}"
        base = cap(grants if parent is None else attenuate(parent.base, grants), ROLES[definition.role].ceiling)
        if parent is not None:
            budget = parent.account.reserve(grants.budget)
            if budget != base.budget:
                base = Grants(base.authorities, base.access, base.roots, budget)
        record = ActorSpawned(
            definition.name,
            definition.fingerprint,
            parent.path if parent else "",
            base,
            number,
            background,
            cause,
            call,
        )
        self.journal.append(path, record)
        return self.admit(path, resolved, parent, record, keep=keep)

    def admit(
        self, path: str, resolved: Resolved, parent: Member | None, record: ActorSpawned, *, keep: bool
    ) -> Member:
        """Make the live member of an actor that is on record."""
        account = Account(record.grants.budget, self._clock)
        member = Member(path, resolved, parent, record.grants, account, self.journal.state)
        member.background = record.background
        member.keep = keep
        member.actor = self._actor(member)
        self.members[path] = member
        if parent is not None:
            if parent.children is None:
                parent.children = {}
            parent.children[member.id] = member
        return member

    def _actor(self, member: Member) -> Actor:
        definition, mailbox = member.resolved.definition, Mailbox(member.path, self.limits.mailbox)
        return Actor(member.path, definition, member.resolved.instructions, self._model, self, self._start, mailbox)

    def _start(self, actor: Actor, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(self._guard(actor, work), name=actor.path)
        self._tasks.add(task)
        return task

    async def _guard(self, actor: Actor, work: Coroutine[Any, Any, None]) -> None:
        """Run one activation; whatever it raises becomes an exit of its actor."""
        try:
            await work
        except asyncio.CancelledError:
            if self.closing or self._is_gone(actor):
                raise
            await self._crashed(actor, "its task was cancelled, and nobody asked to stop it")
        except StoreError as error:
            self.fail(error)
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001  # the guard
            await self._crashed(actor, clip(f"{type(error).__name__}: {error}", MAX_REASON))
        finally:
            task = asyncio.current_task()
            assert task is not None
            self._tasks.discard(task)

    def _is_gone(self, actor: Actor) -> bool:
        member = self.members.get(actor.path)
        return member is None or member.actor is not actor or not actor.active()

    # Turns

    def accept(self, member: Member, turn: TurnAccepted) -> str:
        """Record *turn* and put it into the actor's mailbox; return its id. Raises `MailboxFull`, recording nothing."""
        member.actor.mailbox.check(len(member.actor.state.steered))
        self.journal.append(member.path, turn)
        member.actor.open(TurnOpened(turn.turn, turn.text, turn.origin, turn.limits))
        return turn.turn

    def next_turn(self) -> str:
        """Return the id of the next turn of the session."""
        return f"t{self.journal.state.turns + 1:04d}"

    def wait(self, member: Member, turn: str) -> asyncio.Future[Result]:
        """Return a future of the turn's result, the caller's own: cancelling it stops nothing."""
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        if self.fault is not None:
            future.set_exception(self.fault)
            return future
        if member.waiters is None:
            member.waiters = {}
        member.waiters.setdefault(turn, []).append(future)
        return future

    def _answer(self, member: Member, end: EndTurn) -> None:
        """Give everyone who waits for the turn its result."""
        futures = member.waiters.pop(end.turn, None) if member.waiters else None
        if futures:
            result = self._result(member, end)
            for future in futures:
                if not future.done():
                    future.set_result(result)

    def opened(self, actor: Actor, turn: str) -> Toolbox:
        """Mint the capability of a turn and arm its deadline."""
        member = self.members[actor.path]
        state = self.journal.state.actors[actor.path]
        accepted = state.accepted(turn)
        assert accepted is not None
        capability = Capability(self.bridge, member, turn, accepted.policy, accepted.grants, state.incarnation)
        member.capability = capability
        if accepted.limits.seconds is not None:
            seconds = accepted.limits.seconds
            detail = f"the turn did not end within its {seconds:g} s"
            late = lambda: self.stop_turn(member, turn, StopReason.TIMED_OUT, detail)  # noqa: E731
            self._turn_deadlines[turn] = self._deadlines.add(seconds, late)
        return capability

    def recorded(self, actor: Actor, fact: Fact) -> None:
        """Record a fact of an actor's loop, and book what a reply cost."""
        self.journal.append(actor.path, fact)
        if type(fact) is ModelReplied:
            self.members[actor.path].account.spend(fact.reply.usage)

    def offered(self, actor: Actor, offer: Offer) -> None:
        """Record what is really offered, where it differs from what was offered last in this turn."""
        last = self.journal.state.actors[actor.path].offered
        if last is None or last.tools is not offer.names:
            self.journal.append(actor.path, OfferMade(actor.state.turn, offer.fingerprint, offer.names))

    def noted(self, actor: Actor, note: Note) -> None:
        """Show subscribers what they could not see otherwise."""
        self.journal.append(actor.path, Noted(actor.state.turn, note.kind, note.text))

    def delta(self, actor: Actor, text: str) -> None:
        """Show subscribers a piece of text."""
        if self._events.watched:
            self._events.publish(Delta(actor.path, text))

    async def ended(self, actor: Actor, end: EndTurn) -> None:
        """Write the one end of a turn, revoke its capability, and tell whoever waits, once it is durable."""
        member = self.members[actor.path]
        accepted = self.journal.state.actors[member.path].accepted(end.turn)
        assert accepted is not None
        if member.capability is not None:
            member.capability.revoked = True
            member.capability = None
        deadline = self._turn_deadlines.pop(end.turn, None)
        if deadline is not None:
            self._deadlines.remove(deadline)
        self.on_ended(member, accepted, end)
        self.journal.append(member.path, TurnEnded(end.turn, end.reason, end.output, end.usage, end.detail))
        end_loans(self.journal, member.path, end.turn)
        await self.journal.sync()
        self._answer(member, end)
        self.on_idle(member)

    def _result(self, member: Member, end: EndTurn) -> Result:
        notes = (*((end.detail,) if end.detail else ()), *self.abandoned)
        failed = failures(member.actor.state)
        fingerprint = member.resolved.definition.fingerprint
        return Result(end.output, end.reason, end.usage, failed, notes, fingerprint, end.turn)

    # Stopping

    def stop_turn(self, member: Member, turn: str, reason: StopReason, detail: str = "") -> None:
        """Stop a turn, in flight or waiting. Never waits."""
        capability = member.capability
        if capability is not None and capability.turn == turn:
            capability.stopping = True
        if member.actor.stop(TurnStopped(turn, reason, detail)) and capability is not None:
            self._deadlines.add(self.limits.grace_s, lambda: self._insist(member, capability))

    def _insist(self, member: Member, capability: Capability) -> None:
        """The grace time is over: cancel again, and arm the last resort."""
        if member.capability is capability:
            for task in tuple(capability.running.values()):
                task.cancel()
            member.actor.stop(TurnStopped(capability.turn, StopReason.CANCELLED))
            self._deadlines.add(self.limits.grace_s, lambda: self._leave_behind(member, capability))

    def _leave_behind(self, member: Member, capability: Capability) -> None:
        """The code does not yield: end the turn without it, and say so."""
        if member.capability is capability and not capability.revoked:
            capability.revoked = True
            names = ", ".join(sorted(capability.running)) or "the model request"
            log.warning("task abandoned", actor=member.path, turn=capability.turn, calls=names)
            self.abandoned.append(
                f"abandoned: {member.path} in turn {capability.turn} did not yield to a stop ({names})"
            )
            member.actor.abandon()

    async def stop(self, member: Member, reason: str, *, how: StopReason = StopReason.CANCELLED) -> None:
        """Stop *member* and all below it for good; return when each has ended. Stopping twice is fine."""
        members = member.subtree()
        for each in members:
            if not each.explicit_stop:
                each.explicit_stop = reason
            if each.capability is not None:
                each.capability.stopping = True
        waits = []
        for each in reversed(members):
            for accepted in tuple(self.journal.state.actors[each.path].waiting):
                waits.append(self.wait(each, accepted.turn))
                self.stop_turn(each, accepted.turn, how, reason)
        if waits:
            await asyncio.wait(waits)
        for each in reversed(members):
            self.exit(each, reason)

    def exit(self, member: Member, reason: str) -> None:
        """Take *member* out of the session; it has no open turn. What it is still owed goes to nobody."""
        if member.gone:
            return
        member.gone = reason
        for owed in self.journal.state.owed(member.path):
            self.journal.append(member.path, OutcomeDropped(owed.turn, Drop.DEAD_LETTER))
        self.journal.append(member.path, ActorExited(reason))
        del self.members[member.path]
        parent = member.parent
        if parent is not None and parent.children is not None:
            parent.children.pop(member.id, None)
            parent.account.settle(member.account)

    async def halt(self) -> None:
        """Cancel every task of the session, recording nothing, and answer whoever waits for a turn: it is suspended.

        What does not yield within the grace time twice is left behind and named.
        """
        for member in self.members.values():
            if member.capability is not None:
                member.capability.revoked = True
            member.actor.halt()
        tasks = {task for task in self._tasks if task is not asyncio.current_task()}
        for _ in range(2):
            for task in tasks:
                task.cancel()
            if tasks:
                _, tasks = await asyncio.wait(tasks, timeout=self.limits.grace_s)
        self.abandoned.extend(
            f"abandoned: a task of {task.get_name()} did not yield to the end of the session" for task in tasks
        )
        for member in self.members.values():
            for turn in tuple(member.waiters or ()):
                detail = "the session was closed; resume it to go on"
                self._answer(member, EndTurn(turn, StopReason.SUSPENDED, "", Usage(), detail))
        self._deadlines.close()

    # Crashes

    async def _crashed(self, actor: Actor, reason: str) -> None:
        """An activation ended with an exception: restart the actor from the journal, or end it and tell the parent."""
        member = self.members.get(actor.path)
        if member is None or member.actor is not actor:
            return
        actor.crashed()
        if member.capability is not None:
            member.capability.revoked = True
            member.capability = None
        restart = self.limits.restart
        decision, member.restarts = on_exit(
            restart.kind, crashed=True, restarts=member.restarts, now=self._clock.now(), intensity=restart.intensity
        )
        try:
            if decision is Decision.RESTART:
                incarnation = self.journal.state.actors[member.path].incarnation + 1
                log.warning("actor restarted", actor=member.path, incarnation=incarnation, reason=reason)
                self.journal.append(member.path, ActorRestarted(incarnation, reason))
                await self.on_restart(member)
            else:
                await self._escalate(member, reason)
        except StoreError as error:
            self.fail(error)

    async def on_restart(self, member: Member) -> None:
        """Rebuild *member* from the journal under a new incarnation and let it go on."""
        from orchestrator.recovery import loop_of, take_up

        loop = await loop_of(self.journal, member.path)
        old, member.actor = member.actor, self._actor(member)
        for accepted in self.journal.state.actors[member.path].waiting:
            stop = old.mailbox.take_stop(accepted.turn)
            if stop is not None:
                member.actor.mailbox.stop(stop)
        await take_up(self, member, loop, stuck=False)

    async def _escalate(self, member: Member, reason: str) -> None:
        """Too many crashes: fail what is open, end the actor; its parent is owed the failure."""
        detail = f"{member.path} crashed too often: {reason}"
        log.error("actor gave up", actor=member.path, reason=reason)
        actor = member.actor
        member.explicit_stop = member.explicit_stop or detail
        for accepted in tuple(self.journal.state.actors[member.path].waiting):
            if actor.state.phase is Phase.IDLE or actor.state.turn != accepted.turn:
                end = EndTurn(accepted.turn, StopReason.FAILED, "", Usage(), detail)
            else:
                end = actor.end(TurnStopped(accepted.turn, StopReason.FAILED, detail))
            await self.ended(actor, end)
        for child in tuple((member.children or {}).values()):
            await self.stop(child, detail, how=StopReason.FAILED)
        self.exit(member, detail)

    def fail(self, error: StoreError) -> None:
        """The journal takes nothing any more: everyone who waits is told, nothing further runs."""
        self.fault = self.fault or error
        log.error("journal failed", reason=str(error))
        for member in self.members.values():
            for futures in (member.waiters or {}).values():
                for future in futures:
                    if not future.done():
                        future.set_exception(self.fault)
                        future.exception()
