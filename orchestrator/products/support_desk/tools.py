"""The desk's tools. What they may do is declared in product.yaml; who calls is told by the context."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from anyio import to_thread

from actors.errors import ToolFault
from actors.tools import ToolContext
from orchestrator.products.support_desk.database import Desk, NotBooked

__all__ = [
    "close_case",
    "confirm_review",
    "execute_refund",
    "find_customer",
    "list_invoices",
    "open_refund",
    "preview_refund",
    "read_invoice",
    "send_mail",
]

Amount = Annotated[str, msgspec.Meta(pattern=r"^(0|[1-9][0-9]{0,6})\.[0-9]{2}$")]
INVOICE = """
SELECT invoice.id, customer AS account, what, printf('%.2f', cents / 100.0) AS amount,
       printf('%.2f', (cents - (SELECT COALESCE(SUM(cents), 0) FROM refund WHERE invoice = invoice.id)) / 100.0) AS left
FROM invoice
"""


def _cents(amount: str) -> int:
    whole, _, part = amount.partition(".")
    return int(whole) * 100 + int(part)


async def _rows(context: ToolContext, query: str, *values: object) -> list[dict[str, Any]]:
    return await to_thread.run_sync(Desk(context.workspace.root).rows, query, *values)


async def find_customer(context: ToolContext, name: str) -> list[dict[str, Any]]:
    """Find customers by a part of their name. Not for invoices: see list_invoices."""
    query = "SELECT id AS account, name, mail FROM customer WHERE instr(lower(name), lower(?)) ORDER BY id"
    return await _rows(context, query, name)


async def list_invoices(context: ToolContext, account: str) -> list[dict[str, Any]]:
    """List a customer's invoices, with what is left to refund. Not for finding the customer: see find_customer."""
    return await _rows(context, f"{INVOICE} WHERE customer = ? ORDER BY invoice.id", account)


async def read_invoice(context: ToolContext, invoice: str) -> dict[str, Any]:
    """Read one invoice. Not for a customer's list of them: see list_invoices."""
    found = await _rows(context, f"{INVOICE} WHERE invoice.id = ?", invoice)
    if not found:
        raise ToolFault(f"There is no invoice {invoice!r}.", remedy="List the customer's invoices.")
    return found[0]


async def open_refund(context: ToolContext, invoice: str) -> str:
    """Open the review of a refund for an invoice. It refunds nothing. Not before the invoice was read."""
    await read_invoice(context, invoice)
    return f"The refund of invoice {invoice} is under review."


async def preview_refund(context: ToolContext, account: str, invoice: str, amount: Amount) -> dict[str, Any]:
    """Tell what a refund would do. It refunds nothing. Not a way to refund: see execute_refund, after the review."""
    found = await read_invoice(context, invoice)
    possible = found["account"] == account and 0 < _cents(amount) <= _cents(found["left"])
    return {"possible": possible, "account": account, "invoice": invoice, "amount": amount, "left": found["left"]}


async def confirm_review(context: ToolContext, invoice: str) -> str:
    """Confirm that a refund was reviewed. It refunds nothing. Not before a preview said it is possible."""
    await read_invoice(context, invoice)
    return f"The review of invoice {invoice} is confirmed."


async def execute_refund(context: ToolContext, account: str, invoice: str, amount: Amount) -> str:
    """Refund an amount of an invoice; a person must approve this very call. Not for trying out: see preview_refund."""
    desk, key = Desk(context.workspace.root), context.idempotency_key
    try:
        return await to_thread.run_sync(desk.refund, key, account, invoice, _cents(amount), context.principal)
    except NotBooked as error:
        raise ToolFault(f"Nothing was refunded: {error}.", remedy="Preview the refund first.") from error


async def send_mail(context: ToolContext, account: str, text: str) -> str:
    """Send a customer a mail about their case. Not for notes to colleagues."""
    if not await to_thread.run_sync(Desk(context.workspace.root).send, account, text):
        raise ToolFault(f"There is no account {account!r}.", remedy="Find the customer first.")
    return f"A mail to {account} is on its way."


async def close_case(context: ToolContext) -> str:
    """Close the case, so that the next one can begin. Not while the customer waits for a mail."""
    return f"The case is closed by {context.principal}."
