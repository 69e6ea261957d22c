"""The MCP conformance suite, its client side, against a session of ours: each scenario passes or is listed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.neighbours.places import NODE, PLACE

pytestmark = pytest.mark.neighbour

ROOT = Path(__file__).parents[2]
SUITE = (NODE, str(PLACE / "node" / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"))
CLIENT = f"{sys.executable} -m tests.neighbours.conform"

# Each with the checks of it that we do not pass, and why.
OMIT_NULL = "sep-2243-client-omit-null"
SCENARIOS: dict[str, set[str]] = {
    "initialize": set(),
    "tools_call": set(),
    "elicitation-sep1034-client-defaults": set(),
    "sse-retry": set(),
    "request-metadata": set(),
    "sep-2322-client-request-state": set(),
    "http-standard-headers": set(),
    # The suite wants a call whose boolean argument is null. Arguments that break their schema are refused by the tenth
    # gate, before anything is sent.
    "http-custom-headers": {OMIT_NULL},
    "http-invalid-tool-headers": set(),
    "json-schema-ref-no-deref": set(),
    "json-schema-2020-12-preservation": set(),
}
# A source has fixed headers; it does not sign in by OAuth, and takes no skills from servers.
NOT_OURS = re.compile(r"auth/|sep-2640-client-")


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_scenario_of_the_suite_is_passed_except_for_what_is_listed(scenario: str, tmp_path: Path) -> None:
    command = [*SUITE, "client", "--command", CLIENT, "--scenario", scenario, "-o", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=90, check=False)
    (folder,) = tmp_path.iterdir()
    checks = json.loads((folder / "checks.json").read_text())
    failed = {check["id"] for check in checks if check["status"] in ("FAILURE", "WARNING")}
    assert failed == SCENARIOS[scenario], (folder / "stderr.txt").read_text()
    assert any(check["status"] == "SUCCESS" for check in checks)
    assert "CLIENT EXITED WITH ERROR" not in done.stdout
    assert done.returncode == (1 if failed else 0)


def test_every_client_scenario_of_the_suite_is_run_or_listed_as_not_ours() -> None:
    listed = subprocess.run([*SUITE, "list"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True).stdout
    part = listed.partition("Client scenarios")[2].partition("Authorization server scenarios")[0]
    names = set(re.findall(r"^  - (\S+)", part, re.MULTILINE))
    assert {name for name in names if not NOT_OURS.match(name)} == set(SCENARIOS)
