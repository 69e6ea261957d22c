"""A real session whose models say what the host tells them: memory store, real supervisor, real bridge, real tools."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from actors.messages import CallFinished, Limits, ModelReply, ReplyStop, StopReason, ToolCall, TurnOrigin
from orchestrator.agent import Agent
from orchestrator.approver import Answer, Approver, Verdict
from orchestrator.errors import LoanRefused
from orchestrator.facts import NeedsApproval, Permit
from orchestrator.focus import Policy
from orchestrator.journal.consent import ApprovalAsked
from orchestrator.journal.memory import MemoryStore
from orchestrator.journal.records import TurnAccepted, decode
from orchestrator.loans import lend_to
from orchestrator.post import Mail
from orchestrator.runtime import Principal, RuntimeConfig, SessionLimits
from orchestrator.turn import Stop, Transition, Turn
from tests.proof.kernel_values import defined, grants, workspace
from tests.proof.naive import TOOLS

if TYPE_CHECKING:
    from collections.abc import Callable

    from actors.ports import ModelRequest
    from orchestrator.agent import SessionStart
    from orchestrator.member import Member
    from orchestrator.session import Session, SessionHandle
    from orchestrator.supervisor import Supervisor
    from tests.proof.terms import Cast, Focus, Holding

__all__ = ["Puppets", "Stage"]

KEY = "the key of the one who answers"
UNLIMITED = Limits(steps=None, calls=None, seconds=None, repeats=1_000_000)


class Puppets:
    """A model that answers each actor when, and with what, the host says."""

    def __init__(self, heard: Callable[[ModelRequest], None]) -> None:
        self._heard = heard
        self.asked: dict[str, asyncio.Future[ModelReply]] = {}

    async def reply(self, request: ModelRequest, _: Callable[[str], None]) -> ModelReply:
        """Wait for the host's answer."""
        self._heard(request)
        answer: asyncio.Future[ModelReply] = asyncio.get_running_loop().create_future()
        self.asked[request.actor] = answer
        try:
            return await answer
        finally:
            if self.asked.get(request.actor) is answer:
                del self.asked[request.actor]

    def answer(self, path: str, reply: ModelReply) -> None:
        """Let the model of *path* say *reply*."""
        self.asked.pop(path).set_result(reply)


class Stage:
    """One session, from the host's side. Everything it does is over, or waits for the host, when it returns."""

    def __init__(self, cast: Cast, *, watches: bool = True) -> None:
        """With *watches* every offer made to a model is held to what may be used."""
        self.cast = cast
        self.watches = watches
        self.store = MemoryStore()
        self.effects: list[tuple[str, str]] = []
        self.definition = defined(cast.root, self._run)
        self.handle: SessionHandle | None = None
        self._start: SessionStart | None = None
        self._session: Session | None = None
        self._read = 0
        self._calls = 0
        self._spawned = 0
        self._parked: dict[str, str] = {}
        self.faults: list[str] = []
        self.puppets = Puppets(self.offered)

    async def _run(self, name: str, context: Any) -> str:
        self.effects.append((context.actor, name))
        if name == "stall":
            await asyncio.get_running_loop().create_future()
        return f"{name} ran"

    async def open(self, principal: Holding) -> None:
        """Start the session, or take it up again where it was closed."""
        config = RuntimeConfig(
            self.puppets,
            Principal(grants=grants(principal)),
            SessionLimits(depth=self.cast.depth, alive=self.cast.alive),
            workspace(),
            self.store,
            approver=Approver(KEY) if self.cast.approver else None,
        )
        self._start = Agent(self.definition, config).start(self.handle)
        self._session = await self._start.__aenter__()
        self.handle = self._session.snapshot()
        await self.rest()

    async def close(self) -> None:
        """Close the session; it can be opened again."""
        if self._start is not None:
            await self._start.__aexit__(None, None, None)
            self._start = self._session = None

    @property
    def supervisor(self) -> Supervisor:
        """What owns the actors."""
        assert self._start is not None
        assert self._start.supervisor is not None
        return self._start.supervisor

    def member(self, path: str) -> Member:
        """One live actor."""
        return self.supervisor.members[path]

    async def rest(self) -> None:
        """Return when nothing can happen any more until the host does something."""
        loop: Any = asyncio.get_running_loop()
        while loop._ready:  # noqa: ASYNC110  # it gives way until no callback is left; it waits for no time
            await asyncio.sleep(0)

    async def turn(self, path: str, focus: Focus, narrowing: Holding | None) -> None:
        """Give an actor a turn of its own."""
        policy, terms = Policy(focus.allowed, focus.denied), None if narrowing is None else grants(narrowing)
        if self.member(path).parent is None:
            assert self._session is not None
            await self._session.send(Turn("go", policy, terms, UNLIMITED))
        else:
            turn = TurnAccepted(self.supervisor.next_turn(), "go", TurnOrigin.STEP, policy, terms, UNLIMITED)
            self.supervisor.accept(self.member(path), turn)
        await self.rest()

    async def tell(self, path: str) -> None:
        """Send an idle actor a message."""
        Mail(self.supervisor).tell(path, "more")
        await self.rest()

    async def finish(self, path: str) -> None:
        """Let the actor give its final answer."""
        self.puppets.answer(path, ModelReply("done"))
        await self.rest()

    async def call(self, path: str, name: str, arguments: str) -> str:
        """Let the actor call a tool; return ``permitted`` or the code of the denial."""
        self._calls += 1
        call = ToolCall(f"call-{self._calls}", name, arguments)
        before = len(self.effects)
        self._records()
        self.puppets.answer(path, ModelReply("", (call,), ReplyStop.TOOL_CALLS))
        await self.rest()
        for record in self._records():
            if isinstance(record, CallFinished) and record.result.call_id == call.id:
                if record.result.denial is not None:
                    assert len(self.effects) == before, f"{name} was refused and ran all the same"
                    return record.result.denial.code
                break
            if isinstance(record, ApprovalAsked) and record.call == call.id:
                self._parked[path] = call.id
                assert len(self.effects) == before, f"{name} waits for a person and ran all the same"
                return "needs_approval"
        if name in TOOLS and name in {tool.name for tool in self.member(path).resolved.definition.tools.direct}:
            assert self.effects[before:] == [(path, name)], f"{name} was permitted and did not run once"
        return "permitted"

    async def answer(self, path: str, verdict: str, arguments: str, *, rule: bool) -> str:
        """Answer the question of a parked turn; return what its call came to."""
        assert self._session is not None
        call = self._parked.pop(path)
        approval = self.supervisor.journal.state.asked_for[path, call]
        self._records()
        always = ("key",) if rule else ()
        await self._session.send(Answer(approval, Verdict(verdict), KEY, arguments=arguments, always=always))
        await self.rest()
        for record in self._records():
            if isinstance(record, CallFinished) and record.result.call_id == call:
                return "permitted" if record.result.denial is None else record.result.denial.code
        return "no answer"

    async def move(self, state: str) -> None:
        """Let the host move the workflow."""
        assert self._session is not None
        await self._session.send(Transition(state))
        await self.rest()

    def offered(self, request: ModelRequest) -> None:
        """A model is asked: what it is offered must be what it may use now."""
        if not self.watches:
            return
        capability = self.member(request.actor).capability
        said = [] if capability is None else capability.catalog()
        usable = {item.tool.name for item, verdict in said if isinstance(verdict, Permit | NeedsApproval)}
        names = {tool.name for tool in request.tools}
        if names != usable:
            self.faults.append(f"{request.actor} was offered {sorted(names)} and may use {sorted(usable)}")

    def numbered(self, arguments: str) -> str:
        """Argument text with a number of its own, so that no call repeats another."""
        return arguments.replace("%d", str(self._calls + 1))

    def _records(self) -> list[Any]:
        assert self.handle is not None
        records = self.store.shelves[self.handle.session].records
        fresh = [decode(data).record for data in records[self._read :]]
        self._read = len(records)
        return fresh

    async def host_spawn(self, name: str) -> None:
        """Start an actor below the root that stays until it is stopped, as a workflow does."""
        root = self.member(self.definition.address)
        definition = next(child for child in self.definition.children if child.name == name)
        assert self._start is not None
        self._spawned += 1
        resolved = self._start.registry.resolve(definition)
        self.supervisor.spawn(resolved, root, root.base, call=f"host {self._spawned}", keep=True)
        await self.rest()

    async def lend(self, lender: str, borrower: str, what: Holding) -> bool:
        """Lend until the borrower's present turn ends; return whether the loan was made."""
        turn = self.supervisor.journal.state.actors[borrower].waiting[0].turn
        try:
            lend_to(self.supervisor.journal, self.member(lender), self.member(borrower), grants(what), turn)
        except LoanRefused:
            return False
        return True

    async def stop_turn(self, path: str) -> None:
        """Stop the actor's present turn."""
        turn = self.supervisor.journal.state.actors[path].waiting[0].turn
        self.supervisor.stops.turn(self.member(path), turn, StopReason.CANCELLED, "stopped by the host")
        await self.rest()

    async def stop_tree(self, path: str) -> None:
        """Stop the actor and all below it; the root stays, without a turn."""
        assert self._session is not None
        if self.member(path).parent is None:
            await self._session.send(Stop("tree"))
        else:
            await self.supervisor.stops.tree(self.member(path), "stopped by the host")
        await self.rest()

    def picture(self, only: str = "") -> dict[str, dict[str, str] | None]:
        """Every live actor, or *only* one; for one that is in a turn, what each of its tools would be answered now."""
        found: dict[str, dict[str, str] | None] = {}
        for path, member in self.supervisor.members.items():
            if only not in ("", path):
                continue
            capability = member.capability
            if capability is None or path not in self.puppets.asked:
                found[path] = None
                continue
            found[path] = {
                item.tool.name: "permitted" if isinstance(said, Permit) else getattr(said, "code", "needs_approval")
                for item, said in capability.catalog()
            }
        assert not self.faults, self.faults
        return found
