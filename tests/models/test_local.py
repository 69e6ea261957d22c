"""The doctor looks for local model servers and keys."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING

import pytest

from orchestrator.models.local import local_servers
from orchestrator.models.provider import PROVIDERS
from tests.models.provider import FakeProvider

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.desk import Desk

NAMES = {"ollama": "OLLAMA_HOST", "llamacpp": "LLAMACPP_BASE_URL", "vllm": "VLLM_BASE_URL"}


@pytest.fixture
def nowhere() -> Iterator[dict[str, str]]:
    """An environment in which every local server is looked for where nothing listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        yield dict.fromkeys(NAMES.values(), url)


async def test_every_local_server_that_answers_is_found_with_its_models_and_what_to_write(
    nowhere: dict[str, str],
) -> None:
    with FakeProvider(models=("llama3:8b", "qwen3")) as there:
        found = await local_servers({**nowhere, "VLLM_BASE_URL": there.base_url})
    assert [server.provider for server in found] == list(NAMES)
    ollama, llamacpp, vllm = found
    assert (ollama.models, llamacpp.models) == ((), ())
    assert ollama.fault == "nothing answers"
    assert (vllm.fault, vllm.base_url) == ("", there.base_url)
    assert [vllm.reference(model) for model in vllm.models] == ["vllm:llama3:8b", "vllm:qwen3"]


async def test_ollama_is_found_by_its_own_list_too(nowhere: dict[str, str]) -> None:
    with FakeProvider(models=("llama3:8b",), tags=True) as there:
        host = there.base_url.removeprefix("http://").removesuffix("/v1")
        found = await local_servers({**nowhere, "OLLAMA_HOST": host})
    assert found[0].models == ("llama3:8b",)


@pytest.mark.parametrize(
    "answer", [b"", b"<html>", b"[]", b'{"data": 1}', b'{"error": "no"}', b'{"models": [1]}', b"x" * 5_000_000]
)
async def test_what_answers_otherwise_is_no_model_server(nowhere: dict[str, str], answer: bytes) -> None:
    with FakeProvider(listing=answer) as there:
        found = await local_servers({**nowhere, "LLAMACPP_BASE_URL": there.base_url})
    assert found[1].models == ()
    assert "without a list of models" in found[1].fault


async def test_a_server_that_says_nothing_is_not_waited_for(nowhere: dict[str, str]) -> None:
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        url = f"http://127.0.0.1:{mute.getsockname()[1]}/v1"
        found = await local_servers({**nowhere, "VLLM_BASE_URL": url}, within_s=0.05)
    assert found[2].fault == "nothing answers"


async def test_an_address_that_cannot_be_is_told(nowhere: dict[str, str]) -> None:
    found = await local_servers({**nowhere, "VLLM_BASE_URL": "nonsense"})
    assert found[2].fault.startswith("VLLM_BASE_URL: the base URL")


def test_the_doctor_says_what_to_write_for_a_local_model_and_which_keys_are_set_never_what_they_are(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, nowhere: dict[str, str]
) -> None:
    for provider in PROVIDERS:
        monkeypatch.delenv(provider.key_name, raising=False)
    monkeypatch.setenv("GROQ_API_KEY", "gsk-never-shown")
    with FakeProvider(models=("tiny",)) as there:
        for name, url in {**nowhere, "VLLM_BASE_URL": there.base_url}.items():
            monkeypatch.setenv(name, url)
        said, told = desk.say("doctor"), desk.say("doctor", "--json")
    assert (said.code, told.code) == (0, 0)
    assert "--model vllm:tiny" in said.out
    assert "GROQ_API_KEY is set" in said.out
    assert "OPENAI_API_KEY is not set; set it to use --model openai:MODEL" in said.out
    assert "nothing answers; start it" in said.out
    assert "gsk-never-shown" not in said.out + said.err + told.out
    found = {item["name"]: item for item in json.loads(told.out)}
    assert found["vllm server"]["models"] == ["vllm:tiny"]
    assert (found["groq key"]["there"], found["openai key"]["there"]) == (True, False)
