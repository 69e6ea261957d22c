"""The facts of a decision, gathered anew each time from the capability, the journal, the account and the workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from actors.grants import Access
from orchestrator.arguments import effect_key
from orchestrator.facts import Capability as Right
from orchestrator.facts import Facts, Spent, Target

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from actors.tools import Tool
    from orchestrator.capability import Capability
    from orchestrator.journal.journal import Journal
    from orchestrator.member import Member
    from orchestrator.registry import Registered
    from orchestrator.runtime import SessionLimits
    from orchestrator.workspace.roots import Workspace

__all__ = ["Gathering"]

NOTHING_MISSING: frozenset[str] = frozenset()


class Gathering:
    """Gathers the facts of one session's decisions."""

    def __init__(self, journal: Journal, workspace: Workspace | None, limits: SessionLimits) -> None:
        self._journal = journal
        self._workspace = workspace
        self._limits = limits
        self._context = frozenset({"principal"} | ({"workspace"} if workspace is not None else set()))

    def facts(
        self,
        capability: Capability,
        name: str,
        known: Registered | None,
        arguments: Mapping[str, Any] | None = None,
        fault: Any = None,
    ) -> Facts:
        """Gather what `decide` looks at; called anew for every decision."""
        member = capability.member
        tool = None if known is None else known.tool
        grants = member.authority(capability.narrowing)
        expired, unresolved = NOTHING_MISSING, ""
        targets: tuple[Target, ...] = ()
        if tool is not None and tool.authorities and not tool.authorities <= grants.authorities:
            expired = member.lost_authorities()
        if tool is not None and arguments is not None:
            if tool.targets:
                targets = self._targets(tool, arguments)
            if tool.access is not Access.READ and self._journal.state.unresolved:
                intent = self._journal.state.unresolved.get(effect_key(tool, dict(arguments)))
                unresolved = "" if intent is None else f"call {intent.call} of turn {intent.turn}"
        policy = capability.policy
        return Facts(
            actor=member.resolved.definition.name,
            tool=tool,
            names=member.resolved.names,
            grants=grants,
            policy=policy,
            capability=Right.REVOKED if capability.revoked or capability.stopping else Right.LIVE,
            expired=expired,
            context=self._context,
            argument_fault=fault,
            targets=targets,
            spent=self.spent(member, name),
            unresolved=unresolved,
            delegates=bool(policy.delegable) and "delegate" in member.resolved.tools and policy.permits("delegate"),
        )

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
