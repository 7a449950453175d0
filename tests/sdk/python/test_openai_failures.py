"""What goes wrong reaches OpenAI's Python client as the exception that its users expect."""

import asyncio

import httpx2
import openai
import pytest

HELLO = [{"role": "user", "content": "Say hello."}]
LONG = {"ignore_eos": True}


def cancelled(body_sha256: str):
    """Whether a received request is the one with this body, and its client left."""
    return lambda request: request["body_sha256"] == body_sha256 and request["outcome"] == "cancelled"


def test_an_unknown_model_is_not_found_and_named(client):
    with pytest.raises(openai.NotFoundError) as caught:
        client.chat.completions.create(model="llama-3.1-9b", messages=HELLO)
    assert caught.value.code == "model_not_found"
    assert "llama-3.1-9b" in caught.value.message


def test_a_model_that_is_no_name_is_a_bad_request(client):
    with pytest.raises(openai.BadRequestError) as caught:
        client.post("/chat/completions", body={"model": 7, "messages": HELLO}, cast_to=object)
    assert caught.value.param == "model"


def test_a_prompt_is_never_repeated_in_an_error(client, model):
    secret = "the launch code is 0000"
    with pytest.raises(openai.BadRequestError) as caught:
        client.post(
            "/chat/completions",
            content=f'{{"model": "{model}", "messages": [{{"role": "user", "content": "{secret}" "oops"}}]}}'.encode(),
            options={"headers": {"content-type": "application/json"}},
            cast_to=object,
        )
    assert secret not in caught.value.response.text


def test_an_engines_own_refusal_arrives_as_it_was(client, model):
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model=model, messages=HELLO, max_tokens=100_000_000)
    assert caught.value.message


def test_an_unknown_path_is_not_found(client):
    with pytest.raises(openai.NotFoundError):
        client.post("/no/such/path", body={}, cast_to=object)


def test_a_full_engine_is_a_rate_limit_with_its_time(client, model, endpoints):
    endpoints.fault(kind="error", status=429, retry_after="7")
    with pytest.raises(openai.RateLimitError) as caught:
        client.chat.completions.create(model=model, messages=HELLO)
    assert int(caught.value.response.headers["retry-after"]) == 7


def test_a_full_pool_is_a_rate_limit_of_the_gateways_own(url, model):
    # Each endpoint runs 8 at once and is full when 32 wait (the default).
    streams = 2 * (8 + 32) + 40

    async def ask(client: openai.AsyncOpenAI, **more: object):
        return await client.chat.completions.create(model=model, messages=HELLO, max_tokens=4000, extra_body=LONG, **more)

    async def fill_and_ask_for_more() -> openai.RateLimitError:
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=60) as client:
            filling = [asyncio.create_task(ask(client, stream=True)) for _ in range(streams)]
            try:
                return await more_until_refused(client, filling)
            finally:
                for task in filling:
                    task.cancel()
                await asyncio.gather(*filling, return_exceptions=True)

    async def more_until_refused(client: openai.AsyncOpenAI, filling: list[asyncio.Task]) -> openai.RateLimitError:
        # The faster endpoint is given more: each one that gets in stays, until the slower is full as well.
        for _ in range(400):
            task = asyncio.create_task(ask(client, stream=True))
            done, _ = await asyncio.wait({task}, timeout=0.05)
            if done and isinstance(task.exception(), openai.RateLimitError):
                return task.exception()
            filling.append(task)
        pytest.fail(f"{len(filling)} streams at once, and none was refused")

    refusal = asyncio.run(fill_and_ask_for_more())
    assert int(refusal.response.headers["retry-after"]) >= 1
    assert refusal.response.headers["x-wicketgate-component"]


def test_the_clients_own_retry_succeeds_once_there_is_room(client, model, endpoints):
    endpoints.fault(kind="error", status=429, retry_after="1", next=1)
    patient = client.with_options(max_retries=4)
    assert patient.chat.completions.create(model=model, messages=HELLO, max_tokens=2).choices


def test_an_error_of_an_endpoint_is_a_server_error(client, model, endpoints):
    endpoints.fault(kind="error", status=500)
    with pytest.raises(openai.InternalServerError):
        client.chat.completions.create(model=model, messages=HELLO)


def test_an_overloaded_answer_of_one_endpoint_is_hidden_by_another(client, model, admin, endpoints):
    def retries() -> float:
        lines = httpx2.get(f"{admin}/metrics").text.splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith("wicketgate_retries_total{"))

    # Light traffic may keep to one endpoint; which one is not said.
    for faulty in endpoints.urls:
        endpoints.clear()
        endpoints.http.post(f"{faulty}/admin/fault", json={"kind": "error", "status": 503}).raise_for_status()
        before = retries()
        for _ in range(50):
            # Retries have a budget, of which other tests may have used some: then the 503 is seen.
            try:
                assert client.chat.completions.create(model=model, messages=HELLO, max_tokens=1).choices
            except openai.InternalServerError:
                continue
            if retries() > before:
                return
    pytest.fail("none of 100 requests was tried again at the other endpoint")


def test_the_clients_own_timeout_ends_the_request_at_the_endpoint(client, model, sent, endpoints):
    endpoints.fault(kind="stall")
    with pytest.raises(openai.APITimeoutError):
        client.with_options(timeout=0.5).chat.completions.create(model=model, messages=HELLO, user="impatient")
    endpoints.wait_for("the cancellation", cancelled(sent.digest()))


def test_leaving_a_stream_ends_the_request_at_the_endpoint(client, model, sent, endpoints):
    stream = client.chat.completions.create(
        model=model, messages=HELLO, stream=True, max_tokens=4000, extra_body=LONG
    )
    for _ in range(5):
        next(stream)
    stream.close()
    left = endpoints.wait_for("the cancellation", cancelled(sent.digest()))
    assert left["chunks_sent"] < 4000


def test_a_stream_that_breaks_off_is_an_error_and_no_normal_end(client, model, endpoints):
    endpoints.fault(kind="cut", after_chunks=3)
    seen = 0
    with pytest.raises(openai.APIError) as caught:
        for chunk in client.chat.completions.create(
            model=model, messages=HELLO, stream=True, max_tokens=50, extra_body=LONG
        ):
            seen += 1
    assert seen >= 1, "what came before the break was passed on"
    assert not isinstance(caught.value, openai.APIConnectionError), "an error event, not a broken connection"


def test_an_error_event_within_a_stream_is_raised(client, model, endpoints):
    endpoints.fault(kind="error_event", after_chunks=2)
    with pytest.raises(openai.APIError):
        list(client.chat.completions.create(model=model, messages=HELLO, stream=True, max_tokens=50, extra_body=LONG))


def test_errors_are_json_objects_that_name_the_part_that_failed(url):
    answer = httpx2.post(
        f"{url}/v1/chat/completions",
        content=b'{"model": "x", "model": "y"}',
        headers={"content-type": "application/json"},
    )
    assert answer.status_code == 400
    assert answer.headers["x-wicketgate-component"] == "edge"
    assert answer.json()["error"]["type"] == "invalid_request_error"
