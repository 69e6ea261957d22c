"""The owner of a session's actors: it starts them, hands out and revokes their right to call, restarts and stops them.

Rules:

- Every activation runs inside a guard that turns any exception into an exit; nothing else catches everything.
- A turn that was accepted ends once: `ended` writes its one terminal record, whatever led there.
- A stop marks the whole subtree before it cancels any of it. What does not yield is cancelled again, then left behind.
- Nobody is left waiting: whoever waits for a turn of an actor that goes gets its failure.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

from actors.actor import Actor
from actors.grants import Grants, attenuate
from actors.mailbox import Mailbox
from actors.messages import EndTurn, ModelReplied, StopReason, TurnOpened
from actors.roles import ROLES
from actors.roles.role import cap
from actors.text import clip
from orchestrator.account import Account
from orchestrator.approvals import Approvals
from orchestrator.bridge import Bridge
from orchestrator.capability import Capability
from orchestrator.clock import Deadlines
from orchestrator.consents import Consents
from orchestrator.crashes import Crashes
from orchestrator.events import Delta
from orchestrator.gathering import Gathering
from orchestrator.journal.fault import StoreError
from orchestrator.journal.records import (
    ActorExited,
    ActorSpawned,
    Drop,
    Noted,
    OfferMade,
    OutcomeDropped,
    TurnAccepted,
    TurnEnded,
    TurnParked,
)
from orchestrator.limits import TurnLimits
from orchestrator.loans import end_loans
from orchestrator.member import Member
from orchestrator.models.gate import gated
from orchestrator.questions import Questions
from orchestrator.results import Results
from orchestrator.running import Runner
from orchestrator.stopping import Stopping
from orchestrator.telemetry import log
from orchestrator.validators import judged
from orchestrator.waits import Waits

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from typing import Any

    from actors.messages import Fact, Note
    from actors.ports import Offer, Toolbox
    from orchestrator.events import Events
    from orchestrator.journal.journal import Journal
    from orchestrator.registry import Registry, Resolved
    from orchestrator.running import Intrinsic
    from orchestrator.runtime import RuntimeConfig
    from orchestrator.workspace.roots import Workspace

__all__ = ["Supervisor"]

MAX_REASON = 500


class Supervisor:
    """Owns the actors of one session. ``on_ended`` hears of every turn's end before the waiting caller does."""

    def __init__(
        self, journal: Journal, config: RuntimeConfig, registry: Registry, workspace: Workspace | None, events: Events
    ) -> None:
        self.journal, self.registry, self.limits = journal, registry, config.limits
        self.members: dict[str, Member] = {}
        self.intrinsics: dict[str, Intrinsic] = {}
        self.abandoned: list[str] = []
        self.fault: StoreError | None = None
        self.closing = False
        self.on_ended: Callable[[Member, TurnAccepted, EndTurn], None] = lambda *_: None
        self.on_idle: Callable[[Member], None] = lambda _: None
        self.clock = config.observability.clock
        self.deadlines = Deadlines(self.clock)
        self._model = gated(config.model, config.limits.model_requests)
        self._events = events
        self.judged = judged
        self.waits, self.results = Waits(), Results(self)
        self.stops, self.crashes = Stopping(self), Crashes(self)
        self.tasks: set[asyncio.Task[Any]] = set()
        self.limited = TurnLimits(self.clock, self.deadlines)
        consents, principal, asks = Consents(journal, self.clock), config.principal, bool(config.approver)
        self.approvals = Approvals(journal, config.approver, consents, self.clock, self.deadlines, registry, self)
        gathering = Gathering(journal, workspace, config.limits, principal, consents, self.deadlines, possible=asks)
        runner = Runner(journal, self.deadlines, self.intrinsics)
        self.questions = Questions(journal, self.members, gathering, self.approvals)
        self.bridge = Bridge(journal, principal, workspace, gathering, runner, self.approvals, consents)

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
        definition, number = resolved.definition, self.journal.state.spawned + 1
        path = definition.address if parent is None else f"{parent.path}/{definition.address}-{number:04d}"
        base = cap(grants if parent is None else attenuate(parent.base, grants), ROLES[definition.role].ceiling)
        if parent is not None:
            budget = parent.account.reserve(grants.budget)
            if budget != base.budget:
                base = Grants(base.authorities, base.access, base.roots, budget)
        above = "" if parent is None else parent.path
        name, fingerprint = definition.name, definition.fingerprint
        record = ActorSpawned(name, fingerprint, above, base, number, background, cause, call)
        self.journal.append(path, record)
        return self.admit(path, resolved, parent, record, keep=keep)

    def admit(
        self, path: str, resolved: Resolved, parent: Member | None, record: ActorSpawned, *, keep: bool
    ) -> Member:
        """Make the live member of an actor that is on record."""
        account = Account(record.grants.budget, self.clock)
        member = Member(path, resolved, parent, record.grants, account, self.journal.state)
        member.background = record.background
        member.keep = keep
        member.actor = self.actor_of(member)
        self.members[path] = member
        if parent is not None:
            if parent.children is None:
                parent.children = {}
            parent.children[member.id] = member
        return member

    def actor_of(self, member: Member) -> Actor:
        """Make a fresh driver for *member*."""
        definition, mailbox = member.resolved.definition, Mailbox(member.path, self.limits.mailbox)
        return Actor(member.path, definition, member.resolved.instructions, self._model, self, self._start, mailbox)

    def _start(self, actor: Actor, work: Callable[[], Coroutine[Any, Any, None]]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(self._guard(actor, work), name=actor.path)
        self.tasks.add(task)
        return task

    async def _guard(self, actor: Actor, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run one activation; whatever it raises becomes an exit of its actor."""
        try:
            await work()
        except asyncio.CancelledError:
            member = self.members.get(actor.path)
            if self.closing or member is None or member.actor is not actor or not actor.active():
                raise
            await self.crashes.take(actor, "its task was cancelled, and nobody asked to stop it")
        except StoreError as error:
            self.fail(error)
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001  # the guard
            await self.crashes.take(actor, clip(f"{type(error).__name__}: {error}", MAX_REASON))
        finally:
            task = asyncio.current_task()
            assert task is not None
            self.tasks.discard(task)

    def accept(self, member: Member, turn: TurnAccepted) -> str:
        """Record *turn* and put it into the actor's mailbox; return its id. Raises `MailboxFull`, recording nothing."""
        member.actor.mailbox.check(len(member.actor.state.steered))
        self.journal.append(member.path, turn)
        member.actor.open(TurnOpened(turn.turn, turn.text, turn.origin, turn.limits))
        return turn.turn

    def next_turn(self) -> str:
        """Return the id of the next turn of the session."""
        return f"t{self.journal.state.turns + 1:04d}"

    def opened(self, actor: Actor, turn: str) -> Toolbox:
        """Mint the capability of a turn and arm its deadline."""
        member = self.members[actor.path]
        state = self.journal.state.actors[actor.path]
        accepted = state.accepted(turn)
        assert accepted is not None
        capability = Capability(self.bridge, member, turn, accepted.policy, accepted.grants, state.incarnation)
        capability.intent = accepted.text
        capability.made_in = "" if state.offered is None else state.offered.made_in
        member.capability = capability
        if self.registry.sources is not None:
            self.registry.sources.try_again()
        if accepted.limits.seconds is not None:
            seconds = accepted.limits.seconds
            detail = f"the turn did not end within its {seconds:g} s"
            late = lambda: self.stops.turn(member, turn, StopReason.TIMED_OUT, detail)  # noqa: E731
            self.limited.arm(turn, seconds, late)
        return capability

    def recorded(self, actor: Actor, fact: Fact) -> None:
        """Record a fact of an actor's loop, and book what a reply cost."""
        self.journal.append(actor.path, fact)
        if type(fact) is ModelReplied:
            self.members[actor.path].account.spend(fact.reply.usage)

    def offered(self, actor: Actor, offer: Offer) -> None:
        """Record what is really offered, where it differs from what was offered last in this turn."""
        last, capability = self.journal.state.actors[actor.path].offered, self.members[actor.path].capability
        made_in = self.bridge.place()
        if capability is not None:
            capability.made_in = made_in
        if last is None or last.tools is not offer.names or last.made_in != made_in:
            self.journal.append(actor.path, OfferMade(actor.state.turn, offer.fingerprint, offer.names, made_in))

    def noted(self, actor: Actor, note: Note) -> None:
        """Show subscribers what they could not see otherwise."""
        self.journal.append(actor.path, Noted(actor.state.turn, note.kind, note.text))

    def delta(self, actor: Actor, text: str) -> None:
        """Show subscribers a piece of text."""
        if self._events.watched:
            self._events.publish(Delta(actor.path, text))

    async def parked(self, actor: Actor) -> None:
        """A turn waits for a person: revoke its capability, say so, and let whoever waits for it go."""
        member, turn = self.members[actor.path], actor.state.turn
        again = member.capability is not None and member.capability.woken
        self._revoke(member)
        self.limited.rest(turn)
        self.journal.append(member.path, TurnParked(turn))
        await self.journal.sync()
        if again and actor.parked:
            actor.wake()
        self.results.at_rest(member)

    def woken(self, path: str) -> None:
        """An answer, or a child's end, has come: open the parked turn of *path* again, now or once it parks."""
        member = None if self.closing else self.members.get(path)
        if member is not None and member.actor.parked:
            member.actor.wake()
        elif member is not None and member.capability is not None:
            member.capability.woken = True

    @contextmanager
    def paused(self, path: str) -> Iterator[None]:
        """Hold the time limits of the actor's turn, and of those that wait for it, still."""
        members = (self.members.get(each) for each in (path, *self.waits.upon(path)))
        rights = (member.capability for member in members if member is not None)
        with self.limited.held(tuple(right.turn for right in rights if right is not None)):
            yield

    def _revoke(self, member: Member) -> None:
        if member.capability is not None:
            member.capability.revoked = True
            member.capability = None

    async def ended(self, actor: Actor, end: EndTurn) -> None:
        """Write the one end of a turn, revoke its capability, and tell whoever waits, once it is durable."""
        member = self.members[actor.path]
        accepted = self.journal.state.actors[member.path].accepted(end.turn)
        assert accepted is not None
        self._revoke(member)
        self.limited.drop(end.turn)
        self.on_ended(member, accepted, end)
        self.journal.append(member.path, TurnEnded(end.turn, end.reason, end.output, end.usage, end.detail))
        end_loans(self.journal, member.path, end.turn)
        await self.journal.sync()
        self.results.answer(member, end)
        self.on_idle(member)

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

    def fail(self, error: StoreError) -> None:
        """The journal takes nothing any more: everyone who waits is told, nothing further runs."""
        self.fault = self.fault or error
        log(logging.ERROR, "journal failed", reason=str(error))
        self.results.fail(self.fault)
