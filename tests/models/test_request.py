"""A history as a provider is sent it: every call paired, every name legal, no message empty."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.messages import ModelReply, ReplyStop, Results, Said, ToolCall, ToolResult
from orchestrator.models.provider import MISTRAL_CALL_ID
from orchestrator.models.wire.request import BROKEN, NO_RESULT, NOTHING, Form, Names, body
from orchestrator.models.wire.schema import fit_schema
from tests.models.asking import request, tool
from tests.models.strict import refusal

if TYPE_CHECKING:
    from actors.messages import Item
    from actors.ports import ModelRequest

TEXTS = st.text(max_size=6)
NAMES = st.sampled_from(["read", "repo.read", "repo_read", "x" * 128, "", "na me", "\u4e16", "search"])
ARGUMENTS = st.sampled_from(
    ["{}", '{"a":1}', "", "[]", "null", '{"a":', "{a:1}", "NaN", '"x"', '{"a":1} x', "[" * 5000]
)


@st.composite
def histories(draw: st.DrawFn) -> tuple[Item, ...]:
    """A history as the loop keeps it: ids unique, every call answered."""
    items: list[Item] = [Said(draw(TEXTS))]
    made = 0
    for _ in range(draw(st.integers(0, 4))):
        count = draw(st.integers(0, 3))
        ids = [
            draw(st.sampled_from(["call_{}", "t0001.{}.1", "{}" + "y" * 60, "\u00e9{}"])).format(made + n)
            for n in range(count)
        ]
        made += count
        calls = tuple(ToolCall(known, draw(NAMES), draw(ARGUMENTS)) for known in ids)
        items.append(ModelReply(draw(TEXTS), calls, ReplyStop.TOOL_CALLS if calls else ReplyStop.END))
        items.append(
            Results(tuple(ToolResult(call.id, call.name, draw(TEXTS)) for call in calls))
            if calls
            else Said(draw(TEXTS))
        )
    return tuple(items)


def sent(asked: ModelRequest, **form: Any) -> dict[str, Any]:
    """The body of a request."""
    how = Form("m", **form)
    found: dict[str, Any] = json.loads(body(asked, Names(asked, how.call_ids), how, fit_schema))
    return found


@pytest.mark.requirement("I15")
@given(histories(), st.lists(NAMES.filter(bool), unique=True, max_size=3))
def test_a_strict_provider_takes_every_history_and_every_name_comes_back(
    history: tuple[Item, ...], names: list[str]
) -> None:
    asked = request(*history, tools=tuple(map(tool, names)))
    assert refusal(sent(asked)) == ""
    edge = Names(asked, Form("m").call_ids)
    assert [edge.canonical(edge.tool(name)) for name in names] == names
    assert edge.canonical("never_heard_of") == "never_heard_of"


def test_names_of_tools_that_are_gone_are_the_names_they_had() -> None:
    reply = ModelReply("", (ToolCall("c1", "repo.read", "{}"),), ReplyStop.TOOL_CALLS)
    history = (Said("Go."), reply, Results((ToolResult("c1", "repo.read", "done"),)))
    before, after = sent(request(tools=(tool("repo.read"),))), sent(request(*history, tools=(tool("other"),)))
    called = after["messages"][2]["tool_calls"][0]["function"]["name"]
    assert called == before["tools"][0]["function"]["name"] != "repo.read"


def test_what_was_not_asked_for_is_not_sent() -> None:
    assert sent(request(Said("Hi")), counts=False) == {
        "model": "m",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
        "stream": True,
    }
    assert sent(request(), limit_field="max_completion_tokens", max_tokens=9)["max_completion_tokens"] == 9
    assert [m["role"] for m in sent(request(instructions=" \n"))["messages"]] == ["user"]


@pytest.mark.parametrize("arguments", ["", "[]", '{"a":', "{a:1}", "null", "NaN"])
def test_arguments_that_are_no_object_are_quoted_in_one_and_others_stay_letter_for_letter(arguments: str) -> None:
    calls = (ToolCall("c1", "read", arguments), ToolCall("c2", "read", '{ "a" : 1.0 }'))
    results = Results(tuple(ToolResult(call.id, "read", "told") for call in calls))
    made = sent(request(Said("Go."), ModelReply("", calls), results))["messages"][2]["tool_calls"]
    assert json.loads(made[0]["function"]["arguments"]) == {BROKEN: arguments}
    assert made[1]["function"]["arguments"] == '{ "a" : 1.0 }'


def test_an_empty_text_is_a_sign_of_emptiness_and_an_empty_reply_is_left_out() -> None:
    reply = ModelReply("", (ToolCall("c1", "read", "{}"),))
    history = (Said(""), ModelReply(""), Said("Go."), reply, Results((ToolResult("c1", "read", ""),)))
    messages = sent(request(*history))["messages"][1:]
    assert [(m["role"], m["content"]) for m in messages] == [
        ("user", NOTHING),
        ("user", "Go."),
        ("assistant", None),
        ("tool", NOTHING),
    ]


def test_a_call_without_a_result_gets_one_and_a_result_without_a_call_goes() -> None:
    reply = ModelReply("", (ToolCall("c1", "read", "{}"), ToolCall("c2", "read", "{}")))
    history = (Said("Go."), reply, Results((ToolResult("c2", "read", "two"), ToolResult("c9", "read", "?"))))
    told = [m for m in sent(request(*history))["messages"] if m["role"] == "tool"]
    assert [(m["tool_call_id"], m["content"]) for m in told] == [("c1", NO_RESULT), ("c2", "two")]


def test_a_provider_with_short_ids_gets_short_ids_that_stay_apart() -> None:
    calls = tuple(ToolCall(f"call_{number}", "read", "{}") for number in range(50))
    results = Results(tuple(ToolResult(call.id, "read", "told") for call in calls))
    made = sent(request(Said("Go."), ModelReply("", calls), results), call_ids=MISTRAL_CALL_ID)["messages"]
    ids = [call["id"] for call in made[2]["tool_calls"]]
    assert ids == [message["tool_call_id"] for message in made[3:]]
    assert len(set(ids)) == 50
    assert all(len(known) == 9 and known.isalnum() for known in ids)
