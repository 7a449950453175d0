"""What the gateway promises, with a real vLLM behind it."""

import threading

import anthropic
import httpx2
import openai
import pytest

from conftest import ADAPTERS, MODEL, wait_until

HELLO = [{"role": "user", "content": "Say hello."}]
TO_THE_END = {"ignore_eos": True}


def test_models_list_the_base_model_and_its_adapters(client):
    cards = {card.id: card for card in client.models.list()}
    assert set(cards) == {MODEL, *ADAPTERS}
    assert all(cards[name].model_extra["parent"] == MODEL for name in ADAPTERS)


def test_chat_answers_with_the_engines_own_usage(client):
    answer = client.chat.completions.create(model=MODEL, messages=HELLO, max_tokens=7, extra_body=TO_THE_END)
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage.completion_tokens == 7
    assert answer.system_fingerprint.startswith("vllm-0.32.0"), "the answer is the engine's, unchanged"


def test_an_answer_is_what_the_engine_gives_when_asked_directly(client, engines):
    request = {"model": MODEL, "messages": HELLO, "max_tokens": 9, "temperature": 0} | TO_THE_END
    direct = httpx2.post(f"{engines[0].url}/v1/chat/completions", json=request, timeout=60).json()
    through = client.post("/chat/completions", body=request, cast_to=httpx2.Response).json()
    for answer in (direct, through):
        del answer["id"], answer["created"]
    assert through == direct


def test_chat_streams_and_ends_with_usage(client):
    chunks = list(
        client.chat.completions.create(
            model=MODEL,
            messages=HELLO,
            max_tokens=20,
            stream=True,
            stream_options={"include_usage": True},
            extra_body=TO_THE_END,
        )
    )
    assert len(chunks) >= 10
    assert chunks[-1].usage.completion_tokens == 20


def test_completions_answer_and_stream(client):
    whole = client.completions.create(model=MODEL, prompt="def main(", max_tokens=5, extra_body=TO_THE_END)
    assert whole.usage.completion_tokens == 5
    parts = list(client.completions.create(model=MODEL, prompt="def main(", max_tokens=5, stream=True, extra_body=TO_THE_END))
    assert parts[-1].choices[0].finish_reason == "length"


def test_responses_and_messages_answer(client, gateway):
    assert client.responses.create(model=MODEL, input="Say hello.", max_output_tokens=5).usage.output_tokens > 0
    with anthropic.Anthropic(base_url=gateway.url, api_key="none", max_retries=0, timeout=60) as claude:
        answer = claude.messages.create(model=MODEL, max_tokens=5, messages=HELLO)
        assert answer.usage.output_tokens > 0
        assert claude.messages.count_tokens(model=MODEL, messages=HELLO).input_tokens > 0


def test_each_adapter_answers_by_its_name_and_differently(client):
    def text(model: str) -> str:
        answer = client.chat.completions.create(
            model=model, messages=HELLO, max_tokens=12, temperature=0, extra_body=TO_THE_END
        )
        assert answer.model == model
        return answer.choices[0].message.content

    assert len({text(name) for name in (MODEL, *ADAPTERS)}) == 3, "each has weights of its own"


def test_embeddings_are_refused_as_the_engine_refuses_them(client, engines):
    direct = httpx2.post(f"{engines[0].url}/v1/embeddings", json={"model": MODEL, "input": "x"}, timeout=30)
    with pytest.raises(openai.APIStatusError) as caught:
        client.embeddings.create(model=MODEL, input="x", encoding_format="float")
    assert caught.value.status_code == direct.status_code
    assert caught.value.response.content == direct.content


def test_an_unknown_model_is_refused_before_any_engine_sees_it(client):
    with pytest.raises(openai.NotFoundError) as caught:
        client.chat.completions.create(model="no-such-model", messages=HELLO)
    assert caught.value.code == "model_not_found"


def test_a_prompt_that_is_too_long_is_the_engines_own_error(client):
    with pytest.raises(openai.BadRequestError):
        client.completions.create(model=MODEL, prompt="word " * 5000, max_tokens=5)


def test_paths_that_control_the_engine_are_not_reachable(gateway):
    for path in ("/v1/load_lora_adapter", "/metrics", "/pause", "/load", "/version", "/v1/../metrics", "/health"):
        answer = httpx2.post(f"{gateway.url}{path}", json={"lora_name": "x", "lora_path": "y"}, timeout=10)
        assert answer.status_code == 404, path


def test_the_engines_signals_are_seen_by_the_gateway(client, gateway, engines):
    streams = [
        client.chat.completions.create(model=name, messages=HELLO, max_tokens=1500, stream=True, extra_body=TO_THE_END)
        for name in (MODEL, *ADAPTERS, MODEL)
    ]
    try:
        for stream in streams:
            next(stream)
        wait_until("running requests on the gateway's page", lambda: gateway.metric("wicketgate_endpoint_running_requests") >= 2)
        wait_until("KV-cache use on the gateway's page", lambda: gateway.metric("wicketgate_endpoint_kv_usage_ratio") > 0)
        assert gateway.metric("wicketgate_endpoint_up") == 2
        listed = httpx2.get(f"{gateway.admin}/debug/endpoints", timeout=10).text
        for replica in engines:
            assert replica.address in listed
            assert gateway.metric("wicketgate_endpoint_picks_total", endpoint=replica.address) >= 1
    finally:
        for stream in streams:
            stream.close()


def test_usage_is_counted_from_what_the_engine_said(client, gateway):
    def counted() -> float:
        return gateway.metric("wicketgate_output_tokens_total")

    before = counted()
    client.chat.completions.create(model=MODEL, messages=HELLO, max_tokens=11, extra_body=TO_THE_END)
    wait_until("11 output tokens", lambda: counted() == before + 11)
    stream = client.chat.completions.create(
        model=MODEL,
        messages=HELLO,
        max_tokens=13,
        stream=True,
        stream_options={"include_usage": True},
        extra_body=TO_THE_END,
    )
    list(stream)
    wait_until("13 more", lambda: counted() == before + 24)


@pytest.mark.parametrize("streamed", [True, False], ids=["stream", "no stream"])
def test_a_client_that_leaves_stops_the_work_in_the_engine(client, engines, streamed):
    def running() -> float:
        return sum(replica.metric("vllm:num_requests_running") for replica in engines)

    def generated() -> float:
        return sum(replica.metric("vllm:generation_tokens_total") for replica in engines)

    wait_until("the engines are idle", lambda: running() == 0)
    before = generated()
    if streamed:
        stream = client.chat.completions.create(
            model=MODEL, messages=HELLO, max_tokens=1900, stream=True, extra_body=TO_THE_END
        )
        for _ in range(3):
            next(stream)
        stream.close()
    else:
        with pytest.raises(openai.APITimeoutError):
            client.with_options(timeout=0.3).chat.completions.create(
                model=MODEL, messages=HELLO, max_tokens=1900, extra_body=TO_THE_END
            )
    wait_until("no running request", lambda: running() == 0)
    made = generated() - before
    assert made < 1900, f"the engine went on to the end: {made} tokens"


def test_the_death_of_a_replica_is_seen_only_by_the_requests_that_it_was_answering(client, gateway, engines):
    clients = 6
    dead = threading.Event()
    stop = threading.Event()
    after_death = 0
    lock = threading.Lock()
    wrong: list[str] = []
    cut = 0

    def ask_again_and_again() -> None:
        nonlocal after_death, cut
        while not stop.is_set():
            began_after_death = dead.is_set()
            try:
                chunks = list(
                    client.chat.completions.create(
                        model=MODEL,
                        messages=HELLO,
                        max_tokens=24,
                        stream=True,
                        stream_options={"include_usage": True},
                        extra_body=TO_THE_END,
                    )
                )
                with lock:
                    if chunks[-1].usage.completion_tokens != 24:
                        wrong.append("an answer without its usage")
                    after_death += began_after_death
            except openai.OpenAIError as error:
                with lock:
                    if began_after_death:
                        wrong.append(f"{type(error).__name__}: {error}")
                    else:
                        cut += 1

    threads = [threading.Thread(target=ask_again_and_again) for _ in range(clients)]
    for thread in threads:
        thread.start()
    try:
        victim = engines[0]
        picks = gateway.metric("wicketgate_endpoint_picks_total", endpoint=victim.address)
        wait_until(
            "load on the replica",
            lambda: gateway.metric("wicketgate_endpoint_picks_total", endpoint=victim.address) >= picks + 5,
            60,
        )
        victim.server.kill()
        dead.set()
        wait_until("40 answers after the death", lambda: after_death >= 40 or bool(wrong), 120)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not wrong, wrong[:5]
    assert cut <= clients, "more requests failed than were in flight"
    wait_until("the gateway marks it as down", lambda: gateway.metric("wicketgate_endpoint_up", endpoint=victim.address) == 0)
    assert client.chat.completions.create(model=MODEL, messages=HELLO, max_tokens=2).choices
