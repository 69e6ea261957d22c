"""One actor incarnation's right to call, alive while one of its turns is open. It is the actor's toolbox.

The policy of a turn lives here and nowhere else: no message carries it, no other actor can reach it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.grants import Access

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Coroutine
    from typing import Any, Protocol

    from actors.grants import Grants
    from actors.messages import ToolCall, ToolResult
    from actors.ports import Offer
    from orchestrator.facts import Verdict
    from orchestrator.focus import Policy
    from orchestrator.member import Member
    from orchestrator.registry import Registered

    class Executor(Protocol):
        """The bridge, as a capability sees it."""

        def offer(self, capability: Capability) -> Offer:
            """Return the tools to offer now."""

        def catalog(self, capability: Capability) -> tuple[tuple[Registered, Verdict], ...]:
            """Return every tool of the definition with its verdict."""

        async def execute(self, capability: Capability, call: ToolCall) -> ToolResult | None:
            """Run one call; ``None`` when it waits for a person."""


__all__ = ["Capability"]


class Capability:
    """The right of *member* to call in *turn*, under *policy* and *narrowing*, until it is revoked.

    ``stopping`` is set before the turn's task is cancelled; ``running`` holds the task of each call in flight,
    ``made_in`` the workflow state in which the model was last asked, ``intent`` the turn's input,
    ``woken`` that what a call waits for has come, so that a turn which parks is to be opened again at once.
    """

    __slots__ = (
        "bridge",
        "incarnation",
        "intent",
        "made_in",
        "member",
        "narrowing",
        "offered",
        "policy",
        "revoked",
        "running",
        "stopping",
        "turn",
        "woken",
    )

    def __init__(
        self, bridge: Executor, member: Member, turn: str, policy: Policy, narrowing: Grants | None, incarnation: int
    ) -> None:
        self.bridge = bridge
        self.member = member
        self.turn = turn
        self.policy = policy
        self.narrowing = narrowing
        self.incarnation = incarnation
        self.revoked = False
        self.made_in = ""
        self.intent = ""
        self.stopping = False
        self.woken = False
        self.running: dict[str, asyncio.Task[object]] = {}
        self.offered: tuple[tuple[object, ...], Offer] | None = None

    def manifest(self) -> Offer:
        """Return the effective tools, those that need approval included."""
        return self.bridge.offer(self)

    def catalog(self) -> tuple[tuple[Registered, Verdict], ...]:
        """Return every tool of the definition with its verdict; never filtered."""
        return self.bridge.catalog(self)

    def concurrent(self, calls: tuple[ToolCall, ...]) -> bool:
        """Tell whether *calls* may overlap: all only read, or are declared parallel-safe."""
        tools = self.member.resolved.tools
        for call in calls:
            known = tools.get(call.name)
            if known is not None and known.tool.access is not Access.READ and not known.tool.parallel_safe:
                return False
        return True

    def call(self, call: ToolCall) -> Coroutine[Any, Any, ToolResult | None]:
        """Run one call through the bridge. Raises nothing but CancelledError."""
        return self.bridge.execute(self, call)
