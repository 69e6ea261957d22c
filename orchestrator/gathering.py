"""The facts of a decision, gathered anew each time from the capability, the journal, the account and the workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from actors.grants import Access
from actors.intrinsics import INTRINSIC
from actors.tools import Approval
from orchestrator.arguments import effect_key
from orchestrator.capability import Capability
from orchestrator.facts import ArgumentFault, Consent, Facts, Source, Spent, State, Target
from orchestrator.facts import Capability as Right
from orchestrator.registry import Registered
from orchestrator.standing import AccessCheck, Standing, identity_of, look_up

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from actors.tools import Tool
    from orchestrator.clock import Deadlines
    from orchestrator.consents import Consents
    from orchestrator.journal.journal import Journal
    from orchestrator.member import Member
    from orchestrator.runtime import Principal, SessionLimits
    from orchestrator.workspace.roots import Workspace

__all__ = ["Asked", "Gathering"]

NOTHING_MISSING: frozenset[str] = frozenset()
ALIVE = (Source.ALIVE, "")


class Asked(msgspec.Struct, frozen=True):
    """One call as it was decoded, or one tool that is only asked about (no arguments).

    *edited* are the arguments as a person edited them, where one did.
    """

    capability: Capability
    name: str
    call: str = ""
    known: Registered | None = None
    arguments: dict[str, Any] | None = None
    fault: ArgumentFault | None = None
    standing: Standing | None = None
    edited: str = ""


class Gathering:
    """Gathers the facts of one session's decisions; *possible*: there is somebody to ask."""

    def __init__(
        self,
        journal: Journal,
        workspace: Workspace | None,
        limits: SessionLimits,
        principal: Principal,
        consents: Consents,
        deadlines: Deadlines,
        *,
        possible: bool,
    ) -> None:
        self._journal = journal
        self._workspace = workspace
        self._limits = limits
        self._principal = principal
        self._consents = consents
        self._deadlines = deadlines
        opened = journal.state.opened
        self._possible = possible and opened is not None and bool(opened.approver)
        provided = {"principal"} | ({"workspace"} if workspace is not None else set())
        self.present = frozenset(provided | principal.context)

    def facts(self, asked: Asked, consent: Consent | None = None) -> Facts:
        """Gather what `decide` looks at; called anew for every decision. A *consent* given is not looked up again."""
        member, known = asked.capability.member, asked.known
        tool, capability, policy = None if known is None else known.tool, asked.capability, asked.capability.policy
        grants = member.authority(capability.narrowing)
        expired, unresolved = NOTHING_MISSING, ""
        source, fault = ALIVE if known is None or known.origin is None else known.origin.now()
        if known is not None and known.unusable:
            source, fault = Source.UNAVAILABLE, known.unusable
        targets: tuple[Target, ...] = ()
        if tool is not None and not tool.authorities <= grants.authorities:
            expired = member.lost_authorities()
        if tool is not None and asked.arguments is not None:
            if tool.targets:
                targets = self._targets(tool, asked.arguments)
            if tool.access is not Access.READ and self._journal.state.unresolved:
                unresolved = self._unresolved(tool, asked.arguments)
            asks = tool.approval is not Approval.NEVER or (known is not None and known.origin is not None)
            if asks and known is not None and consent is None and asked.fault is None:
                consent = self._consents.consent(capability, asked.call, known, asked.arguments)
        return Facts(
            actor=member.resolved.definition.name,
            tool=tool,
            names=member.resolved.names,
            grants=grants,
            policy=policy,
            capability=Right.REVOKED if capability.revoked or capability.stopping else Right.LIVE,
            source=source,
            source_fault=fault,
            identity=identity_of(self._principal.name, self._principal.grants.access, asked.standing),
            state=self._state(asked),
            expired=expired,
            context=self.present,
            argument_fault=asked.fault,
            targets=targets,
            spent=None if self._goes_on(asked) else self.spent(member, asked.name),
            unresolved=unresolved,
            consent=consent or Consent.NONE,
            approver=self._possible,
            delegates=bool(policy.delegable) and "delegate" in member.resolved.tools and policy.permits("delegate"),
        )

    def _goes_on(self, asked: Asked) -> bool:
        """Tell whether the call has started its child already, before a crash: finding it again costs nothing."""
        path = asked.capability.member.path
        return asked.name == "delegate" and f"{path}\0{asked.call}" in self._journal.state.by_call

    async def standing(self, capability: Capability, tool: str) -> Standing | None:
        """Ask the host about the caller, once; ``None`` where the host has no hook."""
        principal, opened = self._principal, self._journal.state.opened
        if principal.access is None:
            return None
        session = "" if opened is None else opened.session
        owner = principal.owner or principal.name
        check = AccessCheck(session, principal.name, principal.tenant, owner, capability.member.path, tool)
        return await look_up(principal.access, check, self._deadlines)

    def place(self) -> str:
        """Return the workflow's state and revision as one text."""
        state = self._journal.state
        return f"{state.workflow}#{state.moves}"

    def _state(self, asked: Asked) -> State | None:
        """Return where the workflow stands, for an actor whose tools depend on it."""
        chart = asked.capability.member.resolved.definition.tools.states
        if chart is None or (asked.known is not None and asked.known.tool.source == INTRINSIC):
            return None
        name = self._journal.state.workflow or chart.initial
        state, now = chart.get(name), f"{name}#{self._journal.state.moves}"
        made_in = asked.capability.made_in if asked.call else ""
        made_in = f"{chart.initial}{made_in}" if made_in.startswith("#") else made_in
        return State(made_in or now, now, frozenset() if state is None else state.tools)

    def _unresolved(self, tool: Tool, arguments: dict[str, Any]) -> str:
        intent = self._journal.state.unresolved.get(effect_key(tool, arguments))
        return "" if intent is None else f"call {intent.call} of turn {intent.turn}"

    def spent(self, member: Member, name: str) -> Spent | None:
        """Return what the actor's account cannot pay and, for ``delegate``, which limit of children is reached."""
        exhausted = member.account.exhausted()
        if exhausted:
            return Spent(budget=exhausted)
        return self._crowded(member) if name == "delegate" else None

    def _crowded(self, member: Member) -> Spent | None:
        """Tell which limit of children *member* has reached."""
        limits = self._limits
        if member.depth >= limits.depth:
            return Spent(children="too_deep", detail=f"{member.path} is at the depth limit of {limits.depth}")
        if member.alive_children() >= limits.alive:
            return Spent(children="too_many_children", detail=f"{limits.alive} children are alive, the limit")
        if self._journal.state.spawned >= limits.total:
            detail = f"the session has started {limits.total} actors, the limit"
            return Spent(children="too_many_children", detail=detail)
        return None

    def _targets(self, tool: Tool, arguments: Mapping[str, Any]) -> tuple[Target, ...]:
        paths = [path for name in sorted(tool.targets) for path in _strings(arguments.get(name))]
        if self._workspace is None:
            return ()
        found = (self._workspace.target(path, write=tool.access is not Access.READ) for path in paths)
        return tuple(Target(item.requested, item.resolved, item.inside, item.rule) for item in found)


def _strings(value: Any) -> Iterator[str]:
    """Yield every text in a JSON value, however deep it stands."""
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, str):
            yield node
        elif isinstance(node, list):
            stack.extend(node)
        elif isinstance(node, dict):
            stack.extend(node.values())
