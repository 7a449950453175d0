"""What a collector gets, read by OpenTelemetry's own messages."""

from conftest import until
from opentelemetry.proto.trace.v1 import trace_pb2

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"


def attributes(of) -> dict:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in of.attributes}


def test_a_request_is_one_tree_below_the_callers_span(gateway, collector):
    headers = {"traceparent": f"00-{TRACE}-{PARENT}-01", "tracestate": "vendor=1"}
    assert gateway.chat("canaryprompt", headers, stream=True) == 200
    spans = until("the trace", collector.spans)
    assert {span.trace_id.hex() for span in spans} == {TRACE}
    by_id = {span.span_id: span for span in spans}
    assert len(by_id) == len(spans), "each span has an id of its own"
    assert all(len(span.span_id) == 8 for span in spans)
    roots = [span for span in spans if span.parent_span_id.hex() == PARENT]
    assert [trace_pb2.Span.SpanKind.Name(root.kind) for root in roots] == ["SPAN_KIND_SERVER"]
    for span in spans:
        assert span.start_time_unix_nano <= span.end_time_unix_nano
        if span is roots[0]:
            continue
        parent = by_id[span.parent_span_id]
        assert parent.start_time_unix_nano <= span.start_time_unix_nano, (parent.name, span.name)
        assert span.end_time_unix_nano <= parent.end_time_unix_nano, (parent.name, span.name)
    names = {span.name for span in spans}
    assert {"auth", "read", "pick", "connect", "wait", "stream"} <= names, names


def test_attributes_are_the_conventions_and_hold_no_text(gateway, collector):
    assert gateway.chat("canaryprompt of a secret plan") == 200
    spans = until("the trace", collector.spans)
    (root,) = [span for span in spans if not span.parent_span_id]
    whole = attributes(root)
    assert whole["http.request.method"] == "POST" and whole["http.route"] == "/v1/chat/completions"
    assert whole["http.response.status_code"] == 200
    (attempt,) = [span for span in spans if trace_pb2.Span.SpanKind.Name(span.kind) == "SPAN_KIND_CLIENT"]
    asked = attributes(attempt)
    assert attempt.name == f"chat {asked['gen_ai.request.model']}"
    assert asked["gen_ai.provider.name"] == "vllm" and asked["gen_ai.usage.output_tokens"] >= 1
    resource = attributes(collector.batches[0].resource_spans[0].resource)
    assert resource["service.name"] == "wicketgate" and resource["deployment.environment.name"] == "test"
    assert "canary" not in str(collector.batches)


def test_what_fails_says_so(gateway, collector):
    assert gateway.chat("hello", model="nobody-serves-this") == 404
    (root,) = until("the trace", lambda: [span for span in collector.spans() if not span.parent_span_id])
    assert attributes(root)["error.type"] == "model_not_found"
    assert attributes(root)["wicketgate.component"] in ("edge", "picker")


def test_batches_go_on_one_after_the_other(gateway, collector):
    for number in range(3):
        assert gateway.chat(f"request {number}") == 200
        until("its trace", lambda: len({span.trace_id for span in collector.spans()}) == number + 1)
    assert len(collector.batches) == 3
