"""`/metrics` read by Prometheus' reference parsers, the strict one of OpenMetrics first."""

from conftest import until
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_families
from prometheus_client.parser import text_string_to_metric_families as plain_families

PROMETHEUS = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"


def exemplars(families) -> list:
    samples = [sample for family in families for sample in family.samples]
    return [(sample.name, sample.exemplar) for sample in samples if sample.exemplar]


def test_open_metrics_are_strict_and_name_the_trace(gateway, collector):
    assert gateway.chat("hello", stream=True) == 200
    (root,) = until("the trace", lambda: [span for span in collector.spans() if not span.parent_span_id])
    kind, page = gateway.metrics(PROMETHEUS)
    assert kind.startswith("application/openmetrics-text; version=1.0.0")
    found = exemplars(open_families(page))
    assert {name for name, _ in found} == {
        "wicketgate_request_duration_seconds_bucket",
        "wicketgate_request_ttft_seconds_bucket",
    }
    assert {exemplar.labels["trace_id"] for _, exemplar in found} == {root.trace_id.hex()}


def test_plain_text_has_the_same_series_and_no_trace(gateway):
    assert gateway.chat("hello") == 200
    kind, page = gateway.metrics("*/*")
    assert kind.startswith("text/plain; version=0.0.4")
    assert "trace_id" not in page and "# EOF" not in page
    _, open_page = gateway.metrics("application/openmetrics-text")
    names = {sample.name for family in plain_families(page) for sample in family.samples}
    open_names = {sample.name for family in open_families(open_page) for sample in family.samples}
    # A histogram with buckets below zero has no sum in OpenMetrics, and so no count.
    regret = "wicketgate_shadow_regret_seconds"
    assert names - open_names == {f"{regret}_sum", f"{regret}_count"}
    assert open_names <= names
