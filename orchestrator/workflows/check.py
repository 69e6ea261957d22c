"""Whether the names in a draft fit together: agents, children, needs, arrays to go over, places to fill in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.roles.role import Role
from orchestrator.workflows.document import mark_at
from orchestrator.workflows.graph import find_cycles, upstream
from orchestrator.workflows.schema import Finding, JSONValue, find, is_array
from orchestrator.workflows.section import nearest
from orchestrator.workflows.template import ITEM, NAME, Reference, TemplateFault, part_of, tokens

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.workflows.document import Scalar
    from orchestrator.workflows.draft import AgentDraft, StepDraft
    from orchestrator.workflows.fault import FaultLog

__all__ = ["check_agents", "check_steps"]


def check_agents(agents: tuple[AgentDraft, ...], faults: FaultLog) -> None:
    """Note children that are no agents and agents that would be their own descendants."""
    known = {agent.spec.name: agent for agent in agents}
    edges: dict[str, tuple[str, ...]] = {}
    for agent in agents:
        for child in agent.children:
            if child.text not in known:
                remedy = nearest(child.text, known)
                faults.add(child.mark, f"agent {agent.spec.name!r} has an unknown child {child.text!r}", remedy)
        edges[agent.spec.name] = tuple(name for name in agent.spec.children if name in known)
    for cycle in find_cycles(edges):
        message = f"agents are each other's children: {' -> '.join(cycle)}"
        faults.add(known[cycle[0]].mark, message, "Take one of them out of 'children'.")


def check_steps(steps: tuple[StepDraft, ...], agents: Mapping[str, str], text: str, faults: FaultLog) -> None:
    """Note everything in *steps* that names something wrongly.

    *agents* are the roles of all agents by name, empty where none was read; *text* is the file, to place faults.
    """
    known: dict[str, StepDraft] = {}
    for draft in steps:
        first = known.setdefault(draft.step.id, draft)
        if first is not draft and draft.step.id:
            message = f"the step id {draft.step.id!r} was given on line {first.mark.line}"
            faults.add(draft.mark, message, "Give every step its own id.")
    needs = {
        name: tuple(need for need in draft.step.needs if need in known and need != name)
        for name, draft in known.items()
    }
    for draft in steps:
        if draft.agent and draft.agent.text not in agents:
            remedy = nearest(draft.agent.text, agents)
            faults.add(draft.agent.mark, f"there is no agent {draft.agent.text!r}", remedy)
        check_needs(draft, known, faults)
        check_for_each(draft, known, faults)
        check_review(draft, agents, faults)
        for prompt in (draft.prompt, draft.review.prompt if draft.review else None):
            if prompt is not None:
                check_prompt(prompt, draft, known, upstream(draft.step.id, needs), Prompts(text, faults))
    for cycle in find_cycles(needs):
        message = f"steps wait for each other: {' -> '.join(cycle)} (-> means needs)"
        faults.add(known[cycle[0]].mark, message, "Take one of them out of 'needs' or 'for_each'.")


def check_needs(draft: StepDraft, known: Mapping[str, StepDraft], faults: FaultLog) -> None:
    """Note needs that are no steps, and a step that needs itself."""
    for need in draft.needs:
        if need.text == draft.step.id:
            faults.add(need.mark, f"step {need.text!r} needs itself", "Take it out of 'needs'.")
        elif need.text not in known:
            faults.add(need.mark, f"there is no step {need.text!r} to need", nearest(need.text, known))


def check_for_each(draft: StepDraft, known: Mapping[str, StepDraft], faults: FaultLog) -> None:
    """Note a ``for_each`` that does not plainly lead to an array of an earlier step."""
    if draft.for_each is None:
        return
    mark, written = draft.for_each.mark, draft.for_each.text
    source, *path = written.split(".")
    if not all(map(NAME.fullmatch, (source, *path))):
        faults.add(mark, f"{written!r} is not a path to an output", "Write it like plan.files.")
    elif source == draft.step.id:
        faults.add(mark, f"step {source!r} goes over its own output", "Name an earlier step.")
    elif source not in known:
        faults.add(mark, f"there is no step {source!r} to go over", nearest(source, known))
    elif result_schema(known[source]) is None:
        remedy = "Give it an 'output' schema that has this array."
        faults.add(mark, f"step {source!r} has no 'output' schema, so {written!r} is not known to be an array", remedy)
    else:
        found = find(result_schema(known[source]), tuple(path))
        if isinstance(found, Finding) or not is_array(found):
            message = f"the 'output' schema of step {source!r} does not say that {written!r} is an array"
            faults.add(mark, message, "Name an array of it, or write 'type: array' there.")


def result_schema(draft: StepDraft) -> JSONValue:
    """Return the schema of what later steps see of *draft*, or None for plain text."""
    if draft.for_each is None:
        return draft.schema
    return {"type": "array", "items": {"type": "string"} if draft.schema is None else draft.schema}


def check_review(draft: StepDraft, agents: Mapping[str, str], faults: FaultLog) -> None:
    """Note a reviewer and a fixer that are no agents, or of another role, and a step that would judge itself."""
    if draft.review is None:
        return
    for word, role in ((draft.review.by, Role.REVIEWER), (draft.review.fix_by, Role.FIXER)):
        if word is None:
            continue
        fitting = sorted(name for name, its in agents.items() if its == role)
        none = f"Add an agent with 'role: {role.value}'."
        if word.text not in agents:
            remedy = nearest(word.text, fitting) if fitting else none
            faults.add(word.mark, f"there is no agent {word.text!r}", remedy)
        elif agents[word.text] in set(Role) - {role}:
            message = f"agent {word.text!r} is a {agents[word.text]}, and only a {role.value} can do this"
            faults.add(word.mark, message, f"Name one of {', '.join(fitting)}." if fitting else none)
    by = draft.review.by
    reviews = by is not None and agents.get(by.text) == Role.REVIEWER
    if by is not None and reviews and draft.agent is not None and by.text == draft.agent.text:
        faults.add(by.mark, f"agent {by.text!r} would review its own work", "Name another reviewer.")


def check_prompt(
    prompt: Scalar, draft: StepDraft, known: Mapping[str, StepDraft], before: frozenset[str], prompts: Prompts
) -> None:
    """Note what in a *prompt* of *draft* cannot be filled in; *before* are the steps that are done by then."""
    for number, (_, token) in enumerate(tokens(prompt.text)):
        part = part_of(token)
        fault = None
        if isinstance(part, TemplateFault):
            fault = part.message, part.remedy
        elif isinstance(part, Reference):
            fault = item_fault(draft, known, part) if part.step == ITEM else step_fault(part, known, before)
        if fault:
            prompts.add(prompt, number, *fault)


def item_fault(draft: StepDraft, known: Mapping[str, StepDraft], reference: Reference) -> tuple[str, str] | None:
    """Return why the item of *draft* has nothing at *reference*, and the remedy."""
    if draft.for_each is None:
        return f"{reference.text} speaks of an item, and the step has no 'for_each'", "Add 'for_each', or remove it."
    source, *path = draft.for_each.text.split(".")
    if source not in known:
        return None
    found = find(result_schema(known[source]), (*path, "0", *reference.path))
    if found is Finding.NOWHERE and find(result_schema(known[source]), (*path, "0")) is not Finding.NOWHERE:
        return f"{reference.text} is not in the items of {draft.for_each.text!r}", "Name a property of their schema."
    return None


def step_fault(reference: Reference, known: Mapping[str, StepDraft], before: frozenset[str]) -> tuple[str, str] | None:
    """Return why *reference* to a step cannot be filled in, and the remedy."""
    if reference.step not in known:
        return f"{reference.text} speaks of an unknown step {reference.step!r}", nearest(reference.step, known)
    if reference.step not in before:
        remedy = f"Add {reference.step!r} to 'needs'."
        return f"{reference.text} speaks of step {reference.step!r}, which need not be done by then", remedy
    schema = result_schema(known[reference.step])
    if not reference.path:
        return None
    if schema is None:
        remedy = f"Give step {reference.step!r} an 'output' schema."
        return f"{reference.text} speaks of a part of an output that is plain text", remedy
    if find(schema, reference.path) is Finding.NOWHERE:
        return f"{reference.text} is not in the 'output' schema of step {reference.step!r}", "Name a property of it."
    return None


class Prompts:
    """Places faults at the very characters of a prompt, as far as the file shows them as written."""

    def __init__(self, text: str, faults: FaultLog) -> None:
        """Place faults in the file *text*."""
        self.text = text
        self.faults = faults

    def add(self, prompt: Scalar, number: int, message: str, remedy: str) -> None:
        """Note a fault at the *number*-th token of *prompt*, or where the prompt begins when escapes hide tokens."""
        written = tokens(self.text[prompt.begin : prompt.end])
        mark = prompt.mark
        if [token for _, token in written] == [token for _, token in tokens(prompt.text)]:
            mark = mark_at(self.text, mark.place, prompt.begin + written[number][0])
        self.faults.add(mark, message, remedy)
