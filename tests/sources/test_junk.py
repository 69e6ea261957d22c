"""What a server prints that is no message: counted, shown to people in part, never to a model, and it costs nothing."""

from __future__ import annotations

import asyncio

import pytest

from actors.messages import Outcome
from orchestrator.testing import call
from tests.core.stage import staged
from tests.sources.stage import LIMIT_S, Servers, finished, servers, told, user

__all__ = ["servers"]

BANNER = [
    "🖥️ starting".encode(),
    b"",
    b"   ",
    b'{"not":"rpc"}',
    b"[1,2]",
    b"DeprecationWarning: x",
    b'{"jsonrpc":"2.0","id":9999,"result":{}}',
    b"x" * 1_000_000,
]
NO_MESSAGES = 5


@pytest.mark.requirement("B34")
async def test_a_banner_before_and_between_messages_costs_nothing_and_other_servers_notice_nothing(
    servers: Servers,
) -> None:
    folder = servers.folder / "junk"
    folder.write_text("\n".join(line.hex() for line in BANNER), encoding="ascii")
    loud, calm = servers.source("loud", "t", junk_file=str(folder)), servers.source("calm", "t")
    runner, model = staged(user(loud, calm), [call("loud__t", n=1), call("calm__t", n=2)], call("loud__t", n=3), "end")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        result = await session.run("go")
        seen, said = await finished(session), await told(session)
        dropped = {each.source.name: each.diagnosis for each in session._supervisor.registry.sources or ()}
    assert result.output == "end"
    assert {name: each.outcome for name, each in seen.items()} == {"loud__t": Outcome.OK, "calm__t": Outcome.OK}
    assert (dropped["loud"].dropped, dropped["calm"].dropped) == (3 * NO_MESSAGES, 0)
    assert len(dropped["loud"].samples) == NO_MESSAGES
    assert [(kind, text.partition(":")[0]) for kind, text in said] == [("source_junk", "loud")] * 2
    assert all(len(text) < 500 for _, text in said)
    shown = repr(model.requests)
    assert not [word for word in ("starting", "Deprecation", "xxx", '"not"') if word in shown]


@pytest.mark.parametrize("line", [b"\xff\xfe\xfa not utf-8", b'{"jsonrpc":"2.0","id":\xff}', b"\x00" * 100])
async def test_bytes_that_are_no_text_are_junk_like_any_other(servers: Servers, line: bytes) -> None:
    source = servers.source("s", "t", junk=[line.hex()])
    runner, _ = staged(user(source), call("s__t"), "end")
    async with asyncio.timeout(LIMIT_S), runner, runner.start() as session:
        await session.run("go")
        seen, said = await finished(session), await told(session)
    assert seen["s__t"].outcome is Outcome.OK
    assert [kind for kind, _ in said] == ["source_junk"]
    assert "\x00" not in said[0][1]
