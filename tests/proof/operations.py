"""Everything that can happen in a history: one small class an operation, listed here and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.proof.actor_steps import Approve, Call, Delegate, Finish, Interrupt, Message
from tests.proof.host_steps import HostSpawn, Lend, OpenTurn, Resume, StopTree, StopTurn, Tell, Transition

if TYPE_CHECKING:
    from tests.proof.step import Operation

__all__ = ["OPERATIONS"]

# Every operation, and how often it is chosen beside the others: what builds comes more often than what ends.
OPERATIONS: dict[type[Operation], int] = {
    OpenTurn: 6,
    Call: 4,
    Delegate: 3,
    Finish: 3,
    Lend: 5,
    HostSpawn: 1,
    Tell: 1,
    Message: 2,
    Interrupt: 1,
    Transition: 1,
    Approve: 3,
    StopTurn: 1,
    StopTree: 1,
    Resume: 1,
}
