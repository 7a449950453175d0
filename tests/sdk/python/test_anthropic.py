"""Anthropic's Python client works unmodified against `/v1/messages`."""

import anthropic
import pytest

HELLO = [{"role": "user", "content": "Say hello."}]


def test_a_message_is_answered_with_text_and_usage(claude, model):
    answer = claude.messages.create(model=model, max_tokens=8, messages=HELLO)
    assert answer.role == "assistant"
    assert answer.content[0].text
    assert answer.usage.input_tokens > 0 and answer.usage.output_tokens > 0


def test_a_message_streams_to_its_end(claude, model):
    with claude.messages.stream(model=model, max_tokens=8, messages=HELLO) as stream:
        pieces = list(stream.text_stream)
        final = stream.get_final_message()
    assert len(pieces) >= 2
    assert "".join(pieces) == final.content[0].text
    assert final.stop_reason in ("max_tokens", "end_turn")
    assert final.usage.output_tokens > 0


def test_tokens_are_counted(claude, model):
    short = claude.messages.count_tokens(model=model, messages=HELLO).input_tokens
    long = claude.messages.count_tokens(model=model, messages=[{"role": "user", "content": "hello " * 200}]).input_tokens
    assert 0 < short < long


def test_an_unknown_model_is_not_found_in_this_dialect(claude):
    with pytest.raises(anthropic.NotFoundError) as caught:
        claude.messages.create(model="no-such-model", max_tokens=8, messages=HELLO)
    assert caught.value.body["type"] == "error"
    assert caught.value.body["error"]["type"] == "not_found_error"


def test_a_full_engine_is_a_rate_limit(claude, model, endpoints):
    endpoints.fault(kind="error", status=429, retry_after="3")
    with pytest.raises(anthropic.RateLimitError) as caught:
        claude.messages.create(model=model, max_tokens=8, messages=HELLO)
    assert caught.value.response.headers["retry-after"] == "3"


def test_a_stream_that_breaks_off_is_an_error(claude, model, endpoints):
    endpoints.fault(kind="cut", after_chunks=2)
    with pytest.raises(anthropic.APIError), claude.messages.stream(model=model, max_tokens=50, messages=HELLO) as stream:
        list(stream.text_stream)
