"""Loans: authority that one actor lends another for one turn, recorded, read at each call, ended with the turn.

A loan is never wider than what its lender holds of its own, nor than the borrower's role may hold; it is not passed on
to children, and it gives nothing once its lender is gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.grants import Access, Grants, at_most, covers
from actors.roles import ROLES
from actors.roles.role import RESERVED_NAMESPACES
from orchestrator.errors import LoanRefused
from orchestrator.journal.records import LoanEnded, LoanMade

if TYPE_CHECKING:
    from orchestrator.journal.journal import Journal
    from orchestrator.member import Member

__all__ = ["end_loans", "lend_to"]


def lend_to(journal: Journal, lender: Member, borrower: Member, grants: Grants, until: str) -> str:
    """Lend *grants* until the turn *until* ends; return the loan's id. Raises `LoanRefused`, recording nothing."""
    ceiling = ROLES[borrower.resolved.definition.role].loan_ceiling
    system = (name for name in grants.authorities if name.partition(".")[0] in RESERVED_NAMESPACES)
    capped = Grants(system, grants.access, grants.roots)
    faults = [
        *_above(grants, lender.base, f"{lender.path} holds"),
        *_above(capped, ceiling, f"{borrower.path} may hold"),
    ]
    if faults:
        raise LoanRefused(lender.path, borrower.path, tuple(faults))
    loan = f"loan-{journal.seq + 1}"
    journal.append(borrower.path, LoanMade(loan, lender.path, grants, until))
    return loan


def end_loans(journal: Journal, borrower: str, turn: str) -> None:
    """End every loan of *borrower* that was made until *turn* ends."""
    for loan in tuple(journal.state.borrowed.get(borrower, ())):
        if journal.state.loans[loan].until == turn:
            journal.append(borrower, LoanEnded(loan, f"turn {turn} has ended"))


def _above(grants: Grants, outer: Grants, holder: str) -> list[str]:
    """Return in what *grants* are wider than *outer*."""
    if at_most(grants, outer):
        return []
    missing = [name for name in sorted(grants.authorities) if not covers(outer.authorities, name)]
    faults = [f"the authorities {', '.join(missing)} are more than {holder}"] if missing else []
    if grants.access.level > outer.access.level:
        faults.append(f"the access {grants.access.value!r} is more than {holder}")
    if not at_most(Grants(access=Access.READ, roots=grants.roots), Grants(access=Access.READ, roots=outer.roots)):
        faults.append(f"the roots {', '.join(sorted(grants.roots))} are more than {holder}")
    return faults
