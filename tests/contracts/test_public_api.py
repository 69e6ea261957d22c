"""The public door is small, written down, and cheap to open."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys

import pytest

from tests.contracts.public_api import MODULES, RECORD, public_attributes, public_names, render

HEAVY = ("aiohttp", "httpx2", "pydantic", "mcp", "mcp_types", "starlette", "ray", "rich", "cyclopts")
MAX_NAMES = 50


def test_every_public_name_and_signature_is_the_recorded_one() -> None:
    assert RECORD.exists(), "write it with: python -m tests.contracts.public_api --write"
    assert render() == RECORD.read_text(encoding="utf-8"), (
        "rewrite it with: python -m tests.contracts.public_api --write"
    )


def test_both_packages_and_the_doubles_together_have_at_most_fifty_public_names() -> None:
    names = [f"{module}.{name}" for module in MODULES for name in public_names(module)]
    assert 0 < len(names) <= MAX_NAMES, names


@pytest.mark.parametrize("module", MODULES)
def test_a_public_name_is_listed_once_exists_and_starts_with_a_letter(module: str) -> None:
    loaded = importlib.import_module(module)
    assert len(set(loaded.__all__)) == len(loaded.__all__)
    assert [name for name in loaded.__all__ if not hasattr(loaded, name) or name.startswith("_")] == []


def test_an_agent_offers_exactly_start_run_definition_and_close() -> None:
    agent = importlib.import_module("orchestrator").Agent
    assert public_attributes(agent) == ["close", "definition", "run", "start"]


def test_a_session_offers_exactly_run_send_snapshot_events_and_close() -> None:
    session = importlib.import_module("orchestrator").Session
    assert public_attributes(session) == ["close", "events", "run", "send", "snapshot"]


@pytest.mark.parametrize("package", ["actors", "orchestrator"])
def test_importing_a_package_loads_nothing_heavy(package: str) -> None:
    program = f"import json, sys, {package}; print(json.dumps(sorted({{name.split('.')[0] for name in sys.modules}})))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True)
    loaded = set(json.loads(done.stdout))
    assert package in loaded
    assert not loaded & set(HEAVY)


def test_importing_actors_loads_nothing_of_orchestrator() -> None:
    program = "import sys, actors; raise SystemExit(any(name.startswith('orchestrator') for name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, "")
