"""Why one actor may or may not use one tool: the gates in order, each with its own verdict. Pure.

The gates asked are those of the one decision; this module orders what they say and decides nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import msgspec

from actors.messages import Denial
from orchestrator.catalog.viewpoint import missing_of
from orchestrator.facts import Attempt, Facts, NeedsApproval, Verdict, code_of
from orchestrator.policy import GATES, OFFERED, decide

if TYPE_CHECKING:
    from collections.abc import Callable

    Gate = Callable[[Attempt, Facts], Denial | NeedsApproval | None]

__all__ = ["Explanation", "GateAnswer", "explain", "explanation_json", "explanation_text"]

PASSES = "passes"
AT_THE_CALL = "asked at each call"
LABELS = {PASSES: "pass", AT_THE_CALL: "call", "needs_approval": "ask"}


@attrs.frozen
class GateAnswer:
    """What one gate says: ``passes``, ``asked at each call``, ``needs_approval`` or a denial code.

    ``first`` marks the refusal that the actor is told; later ones are told here only.
    """

    gate: int
    asks: str
    offer: bool
    answer: str
    message: str = ""
    remedy: str = ""
    first: bool = False


@attrs.frozen
class Explanation:
    """Every gate's answer for one actor and one tool, and the verdict of the decision on the whole."""

    actor: str
    tool: str
    answers: tuple[GateAnswer, ...]
    verdict: Verdict
    missing: tuple[str, ...]
    state: str = ""

    @property
    def code(self) -> str:
        """The refusal's code, ``needs_approval``, or nothing."""
        return code_of(self.verdict)

    @property
    def permitted(self) -> bool:
        """Whether the tool is offered."""
        return not isinstance(self.verdict, Denial)


def explain(name: str, facts: Facts) -> Explanation:
    """Walk every gate for an offer of the tool *name* on *facts*. Gates that need arguments are only listed."""
    attempt = Attempt(name, call=False)
    verdict = decide(attempt, facts)
    answers: list[GateAnswer] = []
    for gate in GATES:
        told = verdict if not any(answer.first for answer in answers) else None
        answers.append(_answer(gate, attempt, facts, told))
    state = facts.state.now if facts.state is not None else ""
    return Explanation(facts.actor, name, tuple(answers), verdict, missing_of(facts), state)


def _answer(gate: Gate, attempt: Attempt, facts: Facts, verdict: Verdict | None) -> GateAnswer:
    number, _, asks = (gate.__doc__ or "").partition(": ")
    asks = asks.partition("\n")[0]
    if gate not in OFFERED:
        return GateAnswer(int(number), asks, offer=False, answer=AT_THE_CALL)
    said = gate(attempt, facts)
    if said is None:
        return GateAnswer(int(number), asks, offer=True, answer=PASSES)
    first = said == verdict
    if isinstance(said, NeedsApproval):
        message = "A person must say yes to each call."
        return GateAnswer(int(number), asks, offer=True, answer=code_of(said), message=message, first=first)
    return GateAnswer(
        int(number), asks, offer=True, answer=said.code, message=said.message, remedy=said.remedy, first=first
    )


def explanation_json(explanation: Explanation) -> bytes:
    """Return *explanation* as one JSON object."""
    gates = [attrs.asdict(answer) for answer in explanation.answers]
    return msgspec.json.encode(
        {
            "actor": explanation.actor,
            "tool": explanation.tool,
            "state": explanation.state,
            "permitted": explanation.permitted,
            "code": explanation.code or None,
            "missing": explanation.missing,
            "gates": gates,
        }
    )


def explanation_text(explanation: Explanation) -> str:
    """Return *explanation* for a person to read; ``>`` stands before the refusal that the actor is told."""
    where = f" in the state {explanation.state}" if explanation.state else ""
    lines = [f"{explanation.tool} for {explanation.actor}{where}: {explanation.code or 'permitted'}"]
    for answer in explanation.answers:
        mark = ">" if answer.first else " "
        label = LABELS.get(answer.answer, "deny")
        lines.append(f"{mark} {answer.gate:2} {label:4}  {answer.asks}")
        if answer.message:
            lines.append(f"           {answer.answer}: {answer.message} {answer.remedy}".rstrip())
    if explanation.missing:
        lines.append(f"missing: {', '.join(explanation.missing)}")
    return "\n".join(lines)
