"""The desk that every test of the command line sits at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cli.desk import Desk

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Desk:
    """A desk of one's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ORCHESTRATOR_HOME", str(tmp_path / "home"))
    return Desk(tmp_path, capsys)
