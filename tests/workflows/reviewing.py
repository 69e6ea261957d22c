"""Reviewers and fixers for tests: what they were given, and their answers in a line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from tests.workflows.playing import in_turn

if TYPE_CHECKING:
    from actors.ports import ModelRequest


def given(request: ModelRequest) -> dict[str, Any]:
    """The data in what a reviewer or a fixer was told."""
    data: dict[str, Any] = msgspec.json.decode(in_turn(request)[0].rpartition("\n")[2])
    return data


def finding(name: str, severity: str = "minor", **more: Any) -> dict[str, Any]:
    """A finding of a reviewer."""
    return {"id": name, "place": f"{name}.py:1", "severity": severity, "message": f"{name} is wrong", **more}


def verdict(word: str, *findings: Any) -> str:
    """A reviewer's answer; a text stands for a minor finding of that name."""
    found = [finding(each) if isinstance(each, str) else each for each in findings]
    return msgspec.json.encode({"verdict": word, "findings": found}).decode()


def fixes(*names: str, declined: tuple[str, ...] = (), **more: Any) -> str:
    """A fixer's answer."""
    items = [{"id": name, "state": "fixed", "reason": "done"} for name in names]
    items += [{"id": name, "state": "declined", "reason": "no need"} for name in declined]
    return msgspec.json.encode({"items": items, **more}).decode()


def fix_all(request: ModelRequest) -> str:
    """A fixer that says of everything that it is fixed."""
    return fixes(*(item["id"] for item in given(request)["worklist"]))


def in_rounds(*answers: Any) -> Any:
    """A reviewer that gives the n-th answer in round n."""

    def play(request: ModelRequest) -> Any:
        return answers[given(request)["round"] - 1]

    return play
