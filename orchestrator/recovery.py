"""Taking up what a journal left open: after a crash of one actor, or of the whole process.

Rules:

- What finished keeps its result. An intent without an outcome is sealed: its call is answered "may have happened".
- A turn goes on where its loop stands, with a new capability. One that crashed twice at the same place fails.
- Grants are the recorded ones, no wider than what the principal holds now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.grants import Grants, attenuate
from actors.loop import LoopState, Phase, advance
from actors.messages import CallFinished, EndTurn, Outcome, StopReason, ToolResult, TurnOpened, TurnStopped
from actors.roles import ROLES
from actors.roles.role import cap
from orchestrator.errors import HandleRefused
from orchestrator.journal.fold import fold

if TYPE_CHECKING:
    from orchestrator.journal.journal import Journal
    from orchestrator.journal.state import SessionState
    from orchestrator.member import Member
    from orchestrator.registry import Registry
    from orchestrator.supervisor import Supervisor

__all__ = ["loop_of", "revive", "seal", "take_up"]

SEALED = "The process ended while {tool} ran. It may have happened; it will not be run again before that is known."


async def loop_of(journal: Journal, path: str) -> LoopState:
    """Return the loop state of the actor *path* as the journal has it."""
    while True:
        entries = await journal.read(0)
        if entries[-1].seq == journal.seq:
            return fold(entries).actors[path].loop


def seal(journal: Journal, path: str, turn: str, loop: LoopState) -> tuple[LoopState, EndTurn | None]:
    """Answer each call of *turn* whose effect began and whose end nobody recorded; return the loop after it."""
    end: EndTurn | None = None
    for actor, call in tuple(journal.state.in_doubt):
        intent = journal.state.in_doubt[actor, call]
        if actor == path and intent.turn == turn:
            text = SEALED.format(tool=intent.tool)
            fact = CallFinished(turn, ToolResult(call, intent.tool, text, Outcome.UNKNOWN))
            journal.append(path, fact)
            loop, effects = advance(loop, fact)
            end = next((effect for effect in effects if isinstance(effect, EndTurn)), end)
    return loop, end


async def take_up(supervisor: Supervisor, member: Member, loop: LoopState, *, stuck: bool) -> None:
    """Let *member* go on from *loop*: seal what is in doubt, queue what waits, wake it."""
    journal = supervisor.journal
    if loop.phase is not Phase.IDLE:
        loop, end = seal(journal, member.path, loop.turn, loop)
        if end is not None:
            member.actor.state = loop
            await supervisor.ended(member.actor, end)
    actor = member.actor
    actor.state = loop
    for accepted in journal.state.actors[member.path].waiting:
        if loop.phase is Phase.IDLE or accepted.turn != loop.turn:
            actor.mailbox.put(TurnOpened(accepted.turn, accepted.text, accepted.origin, accepted.limits))
    if stuck:
        detail = "the process crashed twice at the same place of this turn"
        actor.mailbox.stop(TurnStopped(loop.turn, StopReason.FAILED, detail))
    if loop.phase is not Phase.IDLE or len(actor.mailbox):
        actor.wake()


def revive(supervisor: Supervisor, registry: Registry, folded: SessionState, principal: Grants) -> None:
    """Make every live actor of *folded* again, parents first. Nothing runs before the caller gives way to the loop.

    Raises `HandleRefused` when a definition on record is not among the resolved ones.
    """
    alive = [actor for actor in folded.actors.values() if not actor.exited]
    missing = sorted({a.spawned.agent for a in alive if registry.get(a.spawned.fingerprint) is None})
    if missing:
        names = ", ".join(missing)
        msg = f"the session was made with other definitions of: {names}; resume it with the ones it was made with"
        raise HandleRefused(msg)
    for state in sorted(alive, key=lambda actor: (actor.path.count("/"), actor.spawned.number)):
        resolved = registry.get(state.spawned.fingerprint)
        assert resolved is not None
        parent = supervisor.members.get(state.spawned.parent)
        ceiling = cap(principal, ROLES[resolved.definition.role].ceiling)
        grants = _no_wider(state.spawned.grants, ceiling)
        record = state.spawned
        member = supervisor.admit(state.path, resolved, parent, record, keep=not state.task and parent is not None)
        member.base = grants
        member.account.spend(state.spent, state.spent.calls)
        if parent is not None:
            parent.account.hold(record.grants.budget)
    for state in folded.actors.values():
        if state.exited:
            payer = _payer(supervisor, folded, state.spawned.parent)
            if payer is not None:
                payer.account.spend(state.spent, state.spent.calls)


def _payer(supervisor: Supervisor, folded: SessionState, path: str) -> Member | None:
    """Return the nearest live actor at or above *path*: it has paid for what an actor that is gone has spent."""
    while path and path not in supervisor.members:
        path = folded.actors[path].spawned.parent
    return supervisor.members.get(path)


def _no_wider(recorded: Grants, present: Grants) -> Grants:
    """Return the recorded grants, narrowed by the principal's present ones."""
    met = attenuate(recorded, present)
    return Grants(met.authorities, met.access, met.roots, recorded.budget)


async def finish(supervisor: Supervisor, folded: SessionState) -> None:
    """Go on with every actor of *folded*: end what had ended without a record of it, take up the rest."""
    for state in tuple(folded.actors.values()):
        member = supervisor.members.get(state.path)
        if member is None:
            continue
        if state.ended is not None:
            member.actor.state = state.loop
            await supervisor.ended(member.actor, state.ended)
            if supervisor.members.get(state.path) is not member:
                continue
        await take_up(supervisor, member, state.loop, stuck=state.stuck)
