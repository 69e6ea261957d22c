"""The workflow states of a product file: each with its tools, and which of them lead to which state.

A state that no move leads to is no fault: the host may move a workflow too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.states import WorkflowState
from orchestrator.workflows.document import Mapping, Scalar
from orchestrator.workflows.draft import check_name
from orchestrator.workflows.section import Section, nearest, word_of

if TYPE_CHECKING:
    from orchestrator.workflows.document import Node
    from orchestrator.workflows.fault import FaultLog

__all__ = ["read_states"]

STATE_KEYS = ("name", "tools", "moves")


def read_states(section: Section, tools: frozenset[str]) -> tuple[WorkflowState, ...]:
    """Read the list ``states`` of a product; the first is where a workflow begins. *tools* are the names there are."""
    body = section.sequence("states")
    if body is None:
        return ()
    faults = section.faults
    if not body.items:
        faults.add(body.mark, "'states' is empty", "Name a state, or remove the key.")
    read = [_state(node, number, tools, faults) for number, node in enumerate(body.items, start=1)]
    drafts = [draft for draft in read if draft is not None]
    marks: dict[str, Scalar] = {}
    for word, _, _ in drafts:
        first = marks.setdefault(word.text, word)
        if first is not word:
            message = f"the state {word.text!r} was given on line {first.mark.line}"
            faults.add(word.mark, message, "Give every state its own name.")
    for _, _, moves in drafts:
        for target in moves.values():
            if target.text not in marks:
                faults.add(target.mark, f"there is no state {target.text!r}", nearest(target.text, marks))
    return tuple(_built(*draft) for draft in drafts)


def _state(
    node: Node, number: int, tools: frozenset[str], faults: FaultLog
) -> tuple[Scalar, tuple[Scalar, ...], dict[str, Scalar]] | None:
    if not isinstance(node, Mapping):
        faults.add(node.mark, f"state {number} is {word_of(node)}", "Write a mapping that begins with '- name: NAME'.")
        return None
    named = node.get("name")
    what = f"state {named.text!r}" if isinstance(named, Scalar) and named.text.strip() else f"state {number}"
    section = Section(node, what, faults)
    section.only(*STATE_KEYS)
    name = section.scalar("name", required=True)
    section.sequence("tools", required=True)
    held = section.words("tools")
    for word in held:
        if word.text not in tools:
            faults.add(word.mark, f"there is no tool {word.text!r}", nearest(word.text, tools))
    moves: dict[str, Scalar] = {}
    body = section.mapping("moves")
    inner = Section(body, f"'moves' of {what}", faults) if body is not None else None
    for key, _ in body.pairs if body is not None else ():
        target = inner.scalar(key.text) if inner else None
        if key.text not in {word.text for word in held}:
            message = f"{key.text!r} moves {what} on and is not among its tools"
            faults.add(key.mark, message, nearest(key.text, (word.text for word in held)))
        if target is not None:
            moves[key.text] = target
    if name is None:
        return None
    check_name(name, faults)
    return name, held, moves


def _built(name: Scalar, tools: tuple[Scalar, ...], moves: dict[str, Scalar]) -> WorkflowState:
    return WorkflowState(
        name.text,
        frozenset(word.text for word in tools),
        tuple((tool, target.text) for tool, target in moves.items()),
    )
