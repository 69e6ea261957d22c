"""The three reports of an audit: JSON in a fixed shape, a page that needs nothing and trusts nothing, plain text."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import msgspec
import pytest

from actors.states import WorkflowState
from actors.tools import Approval
from orchestrator.catalog.audit import Audit, audit
from orchestrator.catalog.letters import BY_GATE, signs_in
from orchestrator.catalog.report_html import report_html
from orchestrator.catalog.report_json import report_json
from orchestrator.catalog.report_text import report_text
from orchestrator.catalog.subject import NamedSet, Situation, Subject
from orchestrator.denials import CODES
from orchestrator.policy import OFFERED
from tests.catalog.catalogs import agent, caller, declared

EVIL = "<script>alert('x')</script>\"&"


def small(**more: object) -> Audit:
    """The audit of a catalog with one of each: offered, asked, refused, helped by a situation."""
    tools = (
        declared("look", size=10),
        declared("send", size=20, approval=Approval.EACH_CALL),
        declared("put", size=30, needs=("z",), authorities=("a.b",)),
        declared("run", size=40, needs=("computer",)),
    )
    mine = agent(*(each.tool for each in tools))
    paired = Situation("paired", context=("computer",))
    one = caller(mine, approver=True, situations=(paired,))
    return audit(Subject("shop", tools, (one,), selections=(NamedSet("base", ("look", "put")),), **more))  # type: ignore[arg-type]


class Page(HTMLParser):
    """What a page holds, as a browser would read it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.titles: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name == "title":
                self.titles.append(value or "")
            if name in {"src", "href"}:
                self.links.append(value or "")

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_json_has_a_cell_for_every_actor_and_tool_in_one_shape() -> None:
    told = msgspec.json.decode(report_json(small()))
    assert list(told) == ["actors", "totals", "findings"]
    assert told["actors"] == {
        "chat": {
            "look": {"permitted": True, "code": None, "missing": [], "definition_bytes": 10},
            "send": {"permitted": True, "code": "needs_approval", "missing": [], "definition_bytes": 20},
            "put": {"permitted": False, "code": "authority_missing", "missing": ["a.b", "z"], "definition_bytes": 30},
            "run": {"permitted": False, "code": "context_missing", "missing": ["computer"], "definition_bytes": 40},
        }
    }


def test_the_json_totals_count_what_the_cells_say() -> None:
    totals = msgspec.json.decode(report_json(small()))["totals"]
    chat = totals["actors"]["chat"]
    assert (totals["tools"], totals["definition_bytes"], totals["estimated_tokens"]) == (4, 100, 25)
    assert (chat["tools"], chat["permitted"], chat["permitted_bytes"]) == (4, 2, 30)
    assert chat["situations"] == {"paired": ["run"]}
    assert totals["selections"] == {
        "base": {"tools": ["look", "put"], "definition_bytes": 40, "refused": {"chat": ["put"]}}
    }


def test_states_are_told_beside_the_matrix() -> None:
    told = msgspec.json.decode(report_json(small(states=(WorkflowState("one", ("look", "put")),))))
    assert told["totals"]["actors"]["chat"]["states"] == {"one": ["look"]}
    assert told["actors"]["chat"]["send"]["code"] == "stale_state"


def test_the_page_runs_nothing_fetches_nothing_and_shows_each_verdict_with_its_reason() -> None:
    page = Page(report_html(small()))
    assert {"script", "link", "img", "iframe"}.isdisjoint(page.tags)
    assert page.links == []
    assert "http" not in report_html(small()).replace("http-equiv", "")
    assert page.tags.count("td") >= 4
    assert any(title.startswith("authority_missing (gate 7): put needs the authority a.b") for title in page.titles)
    assert "when paired" in page.text
    assert "no_actor" in page.text


def test_the_page_escapes_everything_that_a_catalog_wrote() -> None:
    tool = declared("look", description=f"Not for {EVIL}")
    text = report_html(audit(Subject(EVIL, (tool,), (caller(agent(tool.tool), name=EVIL),))))
    page = Page(text)
    assert "script" not in page.tags
    assert any(EVIL in title for title in page.titles)
    assert text.count("<script") == 0


def test_the_page_says_when_nothing_was_found() -> None:
    look = declared("look")
    found = audit(Subject("shop", (look,), (caller(agent(look.tool)),)))
    assert "Nothing found." in Page(report_html(found)).text
    assert report_text(found).endswith("nothing found")


def test_the_text_has_a_row_for_each_tool_a_legend_and_the_findings() -> None:
    text = report_text(small())
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines()[1:5]}
    assert rows == {"look": ["10", "Y"], "send": ["20", "?"], "put": ["30", "A"], "run": ["40", "C*"]}
    assert "*  offered in one of the caller's situations" in text
    assert "no_actor (1)" in text
    assert "selection base: 2 tools, 40 bytes" in text


def test_every_gate_that_decides_an_offer_has_a_sign_of_its_own() -> None:
    numbers = {int((gate.__doc__ or "").partition(":")[0]) for gate in OFFERED}
    assert numbers == BY_GATE.keys() <= {gate for gate, *_ in CODES.values()}
    letters = [sign.letter for sign in BY_GATE.values()]
    assert len(set(letters)) == len(letters)


def test_the_legend_holds_the_signs_that_are_used_and_no_others() -> None:
    cells = tuple(cell for column in small().columns for cell in column.cells)
    assert [sign.letter for sign in signs_in(cells)] == ["Y", "?", "A", "C"]


@pytest.mark.parametrize("count", [0, 1])
def test_a_catalog_without_tools_or_callers_is_reported_too(count: int) -> None:
    callers = (caller(agent()),) * count
    found = audit(Subject("empty", (), callers))
    assert re.match(r"tool\s+bytes", report_text(found))
    assert "Tools: 0." in Page(report_html(found)).text
    assert msgspec.json.decode(report_json(found))["findings"] == []
