"""From a Chat Completions request back to what an actor asked, so that a playbook can answer it as a model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from actors.messages import ModelReply, ReplyStop, Results, Said, ToolCall, ToolResult
from actors.ports import ModelRequest, OfferedTool
from orchestrator.models.wire.request import BROKEN
from orchestrator.workflows.cast import definitions
from orchestrator.workflows.load import load_plan

if TYPE_CHECKING:
    from collections.abc import Iterable

    from actors import AgentDefinition
    from actors.messages import Item
    from orchestrator.products.product import Product


def cast_of(product: Product) -> dict[str, str]:
    """The agents of a product: the name of each by its instructions."""
    pool = {tool.name: tool for tool in product.tools}
    plan = load_plan(product.workflow, pool)
    cast: dict[str, str] = {}
    learn(definitions(plan.agents, pool, states=product.states).values(), cast)
    return cast


def learn(agents: Iterable[AgentDefinition], cast: dict[str, str]) -> None:
    """Put the agents and whom they may start into *cast*."""
    for agent in agents:
        assert cast.setdefault(agent.full_instructions(), agent.name) == agent.name, "two agents read alike"
        learn(agent.children, cast)


def asked(body: dict[str, Any], cast: dict[str, str]) -> ModelRequest:
    """The request of an actor that *body* came from.

    A call whose arguments were broken on the way was a slip of the tongue: it is forgotten, with what it was told, so
    that the playbook says it again. Of calls that say the same in one reply the first counts.
    """
    messages = list(body["messages"])
    system = messages.pop(0)["content"] if messages[0]["role"] == "system" else ""
    tools = tuple(
        OfferedTool(function["name"], function["description"], json.dumps(function["parameters"]))
        for function in (tool["function"] for tool in body.get("tools", ()))
    )
    agent = cast.get(system, "") or next(iter(cast.values()), "worker")
    return ModelRequest(agent, agent, "", system, tuple(history(messages)), tools)


def history(messages: list[dict[str, Any]]) -> list[Item]:
    """The items of a conversation."""
    items: list[Item] = []
    answers = {message["tool_call_id"]: message["content"] for message in messages if message["role"] == "tool"}
    for message in messages:
        if message["role"] == "user":
            items.append(Said(message["content"]))
        elif message["role"] == "assistant":
            items += spoken(message, answers)
    return items


def spoken(message: dict[str, Any], answers: dict[str, str]) -> list[Item]:
    """One reply, and the results of its calls."""
    calls: dict[tuple[str, str], ToolCall] = {}
    for made in message.get("tool_calls", ()):
        name, arguments = made["function"]["name"], made["function"]["arguments"]
        if BROKEN not in json.loads(arguments):
            calls.setdefault((name, arguments), ToolCall(made["id"], name, arguments))
    if not calls:
        return [] if "tool_calls" in message else [ModelReply(message["content"])]
    results = tuple(ToolResult(call.id, call.name, answers[call.id]) for call in calls.values())
    return [ModelReply(message["content"] or "", tuple(calls.values()), ReplyStop.TOOL_CALLS), Results(results)]
