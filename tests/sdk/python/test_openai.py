"""OpenAI's Python client works unmodified: every resource that the gateway serves."""

import asyncio
import base64
import io

import openai
import pytest

HELLO = [{"role": "user", "content": "Say hello."}]


def test_models_list_the_base_model_and_its_adapters(client, model, adapters):
    cards = {card.id: card for card in client.models.list()}
    assert set(cards) == {model, *adapters}
    for adapter in adapters:
        assert cards[adapter].model_extra["parent"] == model


def test_one_model_is_retrieved_by_name(client, model, adapters):
    assert client.models.retrieve(model).id == model
    assert client.models.retrieve(adapters[0]).id == adapters[0]


def test_retrieving_an_unknown_model_is_not_found(client):
    with pytest.raises(openai.NotFoundError) as caught:
        client.models.retrieve("no-such-model")
    assert caught.value.code == "model_not_found"


def test_chat_answers_with_text_and_usage(client, model):
    answer = client.chat.completions.create(
        model=model, messages=HELLO, max_tokens=12, extra_body={"ignore_eos": True}
    )
    assert answer.model == model
    assert answer.choices[0].message.content
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage.completion_tokens == 12
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + 12


def test_chat_streams_token_by_token_and_ends_with_usage(client, model):
    chunks = list(
        client.chat.completions.create(
            model=model,
            messages=HELLO,
            max_tokens=12,
            stream=True,
            stream_options={"include_usage": True},
            extra_body={"ignore_eos": True},
        )
    )
    pieces = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
    assert sum(1 for piece in pieces if piece) >= 2, "one token a chunk, not one piece at the end"
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens == 12
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "length"


def test_a_stream_without_usage_asked_for_carries_none(client, model):
    chunks = list(client.chat.completions.create(model=model, messages=HELLO, max_tokens=3, stream=True))
    assert all(chunk.usage is None for chunk in chunks)


def test_the_stream_helper_collects_the_whole_answer(client, model):
    # The helper takes only an answer that the model itself ended: no token limit.
    with client.chat.completions.stream(model=model, messages=HELLO) as stream:
        for _ in stream:
            pass
        assert stream.get_final_completion().choices[0].message.content


def test_completions_answer_and_stream(client, model):
    whole = client.completions.create(model=model, prompt="Once upon", max_tokens=6, extra_body={"ignore_eos": True})
    assert whole.choices[0].text and whole.usage.completion_tokens == 6
    parts = list(client.completions.create(model=model, prompt="Once upon", max_tokens=6, stream=True))
    assert "".join(part.choices[0].text for part in parts if part.choices)


def test_embeddings_of_several_texts_come_back_in_order(client, model):
    answer = client.embeddings.create(model=model, input=["one", "two", "three"])
    assert [item.index for item in answer.data] == [0, 1, 2]
    assert all(isinstance(item.embedding[0], float) for item in answer.data)


def test_responses_answer(client, model):
    answer = client.responses.create(model=model, input="Say hello.", max_output_tokens=8)
    assert answer.output_text
    assert answer.usage.output_tokens > 0


def test_responses_stream_to_a_completed_answer(client, model):
    events = list(client.responses.create(model=model, input="Say hello.", max_output_tokens=8, stream=True))
    kinds = [event.type for event in events]
    assert kinds[0] == "response.created"
    assert kinds[-1] in ("response.completed", "response.incomplete")
    assert "response.output_text.delta" in kinds
    assert events[-1].response.usage.output_tokens > 0


def test_an_audio_file_is_transcribed(client, model):
    silence = b"RIFF\x24\x00\x00\x00WAVEfmt " + bytes(20) + b"data" + bytes(4000)
    answer = client.audio.transcriptions.create(model=model, file=("speech.wav", io.BytesIO(silence), "audio/wav"))
    assert answer.text


def test_an_adapter_is_asked_for_by_its_name(client, adapters):
    for adapter in adapters:
        answer = client.chat.completions.create(model=adapter, messages=HELLO, max_tokens=3)
        assert answer.model == adapter


def test_the_body_reaches_an_endpoint_byte_for_byte(client, model, sent, endpoints):
    tool = {"type": "function", "function": {"name": "weather", "description": "Wetter für Zürich ☔"}}
    picture = base64.b64encode(bytes(range(256)) * 40).decode()
    client.chat.completions.create(
        model=model,
        messages=[
            {"role": "system", "content": "Line one\nline two\t\"quoted\" \\ \u2028 end"},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Wie ist das Wetter? 🌧"},
                    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture}"}},
                ],
            },
        ],
        tools=[tool],
        tool_choice="auto",
        max_tokens=2,
        seed=9007199254740993,
        extra_body={"unknown_to_everyone": {"big": 12345678901234567890123, "list": [1.5e-7, None, True]}},
    )
    wanted = sent.digest()
    received = endpoints.wait_for("the same bytes", lambda request: request["body_sha256"] == wanted)
    assert received["path"] == "/v1/chat/completions"


def test_answers_carry_a_request_id(client, model):
    raw = client.chat.completions.with_raw_response.create(model=model, messages=HELLO, max_tokens=1)
    assert raw.headers["x-request-id"]


def test_many_at_once_all_succeed(url, model):
    async def ask_all():
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
            asked = (
                client.chat.completions.create(
                    model=model, messages=HELLO, max_tokens=4, extra_body={"ignore_eos": True}
                )
                for _ in range(24)
            )
            return await asyncio.gather(*asked)

    answers = asyncio.run(ask_all())
    assert all(answer.usage.completion_tokens == 4 for answer in answers)
