"""From a written name to a model: which server, which key, and what is wrong, before anything starts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.errors import KeyMissing, UnknownModel
from orchestrator.models.opening import close_model, open_model
from orchestrator.models.provider import PROVIDERS, find_provider, private
from orchestrator.models.reference import Reference, parse_reference
from orchestrator.testing import ScriptedModel

if TYPE_CHECKING:
    from tests.cli.desk import Desk

KEY = "sk-test-77aa"


@pytest.mark.parametrize(
    "name, reference",
    [
        ("openai:gpt-5", Reference("openai", "gpt-5")),
        ("openai/gpt-5-mini", Reference("openai", "gpt-5-mini")),
        (" openai:gpt-5 ", Reference("openai", "gpt-5")),
        ("openrouter:openai/gpt-5:free", Reference("openrouter", "openai/gpt-5:free")),
        ("ollama/qwen3:8b", Reference("ollama", "qwen3:8b")),
        ("openai:m@http://127.0.0.1:8000/v1/", Reference("openai", "m", "http://127.0.0.1:8000/v1")),
        ("openrouter:m@preset/x", Reference("openrouter", "m@preset/x")),
        ("openrouter:m@preset/x@https://h/v1", Reference("openrouter", "m@preset/x", "https://h/v1")),
        ("vllm:m@http://[::1]:8000/v1", Reference("vllm", "m", "http://[::1]:8000/v1")),
        ("vllm:m@HTTP://h:8000/v1", Reference("vllm", "m", "HTTP://h:8000/v1")),
    ],
)
def test_a_name_says_provider_model_and_perhaps_where(name: str, reference: Reference) -> None:
    assert parse_reference(name) == reference
    assert parse_reference(str(reference)) == reference


@pytest.mark.parametrize(
    "name, reason",
    [
        ("gpt-5", "a model is written provider:model"),
        (":gpt-5", "a model is written provider:model"),
        ("", "a model is written provider:model"),
        ("openai:", "the name of a model is missing behind openai:"),
        ("nope:gpt-5", "this release has no such provider"),
        ("openai-compatible:m", "it has no usual base URL"),
        ("openai:m@http://", "no http:// or https:// address of a host"),
        ("openai:m@http://h:x/v1", "cannot be read"),
        ("openai:m@ftp://h/v1", "no http:// or https:// address of a host"),
        ("openai:m@http://..h/v1", "cannot be read"),
        (f"openai:m@http://{'h' * 300}.test/v1", "cannot be read"),
        ("openai:m@http://a b/v1", "holds a blank or a sign that does not print"),
        ("openai:m@http://h/v1\x1b[2J", "holds a blank or a sign that does not print"),
        ("openai:m@http://h/v1/chat/completions/", "ends before /chat/completions"),
        ("openai: @http://h/v1", "the name of a model is missing behind openai:"),
        (f"openai:m@http://h/v1?key={KEY}", "has a query"),
        ("openai:m@http://h/v1?key=1", "has a query"),
        (f"openai:m@http://me:{KEY}@h/v1", "a key belongs into the environment"),
        ("openai:m@http://8.8.8.8/v1", "OPENAI_API_KEY would go to http://8.8.8.8/v1 unencrypted"),
        ("openai:m@http://example.com/v1", "unencrypted"),
    ],
)
def test_a_name_that_leads_nowhere_is_refused_with_the_reason_and_without_any_key(name: str, reason: str) -> None:
    with pytest.raises(UnknownModel) as caught:
        open_model(name, {"OPENAI_API_KEY": KEY})
    assert reason in str(caught.value)
    assert KEY not in str(caught.value)


def where(name: str, environ: dict[str, str]) -> tuple[str, str]:
    """The base URL and the key of the model *name*."""
    endpoint = vars(open_model(name, environ))["_endpoint"]
    return endpoint.base_url, endpoint.key


@pytest.mark.parametrize("provider", [each for each in PROVIDERS if not each.keyless], ids=lambda each: each.name)
def test_each_provider_is_asked_at_its_own_address_with_its_own_key_and_without_it_not_at_all(provider: Any) -> None:
    name = f"{provider.name}:m"
    assert where(name, {provider.key_name: f" {KEY}\n"}) == (provider.base_url, KEY)
    with pytest.raises(KeyMissing) as caught:
        open_model(name, {provider.key_name: " "})
    assert (caught.value.variable, provider.key_name in str(caught.value)) == (provider.key_name, True)
    elsewhere = {provider.url_name: "https://proxy.example/v1/"}
    assert where(name, elsewhere) == ("https://proxy.example/v1", "")


@pytest.mark.parametrize(
    "name, environ, found",
    [
        ("ollama:m", {}, "http://127.0.0.1:11434/v1"),
        ("ollama:m", {"OLLAMA_HOST": "0.0.0.0"}, "http://127.0.0.1:11434/v1"),
        ("ollama:m", {"OLLAMA_HOST": "box:1234"}, "http://box:1234/v1"),
        ("ollama:m", {"OLLAMA_HOST": ":1234"}, "http://127.0.0.1:1234/v1"),
        ("ollama:m", {"OLLAMA_HOST": "http://box:80/"}, "http://box:80/v1"),
        ("ollama:m", {"OLLAMA_HOST": "https://ollama.example"}, "https://ollama.example:443/v1"),
        ("ollama:m", {"OLLAMA_HOST": "[::1]:5"}, "http://[::1]:5/v1"),
        ("llamacpp:m", {}, "http://127.0.0.1:8080/v1"),
        ("vllm:m", {}, "http://127.0.0.1:8000/v1"),
        ("vllm:m", {"VLLM_BASE_URL": "http://gpu:9/v1"}, "http://gpu:9/v1"),
        ("openai-compatible:m", {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}, "http://127.0.0.1:9/v1"),
        ("openai-compatible:m@http://127.0.0.1:8/v1", {"OPENAI_BASE_URL": "http://h/v1"}, "http://127.0.0.1:8/v1"),
    ],
)
def test_a_local_server_needs_no_key_and_is_where_the_environment_says(
    name: str, environ: dict[str, str], found: str
) -> None:
    assert where(name, environ) == (found, "")


@pytest.mark.parametrize("key", ["sk a", "sk\nb", "sk\x00", "s\u00e9"])
def test_a_key_that_no_header_can_carry_is_refused_by_the_name_of_its_variable(key: str) -> None:
    with pytest.raises(UnknownModel, match="OPENAI_API_KEY holds a blank") as caught:
        open_model("openai:m", {"OPENAI_API_KEY": key})
    assert key not in str(caught.value)


@pytest.mark.parametrize(
    "environ", [{"VLLM_BASE_URL": "ftp://x"}, {"VLLM_BASE_URL": "nonsense"}, {"VLLM_BASE_URL": "http://a:b@c"}]
)
def test_a_base_url_of_the_environment_that_cannot_be_is_refused_by_the_name_of_its_variable(
    environ: dict[str, str],
) -> None:
    with pytest.raises(UnknownModel, match="VLLM_BASE_URL: the base URL"):
        open_model("vllm:m", environ)


def test_how_often_to_ask_again_comes_from_the_environment() -> None:
    attempts = lambda environ: vars(open_model("vllm:m", environ))["_retry"].attempts  # noqa: E731
    assert [attempts({}), attempts({"LLM_MAX_RETRIES": "0"}), attempts({"LLM_MAX_RETRIES": "7"})] == [5, 1, 8]
    for wrong in ("-1", "many", "1.5", "101"):
        with pytest.raises(UnknownModel, match="LLM_MAX_RETRIES is"):
            open_model("vllm:m", {"LLM_MAX_RETRIES": wrong})


def test_no_key_is_in_what_a_model_shows_of_itself() -> None:
    model = open_model("openai:m", {"OPENAI_API_KEY": KEY})
    assert KEY not in repr(model) + repr(vars(model))


def test_only_what_is_encrypted_or_near_is_private() -> None:
    near = [
        "https://x.example",
        "http://localhost:1",
        "http://127.0.0.1",
        "http://10.0.0.7:8000",
        "http://gpu",
        "http://[::1]:8",
    ]
    far = ["http://example.com", "http://8.8.8.8", "http://[2001:4860:4860::8888]"]
    assert [url for url in near if not private(url)] + [url for url in far if private(url)] == []


def test_the_table_of_providers_names_each_once_and_every_address_is_encrypted_or_near() -> None:
    names = [provider.name for provider in PROVIDERS]
    assert len(set(names)) == len(names)
    assert find_provider("openai") is PROVIDERS[0]
    assert all(private(provider.base_url) for provider in PROVIDERS if provider.base_url)


async def test_a_model_that_holds_nothing_is_closed_by_doing_nothing() -> None:
    await close_model(ScriptedModel())
    await close_model(None)


@pytest.mark.parametrize("what", ["tidy.yaml", "support-desk"])
def test_a_run_without_its_key_is_refused_before_anything_is_made(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    said = desk.run(what=what, model="openai:gpt-5")
    assert (said.code, said.out, desk.made()) == (2, "", [])
    assert "OPENAI_API_KEY is not set" in said.err
    assert "Traceback" not in said.err


def test_the_name_of_a_model_is_on_record_and_its_key_is_not(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    from orchestrator.models.function import FunctionModel
    from tests.models.provider import FakeProvider

    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with FakeProvider(FunctionModel({}, default=lambda _: "done")) as there:
        said = desk.run("--json", model=f"openai:m@{there.base_url}")
    assert said.code == 0
    assert {headers["authorization"] for headers in there.headers} == {f"bearer {KEY}"}
    listed = desk.say("sessions", "list", "--json").out
    assert f"openai:m@{there.base_url}" in listed
    events = desk.say("sessions", "events", json.loads(said.out)["session"]).out
    kept = b"".join(path.read_bytes() for path in desk.home.rglob("*") if path.is_file())
    assert KEY.encode() not in kept + (listed + events + said.out + said.err).encode()
