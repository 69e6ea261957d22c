"""What a person gave that cannot be used: the place, the fault and the remedy, in one line."""

from __future__ import annotations

__all__ = ["InputFault"]


class InputFault(Exception):
    """Bad usage or input; ends the command with exit code 2 and this one message."""

    def __init__(self, place: str, fault: str, remedy: str) -> None:
        self.place = place
        self.fault = fault
        self.remedy = remedy
        super().__init__(f"{place}: {fault}; {remedy}")
