"""A selector narrows what is offered and nothing else; ``find_tools`` shows an actor the rest of its own tools."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors import Access, AgentDefinition, Grants, Limits, Role, ToolSet
from actors.errors import DefinitionError
from actors.intrinsics import INTRINSICS
from actors.messages import Outcome
from actors.selection import Selector
from orchestrator import Agent, Policy, RuntimeConfig, Turn
from orchestrator.models.function import FunctionModel
from orchestrator.runtime import OWNER
from orchestrator.testing import ScriptedModel, call
from tests.core.stage import Ledger, names, raw, results

if TYPE_CHECKING:
    from pathlib import Path

    from actors.messages import ToolResult

ALWAYS = {"get_api_spec", "find_tools", "read_output", "search_output"}
KINDS = ("weather", "invoice", "mail", "calendar", "translation")


def shop(selector: Selector | None, ledger: Ledger | None = None, **more: Any) -> AgentDefinition:
    """A boss with a reading tool of each kind, one that writes and one that needs a right it lacks."""
    kept = ledger or Ledger()
    tools = [kept.tool(f"{kind}_read", description=f"Read about the {kind}. Not for more.") for kind in KINDS]
    tools.append(kept.tool("invoice_write", Access.WRITE, description="Write an invoice. Not for reading."))
    tools.append(kept.tool("safe_open", authorities=("vault.open",), description="Open the safe. Not for reading."))
    return AgentDefinition("boss", Role.BUILDER, tools=ToolSet(direct=tuple(tools), selector=selector), **more)


def own(request: Any) -> list[str]:
    """The tools of a request that are not intrinsic."""
    return [name for name in names(request) if name not in INTRINSICS]


async def played(
    definition: AgentDefinition, *script: Any, turns: tuple[Turn, ...] = (Turn("go"),), **config: Any
) -> list[Any]:
    """Every request of a session in which *script* is played over *turns*."""
    model = ScriptedModel(boss=script)
    async with asyncio.timeout(5), Agent(definition, RuntimeConfig(model, **config)) as agent, agent.start() as session:
        for turn in turns:
            await session.run(turn)
    model.check()
    return model.requests


def found(result: ToolResult) -> list[str]:
    """The names in an answer of ``find_tools``."""
    return [entry["name"] for entry in json.loads(result.text)]


async def test_what_is_offered_is_the_best_fit_in_the_definitions_order_and_the_intrinsic_tools_beside_it() -> None:
    (request,) = await played(shop(Selector(top_k=2)), "end", turns=(Turn("What does the invoice say?"),))
    assert names(request) == ["invoice_read", "invoice_write", *[name for name in names(request) if name in INTRINSICS]]
    assert set(names(request)) >= ALWAYS


async def test_nothing_selected_leaves_the_intrinsic_tools() -> None:
    (request,) = await played(shop(Selector(top_k=0)), "end")
    assert own(request) == []
    assert set(names(request)) >= ALWAYS


async def test_without_a_selector_everything_is_offered_and_there_is_nothing_to_find() -> None:
    (request,) = await played(shop(None), "end")
    assert own(request) == [f"{kind}_read" for kind in KINDS] + ["invoice_write"]
    assert "find_tools" not in names(request)


async def test_the_offer_follows_the_words_of_each_turn_and_a_turn_seen_before_has_the_same_offer_again() -> None:
    turns = tuple(Turn(f"About the {kind}?") for kind in ("weather", "mail", "weather", "calendar"))
    requests = await played(shop(Selector(top_k=1)), "1", "2", "3", "4", turns=turns)
    assert [own(request) for request in requests] == [
        ["weather_read"],
        ["mail_read"],
        ["weather_read"],
        ["calendar_read"],
    ]


async def test_a_turn_without_words_that_fit_has_the_first_tools_whatever_was_offered_before() -> None:
    turns = (Turn("mail"), Turn("?"), Turn("mail"))
    requests = await played(shop(Selector(top_k=1)), "1", "2", "3", turns=turns)
    assert [own(request) for request in requests] == [["mail_read"], ["weather_read"], ["mail_read"]]


async def test_the_offer_stays_the_same_within_a_turn_and_follows_what_is_decided() -> None:
    narrow = Turn("invoice", grants=Grants(OWNER.authorities, Access.READ))
    script = [call("invoice_read"), "1", "2", "3"]
    turns = (Turn("invoice"), Turn("invoice", policy=Policy.deny("invoice_read")), narrow)
    requests = await played(shop(Selector(top_k=2)), *script, turns=turns)
    assert [own(request) for request in requests] == [
        ["invoice_read", "invoice_write"],
        ["invoice_read", "invoice_write"],
        ["weather_read", "invoice_write"],
        ["weather_read", "invoice_read"],
    ]


async def test_a_refused_tool_is_never_offered_though_it_is_always_included_and_its_call_is_refused() -> None:
    selector = Selector(top_k=1, always_include=("safe_open", "invoice_read", "mail_read"))
    turn = Turn("Open the safe", policy=Policy.deny("mail_read"))
    first, second = await played(shop(selector), [call("safe_open"), call("mail_read")], "end", turns=(turn,))
    assert own(first) == ["weather_read", "invoice_read"]
    codes = [result.denial.code if result.denial else "" for result in results(second)]
    assert codes == ["authority_missing", "denied_by_policy"]


async def test_a_tool_that_may_run_and_was_not_offered_runs_when_it_is_called() -> None:
    ledger = Ledger()
    first, second = await played(
        shop(Selector(top_k=1), ledger), call("mail_read", to="A"), "end", turns=(Turn("weather"),)
    )
    assert "mail_read" not in names(first)
    assert [result.outcome for result in results(second)] == [Outcome.OK]
    assert ledger.lines == ["mail_read to=A"]


async def test_tools_that_a_context_field_brings_are_offered_while_it_is_there(tmp_path: Path) -> None:
    selector = Selector(top_k=0, always_with=(("paired", ("mail_read",)), ("workspace", ("invoice_read",))))
    (with_it,) = await played(shop(selector), "end", workspace=tmp_path)
    (without,) = await played(shop(selector), "end")
    assert (own(with_it), own(without)) == (["invoice_read"], [])


FILTERS: list[tuple[dict[str, str], list[str]]] = [
    ({"text": "INVOICE", "access": "read"}, ["invoice_read"]),
    ({"access": "write", "verdict": "permitted"}, ["invoice_write"]),
    ({"verdict": "authority_missing"}, ["safe_open"]),
    ({"verdict": "denied_by_policy"}, ["mail_read"]),
    ({"tag": "money"}, ["invoice_read", "invoice_write"]),
    ({"name": "weather_read"}, ["weather_read"]),
    ({"name": "weather"}, []),
    ({"tag": "money", "name": "weather_read"}, []),
]


@pytest.mark.parametrize("filters, expected", FILTERS)
async def test_find_tools_shows_the_actors_own_tools_that_pass_every_filter_refused_ones_with_their_code(
    filters: dict[str, str], expected: list[str]
) -> None:
    selector = Selector(top_k=0, tags=(("invoice_read", ("money",)), ("invoice_write", ("money", "paper"))))
    turn = Turn("go", policy=Policy.deny("mail_read"))
    _, request = await played(shop(selector), call("find_tools", filters=filters), "end", turns=(turn,))
    assert found(results(request)[0]) == expected


async def test_find_tools_without_filters_shows_everything_the_actor_has_by_name_and_nothing_that_another_has() -> None:
    other = AgentDefinition("other", Role.CHILD, tools=ToolSet(direct=(Ledger().tool("secret"),)))
    definition = shop(Selector(top_k=1), children=(other,))
    _, request = await played(definition, call("find_tools"), "end")
    shown = found(results(request)[0])
    assert shown == sorted(tool.name for tool in definition.offered)
    assert "secret" not in shown


async def test_an_unknown_filter_is_answered_with_those_there_are() -> None:
    _, request = await played(shop(Selector(top_k=1)), call("find_tools", filters={"secret": "x"}), "end")
    (result,) = results(request)
    assert result.outcome is Outcome.ERROR
    assert all(name in result.text for name in ("secret", "access", "name", "tag", "text", "verdict"))


@pytest.mark.parametrize("arguments", ['{"filters":[]}', '{"filters":{"name":1}}', '{"reference":1}', '{"all":true}'])
async def test_arguments_of_another_shape_are_refused(arguments: str) -> None:
    _, request = await played(shop(Selector(top_k=1)), raw("find_tools", arguments), "end")
    (result,) = results(request)
    assert result.denial is not None
    assert result.denial.code == "invalid_arguments"


def asking(*script: Any) -> FunctionModel:
    """A model whose answers may look at the request."""
    left = iter(script)

    def boss(request: Any) -> Any:
        answer = next(left)
        return answer(request) if callable(answer) else answer

    return FunctionModel({"boss": boss})


async def test_a_reference_is_answered_in_a_later_turn_with_the_verdict_of_then() -> None:
    kept: list[str] = []

    def keep(request: Any) -> str:
        kept.extend(entry["reference"] for entry in json.loads(results(request)[0].text))
        return "end"

    def use(_: Any) -> Any:
        return call("find_tools", reference=kept[0])

    def tell(request: Any) -> str:
        return str(json.loads(results(request)[0].text)["verdict"])

    config = RuntimeConfig(asking(call("find_tools", filters={"name": "mail_read"}), keep, use, tell, use, tell))
    async with asyncio.timeout(5), Agent(shop(Selector(top_k=1)), config) as agent, agent.start() as session:
        await session.run("go")
        verdicts = [
            (await session.run(Turn("go", policy=policy))).output for policy in (Policy(), Policy.deny("mail_read"))
        ]
    assert verdicts == ["permitted", "denied_by_policy"]


@pytest.mark.parametrize("given", ["mail_read", "mail_read@", "mail_read@0123456789abcdef", "", "@", "a@b@c"])
async def test_a_reference_of_another_time_is_stale_though_the_name_is_there(given: str) -> None:
    _, request = await played(shop(Selector(top_k=1)), call("find_tools", reference=given), "end")
    (result,) = results(request)
    assert result.outcome is Outcome.ERROR
    assert "another set of tools" in result.text


async def test_a_reference_made_before_a_tag_was_changed_is_stale_after_it() -> None:
    model = asking(call("find_tools", filters={"name": "mail_read"}), lambda request: results(request)[0].text)
    async with asyncio.timeout(5):
        told = await Agent(shop(Selector(top_k=1)), RuntimeConfig(model)).run("go")
        (entry,) = json.loads(told.output)
        tagged = shop(Selector(top_k=1, tags=(("mail_read", ("post",)),)))
        _, request = await played(tagged, call("find_tools", reference=entry["reference"]), "end")
    assert "another set of tools" in results(request)[0].text


async def test_an_allowing_policy_leaves_the_way_to_look_and_the_limit_of_steps_counts_it_like_any_call() -> None:
    turn = Turn("go", policy=Policy.allow("mail_read"), limits=Limits(steps=2))
    first, second = await played(shop(Selector(top_k=3)), call("find_tools"), "end", turns=(turn,))
    assert (own(first), own(second)) == (["mail_read"], ["mail_read"])
    assert set(names(first)) >= ALWAYS


def test_a_selector_that_names_a_tool_the_definition_lacks_or_a_negative_number_is_no_definition() -> None:
    with pytest.raises(DefinitionError) as refused:
        shop(Selector(top_k=-1, always_include=("absent",), tags=(("gone", ("x",)),)))
    told = str(refused.value)
    assert all(part in told for part in ("-1", "'absent'", "'gone'"))


def test_two_definitions_that_differ_in_their_selector_alone_are_two() -> None:
    prints = {shop(each).fingerprint for each in (None, Selector(top_k=1), Selector(top_k=2))}
    assert len(prints) == 3


@given(
    st.text(max_size=12) | st.sampled_from(KINDS),
    st.integers(0, 8),
    st.frozensets(st.sampled_from([f"{kind}_read" for kind in KINDS] + ["safe_open", "invoice_write"])),
    st.frozensets(st.sampled_from([f"{kind}_read" for kind in KINDS])),
)
def test_the_offer_with_a_selector_is_a_part_of_the_offer_without_one(
    words: str, top_k: int, always: frozenset[str], denied: frozenset[str]
) -> None:
    turn = Turn(words or "go", policy=Policy.deny(*denied) if denied else Policy())
    selector = Selector(top_k=top_k, always_include=tuple(sorted(always)))

    async def go() -> None:
        (narrow,) = await played(shop(selector), "end", turns=(turn,))
        (whole,) = await played(shop(None), "end", turns=(turn,))
        assert [name for name in names(whole) if name in own(narrow)] == own(narrow)
        assert set(own(narrow)) >= always.intersection(names(whole))
        assert len(set(own(narrow)) - always) <= top_k
        assert [name for name in names(narrow) if name in INTRINSICS and name != "find_tools"] == [
            name for name in names(whole) if name in INTRINSICS
        ]

    asyncio.run(go())
