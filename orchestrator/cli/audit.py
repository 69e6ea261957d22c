"""``orchestrator audit``: who can really run what, how large it is, and what is wrong with it."""

from __future__ import annotations

import sys
from pathlib import Path

from orchestrator.catalog.audit import audit as audited
from orchestrator.catalog.budget import DEFAULT_BUDGET_BYTES
from orchestrator.catalog.finding import KINDS
from orchestrator.catalog.proof import UnreadableTests, texts_of_tests
from orchestrator.catalog.report_html import report_html
from orchestrator.catalog.report_json import report_json
from orchestrator.catalog.report_text import report_text
from orchestrator.cli.fault import InputFault
from orchestrator.products.audited import subject_of
from orchestrator.workflows.section import nearest

__all__ = ["audit"]

ANY = "any"


def audit(
    what: str,
    *,
    json: bool = False,
    html: Path | None = None,
    fail_on: str = "",
    tests: Path | None = None,
    budget: int = DEFAULT_BUDGET_BYTES,
) -> int:
    """Show which actor can run which tool, and what is wrong with a catalog. Nothing is run.

    Exit code 1 when there are findings that --fail-on names, 2 for bad usage or input.

    Parameters
    ----------
    what:
        A shipped product, a product file (.yaml) or a workflow file (.yaml).
    json:
        Print one JSON object: actors, totals, findings.
    html:
        Write a page with the matrix as a picture to this file.
    fail_on:
        Kinds of findings, with commas between them, or any.
    tests:
        A folder of tests; a tool whose refusal none of them asserts is then a finding.
    budget:
        The bytes that the definitions of one actor's tools may take.

    """
    failing = kinds_of(fail_on)
    if budget < 1:
        raise InputFault(f"--budget {budget}", "is no size", "give bytes, at least 1")
    subject = subject_of(what)
    try:
        texts = None if tests is None else texts_of_tests(tests)
    except UnreadableTests as error:
        raise InputFault(f"--tests {tests}", str(error), "name a folder of Python tests") from error
    found = audited(subject, budget_bytes=budget, tests=texts)
    if html is not None:
        write_page(html, report_html(found))
    sys.stdout.write(report_json(found).decode() if json else report_text(found))
    sys.stdout.write("\n")
    return 1 if found.kinds() & failing else 0


def write_page(path: Path, page: str) -> None:
    """Write *page* to *path*. Raises `InputFault` when that cannot be done."""
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise InputFault(f"--html {path}", f"cannot be written: {error.strerror}", "name another file") from error


def kinds_of(text: str) -> frozenset[str]:
    """Return the kinds that ``--fail-on`` names. Raises `InputFault` for one that there is not."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name != ANY and name not in KINDS:
            raise InputFault(f"--fail-on {name}", "there is no such kind", nearest(name, (*KINDS, ANY)))
    return frozenset(KINDS) if ANY in names else frozenset(names)
