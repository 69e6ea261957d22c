"""What an audit can find: each kind with one sentence."""

from __future__ import annotations

import attrs

__all__ = ["KINDS", "Finding"]

KINDS: dict[str, str] = {
    "no_actor": "no actor can run the tool, in any situation",
    "always_refused": "the tool is in a definition, and every offer of it would be refused, in any situation",
    "nowhere_typed": "the tool can run nowhere that a person types, whatever context of this catalog is added",
    "never_offered": "an actor's definition holds tools that are never offered to it",
    "unresolved_name": "something is named that is not there",
    "use_not_told": "the description does not say when not to use the tool",
    "misdeclared": "the declared access contradicts what the tool's own annotations say it does",
    "over_budget": "the definitions of an actor's tools are larger than the budget",
    "refused_selection": "a selection holds tools that every actor would be refused",
    "untested_refusal": "no test asserts a code by which the tool is refused",
}


@attrs.frozen
class Finding:
    """One thing found: its kind, what is wrong, what would mend it, and the tool and actor it is about, if any."""

    kind: str
    message: str
    remedy: str
    tool: str = ""
    actor: str = ""

    def __attrs_post_init__(self) -> None:
        assert self.kind in KINDS
