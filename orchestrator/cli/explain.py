"""``orchestrator explain``: every gate's answer for one actor and one tool."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from orchestrator.catalog.explain import explain as explained
from orchestrator.catalog.explain import explanation_json, explanation_text
from orchestrator.catalog.viewpoint import Viewpoint
from orchestrator.cli.fault import InputFault
from orchestrator.products.audited import subject_of
from orchestrator.workflows.section import nearest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    class Named(Protocol):
        """Something with a name."""

        @property
        def name(self) -> str:
            """The name."""


__all__ = ["explain"]


def explain(what: str, *, actor: str, tool: str, state: str = "", situation: str = "", json: bool = False) -> int:
    """Walk the gates of the decision in order, for an offer of one tool to one actor. Nothing is run.

    Exit code 0 whatever the answer is, 2 for bad usage or input.

    Parameters
    ----------
    what:
        A shipped product, a product file (.yaml) or a workflow file (.yaml).
    actor:
        One of its callers, or of its agents where it names no callers.
    tool:
        The tool's name. One that the actor does not have is explained too.
    state:
        The workflow state; default: the first.
    situation:
        One of the caller's situations.
    json:
        Print one JSON object.

    """
    subject = subject_of(what)
    caller = subject.callers[place_of(actor, "--actor", subject.callers)]
    held = subject.states[place_of(state, "--state", subject.states)] if state else next(iter(subject.states), None)
    there = caller.situations[place_of(situation, "--situation", caller.situations)] if situation else None
    explanation = explained(tool, Viewpoint(caller, subject.states).facts(tool, held, there))
    sys.stdout.write(explanation_json(explanation).decode() if json else explanation_text(explanation))
    sys.stdout.write("\n")
    return 0


def place_of(name: str, option: str, known: Sequence[Named]) -> int:
    """Return where *name* stands in *known*. Raises `InputFault`, naming the nearest."""
    names = [each.name for each in known]
    if name not in names:
        raise InputFault(f"{option} {name}", "there is none of that name", nearest(name, names))
    return names.index(name)
