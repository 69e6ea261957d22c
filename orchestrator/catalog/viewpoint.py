"""What one caller sees of a catalog: facts of an offer, asked of the one decision. Pure; nothing is decided here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from actors.grants import covers, lend
from actors.messages import Denial
from orchestrator.denials import CODES
from orchestrator.facts import PERMIT, Attempt, Facts, State, Verdict, code_of
from orchestrator.policy import decide

if TYPE_CHECKING:
    from actors.states import WorkflowState
    from actors.tools import Tool
    from orchestrator.catalog.subject import Caller, Situation

__all__ = ["Cell", "Viewpoint", "missing_of"]


def missing_of(facts: Facts) -> tuple[str, ...]:
    """Return every authority and then every context field that the tool asks for and *facts* lack, for people.

    The decision names one rule; a person who wants to mend it needs all of them.
    """
    tool = facts.tool
    if tool is None:
        return ()
    authorities = (name for name in sorted(tool.authorities) if not covers(facts.grants.authorities, name))
    return (*authorities, *sorted(tool.needs - facts.context))


@attrs.frozen
class Cell:
    """One caller's verdict on one tool.

    ``states`` are the workflow states in which it is offered (none when there are no states). ``situations`` names
    those of the caller's situations that turn the refusal into an offer.
    """

    tool: str
    verdict: Verdict
    missing: tuple[str, ...]
    definition_bytes: int
    states: tuple[str, ...] = ()
    situations: tuple[str, ...] = ()

    @property
    def permitted(self) -> bool:
        """Whether the tool is offered; one that needs a person's yes is."""
        return not isinstance(self.verdict, Denial)

    @property
    def code(self) -> str:
        """The refusal's code, ``needs_approval``, or nothing."""
        return code_of(self.verdict)

    @property
    def gate(self) -> int:
        """The gate that refuses, or 0."""
        return CODES[self.verdict.code][0] if isinstance(self.verdict, Denial) else 0


class Viewpoint:
    """One caller's view. Without states a tool is asked about once; with states once in each, and the best counts."""

    def __init__(self, caller: Caller, states: tuple[WorkflowState, ...] = ()) -> None:
        self.caller = caller
        self._states = states
        self._tools: dict[str, Tool] = {tool.name: tool for tool in caller.definition.offered}
        self._names = tuple(self._tools)

    def facts(
        self,
        name: str,
        state: WorkflowState | None = None,
        situation: Situation | None = None,
        context: frozenset[str] = frozenset(),
    ) -> Facts:
        """Return the facts of an offer of *name* in *state* and *situation*, with more *context* when given."""
        caller = self.caller
        grants, present = caller.grants, caller.context | context
        if situation is not None:
            grants, present = lend(grants, situation.grants), present | situation.context
        return Facts(
            actor=caller.name,
            tool=self._tools.get(name),
            names=self._names,
            grants=grants,
            policy=caller.policy,
            state=None if state is None else State(state.name, state.name, state.tools),
            context=present,
            approver=caller.approver,
        )

    def verdicts(self, name: str, situation: Situation | None = None) -> tuple[tuple[str, Verdict], ...]:
        """Return the verdict in each state; without states the one verdict, under an empty name."""
        states = self._states or (None,)
        asked = ((state.name if state else "", self.facts(name, state, situation)) for state in states)
        return tuple((state, decide(Attempt(name, call=False), facts)) for state, facts in asked)

    def cell(self, name: str, definition_bytes: int) -> Cell:
        """Return the cell of the tool *name*, whose encoded definition has that size."""
        found = self.verdicts(name)
        verdict = best(tuple(each for _, each in found))
        helping: tuple[str, ...] = ()
        if isinstance(verdict, Denial):
            helping = tuple(s.name for s in self.caller.situations if self.offers(name, s))
        offered = tuple(state for state, each in found if state and not isinstance(each, Denial))
        return Cell(name, verdict, missing_of(self.facts(name)), definition_bytes, offered, helping)

    def offers(self, name: str, situation: Situation | None = None) -> bool:
        """Tell whether *name* is offered in *situation*, in any state."""
        return any(not isinstance(verdict, Denial) for _, verdict in self.verdicts(name, situation))

    def could(self, name: str, context: frozenset[str]) -> bool:
        """Tell whether *name* would be offered in any state and situation, if *context* were present too."""
        return any(
            not isinstance(decide(Attempt(name, call=False), self.facts(name, state, situation, context)), Denial)
            for state in self._states or (None,)
            for situation in (None, *self.caller.situations)
        )


def best(verdicts: tuple[Verdict, ...]) -> Verdict:
    """Return the verdict that is nearest to a permit: a permit, a question, or the refusal of the latest gate."""
    return max(verdicts, key=_nearness)


def _nearness(verdict: Verdict) -> int:
    if verdict == PERMIT:
        return 100
    return CODES[verdict.code][0] if isinstance(verdict, Denial) else 99
