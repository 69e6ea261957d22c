"""The offline model of ``support-desk``: handles one case, a call at a time, with what the state of the case offers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from actors.messages import ModelReply, Outcome, Results, Said
from orchestrator.models.function import FunctionModel, call

if TYPE_CHECKING:
    from actors.messages import ToolCall, ToolResult
    from actors.ports import ModelRequest

__all__ = ["playbook"]

CASE = re.compile(r"Case: (?P<name>.+) wants (?P<amount>[0-9]+\.[0-9]{2}) back on invoice (?P<invoice>\S+)\.")


def playbook() -> FunctionModel:
    """Return the model that plays the desk."""
    return FunctionModel({"desk": handle})


def handle(request: ModelRequest) -> ToolCall | str:
    """Return the next call of the case, or how it ended."""
    begin = max(index for index, item in enumerate(request.history) if isinstance(item, Said))
    first = request.history[begin]
    case = CASE.search(first.text if isinstance(first, Said) else "")
    if case is None:
        return _answer("", "", refunded=False, answer="The case could not be read.")
    seen = _seen(request, begin)
    if "find_customer" not in seen:
        return call("find_customer", name=case["name"])
    found = _value(seen["find_customer"])
    if found is None:
        return _answer("", case["invoice"], refunded=False, answer=seen["find_customer"].text)
    if not found:
        return _answer("", case["invoice"], refunded=False, answer=f"There is no customer {case['name']}.")
    return _refund(seen, found[0]["account"], case)


def _refund(seen: dict[str, ToolResult], account: str, case: re.Match[str]) -> ToolCall | str:
    """Return the next call of a refund for *account*, or how the case ended."""
    invoice, amount = case["invoice"], case["amount"]
    wish = {"account": account, "invoice": invoice, "amount": amount}
    mail = f"We have refunded {amount} on invoice {invoice}."
    for name, arguments in (
        ("open_refund", {"invoice": invoice}),
        ("preview_refund", wish),
        ("confirm_review", {"invoice": invoice}),
        ("execute_refund", wish),
        ("send_mail", {"account": account, "text": mail}),
        ("close_case", {}),
    ):
        if name not in seen:
            return call(name, **arguments)
        if seen[name].outcome is not Outcome.OK or (name == "preview_refund" and not _value(seen[name])["possible"]):
            return _answer(account, invoice, refunded="send_mail" in seen, answer=seen[name].text)
    return _answer(account, invoice, refunded=True, answer=seen["execute_refund"].text)


def _seen(request: ModelRequest, begin: int) -> dict[str, ToolResult]:
    """Return the last result of each tool called in this turn."""
    items = request.history[begin + 1 :]
    calls = [call for item in items if isinstance(item, ModelReply) for call in item.calls]
    results = [result for item in items if isinstance(item, Results) for result in item.results]
    return {made.name: result for made, result in zip(calls, results, strict=False)}


def _value(result: ToolResult) -> Any:
    return msgspec.json.decode(result.text) if result.outcome is Outcome.OK else None


def _answer(account: str, invoice: str, *, refunded: bool, answer: str) -> str:
    fields = {"account": account, "invoice": invoice, "refunded": refunded, "answer": answer}
    return msgspec.json.encode(fields).decode()
