"""Where cases are handled in tests: the desk of ``support-desk`` as the product builds it, and what it booked."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from actors.messages import CallFinished
from orchestrator.models.function import call
from orchestrator.products.support_desk.database import Desk
from orchestrator.products.support_desk.product import PRODUCT
from orchestrator.workflows.cast import definitions
from orchestrator.workflows.load import load_plan
from tests.consent.office import office

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from actors import AgentDefinition
    from actors.messages import ToolCall, ToolResult
    from actors.ports import Model
    from tests.supervision.scene import Scene

WISH = {"account": "c-17", "invoice": "i-302", "amount": "10.00"}
INVOICE = {"invoice": "i-302"}
FIND, OPEN = partial(call, "find_customer", name="Ada"), partial(call, "open_refund", **INVOICE)
PREVIEW, CONFIRM = partial(call, "preview_refund", **WISH), partial(call, "confirm_review", **INVOICE)


def refund(call_id: str = "", **other: str) -> ToolCall:
    """The call that needs a yes, with some arguments changed."""
    return call("execute_refund", call_id=call_id, **{**WISH, **other})


def reviewed() -> list[ToolCall]:
    """The calls that bring a case to where a refund can be executed."""
    return [OPEN(), CONFIRM()]


def desk_agent() -> AgentDefinition:
    """The desk's definition."""
    pool = {tool.name: tool for tool in PRODUCT.tools}
    plan = load_plan(PRODUCT.workflow, pool)
    return definitions(plan.agents, pool, states=PRODUCT.states)["desk"]


def counter(model: Model, folder: Path, **more: Any) -> AbstractAsyncContextManager[Scene]:
    """Open a session of the desk over the database in *folder*."""
    principal = more.pop("principal", PRODUCT.principal)
    return office(desk_agent(), model, workspace=folder, principal=principal, **more)


def booked(folder: Path) -> list[tuple[str, int]]:
    """Every refund that was really booked: invoice and cents."""
    rows = Desk(folder).rows("SELECT invoice, cents FROM refund ORDER BY rowid")
    return [(row["invoice"], row["cents"]) for row in rows]


def place(it: Scene) -> str:
    """The state that the case is in."""
    return it.supervisor.journal.state.workflow or "SupportLookup"


def swap(it: Scene, **other: str) -> None:
    """Change the arguments of the call that waits, as a model that replays would."""
    actor = it.supervisor.members["desk"].actor
    (pending,) = actor.state.pending
    changed = msgspec.structs.replace(pending, arguments=refund(**other).arguments)
    actor.state = msgspec.structs.replace(actor.state, pending=(changed,))


async def came_to(it: Scene, *tools: str) -> list[str]:
    """What each finished call of *tools*, or each at all, came to: a denial's code, or its outcome."""
    found = [each for each in await finished(it) if not tools or each.name in tools]
    return [each.outcome.value if each.denial is None else each.denial.code for each in found]


async def finished(it: Scene) -> list[ToolResult]:
    """The result of each finished call, in order."""
    return [record.result for record in await it.records(CallFinished)]
