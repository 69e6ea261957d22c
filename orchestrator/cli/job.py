"""What a run of the command line is made of, and playing it: from words to values, to a session, to a report."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import attrs
import msgspec

from actors.tools import Tool
from orchestrator.cli.asking import approver_for, plain, tell_waiting
from orchestrator.cli.fault import InputFault
from orchestrator.cli.line import one_line
from orchestrator.cli.place import default_store, existing_folder, new_folder, where
from orchestrator.cli.progress import Progress
from orchestrator.journal.store import open_store
from orchestrator.models.opening import close_model, open_model
from orchestrator.products.audited import shipped_manifest
from orchestrator.products.product import PRODUCTS, Product, Report, find_product
from orchestrator.runtime import Observability, Principal, RuntimeConfig, SessionLimits
from orchestrator.session import SessionHandle
from orchestrator.workflows.load import load_plan
from orchestrator.workflows.plan import Plan
from orchestrator.workflows.run import WorkflowRun, root_definition
from orchestrator.workspace.copying import copy_tree
from orchestrator.workspace.refusal import WorkspaceRefused
from orchestrator.workspace.toolset import WORKSPACE_TOOLS

if TYPE_CHECKING:
    from actors.ports import Model
    from orchestrator.approver import Approver
    from orchestrator.journal.records import Entry
    from orchestrator.journal.row import SessionRow
    from orchestrator.journal.store import Store
    from orchestrator.workflows.engine import WorkflowResult

__all__ = ["Job", "absolute_model", "job_of", "new_job", "play"]

POOL = {tool.name: tool for tool in WORKSPACE_TOOLS}


@attrs.frozen
class Job:
    """Everything that a run needs, checked: nothing is written before it exists."""

    plan: Plan
    pool: dict[str, Tool]
    product: Product | None
    model: str
    store: str
    source: Path
    workspace: Path | None
    report: Path | None
    what: str

    def labels(self, workspace: Path, report: Path) -> tuple[tuple[str, str], ...]:
        """Return what makes this job again from a list of sessions."""
        return (
            ("what", self.what),
            ("model", self.model),
            ("source", str(self.source)),
            ("workspace", str(workspace)),
            ("report", str(report)),
        )


def new_job(
    what: str,
    *,
    workspace: Path | None,
    model: str | None,
    store: str | None,
    in_place: bool,
    report: Path | None,
) -> Job:
    """Return the job of these words. Raises `InputFault`, `PlanError`, `UnknownModel` and the like, writing nothing."""
    source = existing_folder(workspace)
    if report is not None:
        check_report(report.absolute())
    fresh = workspace is not None and what in PRODUCTS and find_product(what).fresh
    return _job(what, source, model or "", store or default_store(), source if in_place or fresh else None, report)


def job_of(row: SessionRow, store: str, model: str = "") -> Job:
    """Return the job that the session *row* was made by, this time with *model*, if one is named.

    Raises `InputFault` for a session of another kind, `UnknownModel`.
    """
    labels = dict(row.labels)
    if "chat" in labels:
        go_on = f"go on with: orchestrator chat --session {row.id}{where(store)}"
        raise InputFault(f"session {row.id}", "is a chat", go_on)
    if "what" not in labels:
        raise InputFault(f"session {row.id}", "was not made by 'orchestrator run'", "resume it where it was made")
    workspace = Path(labels["workspace"])
    if not workspace.is_dir():
        raise InputFault(f"session {row.id}", f"its workspace {workspace} is gone", "put it back, or run anew")
    source, report = Path(labels["source"]), Path(labels["report"])
    return _job(labels["what"], source, model or labels["model"], store, workspace, report)


def _job(what: str, source: Path, model: str, store: str, workspace: Path | None, report: Path | None) -> Job:
    product = find_product(what) if what in PRODUCTS else None
    pool = POOL if product is None else {tool.name: tool for tool in product.tools}
    if product is None and not what.endswith((".yaml", ".yml")):
        known = ", ".join(PRODUCTS)
        if shipped_manifest(what) is not None:
            raise InputFault(repr(what), "can be audited and explained, not run", f"run one of {known}")
        if what.endswith(".md"):
            raise InputFault(repr(what), "is one agent, no workflow", f"talk with it: orchestrator chat {what}")
        raise InputFault(
            repr(what), f"is neither a product ({known}) nor a workflow file", "name a .yaml file, or a product"
        )
    path = Path(what).absolute() if product is None else product.workflow
    plan = load_plan(path, pool)
    if product is None and not model:
        raise InputFault(what, "a workflow file needs a model", "give --model provider:model, such as playbook:FILE.py")
    if product is not None:
        check_requirements(product)
    if model:
        open_model(model)
        model = absolute_model(model)
    return Job(plan, pool, product, model, store, source, workspace, report, what if product else str(path))


def absolute_model(model: str) -> str:
    """Return the name of *model* as it is understood from any folder."""
    provider, _, rest = model.partition(":")
    return f"{provider}:{Path(rest).absolute()}" if provider == "playbook" else model


def check_report(folder: Path) -> None:
    """Raise `InputFault` when no report could be written into *folder*, as far as can be told without writing."""
    nearest = next(place for place in (folder, *folder.parents) if place.exists())
    if not nearest.is_dir():
        raise InputFault(f"--report {folder}", f"{nearest} is not a folder", "name a folder that can be written")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise InputFault(f"--report {folder}", f"{nearest} cannot be written", "name a folder that can")


def check_requirements(product: Product) -> None:
    """Raise `InputFault` when a command that the product's tools run is not installed."""
    import importlib.util

    for module, remedy in product.requires:
        if importlib.util.find_spec(module) is None:
            raise InputFault(f"product {product.name}", f"it needs {module}, which is not installed", remedy)


def play(job: Job, resume: str | None, *, as_json: bool, stream: TextIO) -> int:
    """Run *job* in a new session, or take the session *resume* up; return the exit code."""
    session: list[str] = [resume] if resume else []
    try:
        return asyncio.run(_play(job, resume, session, as_json=as_json, stream=stream))
    except (KeyboardInterrupt, asyncio.CancelledError):
        how = f"; go on with: orchestrator sessions resume {session[0]}{where(job.store)}" if session else ""
        print(f"\nstopped{how}", file=stream)
        return 130


async def _play(job: Job, resume: str | None, session: list[str], *, as_json: bool, stream: TextIO) -> int:
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    store, model = open_store(job.store), _model(job)
    try:
        await store.sessions()  # a store that cannot be used is told before anything is made
        workspace = job.workspace or await _workspace(job)
        report = (job.report or new_folder("reports", job.plan.name)).absolute()
        sources = any(agent.sources for agent in job.plan.agents)
        approver = approver_for(job.pool.values(), sources=sources, resumed=bool(resume), stream=stream)
        config = _config(job, model, store, workspace, report, approver)
        handle = None
        if resume is not None:
            handle = SessionHandle(resume, store.url, root_definition(job.plan).fingerprint)
        states = None if job.product is None else job.product.states
        async with WorkflowRun(job.plan, job.pool, config, handle, states) as run:
            session[:] = [run.session.snapshot().session]
            progress = Progress(job.plan, run.session, run.state, plain(stream, approver))
            async with progress:
                result = await run.run()
            entries = await run.entries()
            told = _report(job, run, entries, result)
        paths = _write(told, report)
    finally:
        await close_model(model)
        await store.close()
    _tell(told, session[0], workspace, paths, result.waiting, as_json=as_json, stream=stream)
    if result.waiting:
        tell_waiting(session[0], result.waiting, where(job.store), stream)
    return 0 if told.ok else 1


def _model(job: Job) -> Model:
    if job.model:
        return open_model(job.model)
    assert job.product is not None
    return job.product.model()


def _config(
    job: Job, model: Model, store: Store, workspace: Path, report: Path, approver: Approver | None
) -> RuntimeConfig:
    limits = SessionLimits(total=100_000) if job.product is None else job.product.limits
    about = Observability(title=f"{job.plan.name} on {job.source}", labels=job.labels(workspace, report))
    principal = Principal() if job.product is None else job.product.principal
    return RuntimeConfig(model, principal, limits, workspace, store, approver, about)


async def _workspace(job: Job) -> Path:
    """Return the folder to work on: a copy of the source, or an empty one for a product that wants its own."""
    if job.product is not None and job.product.fresh:
        return new_folder("work", job.plan.name)
    return await _copy(job.source, job.plan.name)


async def _copy(source: Path, name: str) -> Path:
    """Return a new copy of *source*. Nothing is left of one that fails."""
    folder = new_folder("work", name)
    try:
        await asyncio.to_thread(copy_tree, source, folder / "tree")
    except WorkspaceRefused:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder / "tree"


def _report(job: Job, run: WorkflowRun, entries: tuple[Entry, ...], result: WorkflowResult) -> Report:
    if job.product is not None:
        return job.product.report(run.state, entries, result)
    failed = [f"{o.key}: {o.detail}" for o in result.outcomes if not o.ok]
    headline = f"{len(result.outcomes)} steps, {len(failed)} failed" + "".join(f"; {text}" for text in failed)
    steps = [f"## {o.key}\n\n{'done' if o.ok else f'failed: {o.detail}'}\n\n{o.output}\n" for o in result.outcomes]
    data = msgspec.json.format(msgspec.json.encode(result), indent=2).decode()
    return Report(result.ok, headline, "\n".join((f"# {job.plan.name}\n\n{headline}\n", *steps)), data)


def _write(told: Report, folder: Path) -> dict[str, str]:
    """Write the report's files, each whole or not at all; return their paths."""
    texts = {"report.md": told.markdown, "report.json": told.json, **dict(told.files)}
    drafts = {name: folder / f".{name}.draft" for name in texts}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            drafts[name].write_text(text, encoding="utf-8")
        for name in texts:
            drafts[name].replace(folder / name)
    except OSError as error:
        for draft in drafts.values():
            with suppress(OSError):
                draft.unlink()
        raise InputFault(
            f"--report {folder}", f"cannot be written: {error.strerror}", "name a folder that can"
        ) from error
    return {name: str(folder / name) for name in texts}


def _tell(
    told: Report,
    session: str,
    workspace: Path,
    paths: dict[str, str],
    waiting: tuple[str, ...],
    *,
    as_json: bool,
    stream: TextIO,
) -> None:
    if as_json:
        outcome = {
            "ok": told.ok,
            "headline": told.headline,
            "session": session,
            "workspace": str(workspace),
            "report": paths,
            "waiting": waiting,
        }
        sys.stdout.write(msgspec.json.encode(outcome).decode() + "\n")
        return
    print(one_line(told.headline), file=stream)
    print(f"session    {session}\nworkspace  {workspace}", file=stream)
    sys.stdout.write("".join(f"{name:<14} {path}\n" for name, path in paths.items()))
