"""A receiver made of OpenTelemetry's own messages, its collector before it where there is one, and a gateway with a
simulated endpoint that exports to them."""

import http.client
import http.server
import json
import os
import socket
import subprocess
import threading
import time
from concurrent import futures
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc

WAIT_SECONDS = 30.0
MODEL = "llama-3.1-8b"


def until(what: str, holds):
    """The first true value of `holds`, asked again and again."""
    end = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < end:
        if value := holds():
            return value
        time.sleep(0.05)
    pytest.fail(f"{what} did not come about within {WAIT_SECONDS} s")


@dataclass
class Collector:
    """Keeps every batch that it is sent, as it came and as OpenTelemetry reads it."""

    protocol: str
    url: str = ""
    batches: list[trace_service_pb2.ExportTraceServiceRequest] = field(default_factory=list)
    _stop: list = field(default_factory=list)

    def take(self, raw: bytes) -> bytes:
        batch = trace_service_pb2.ExportTraceServiceRequest.FromString(raw)
        # A field that OpenTelemetry does not know, or one of another type, would not come back the same.
        batch.DiscardUnknownFields()
        assert batch.SerializeToString(deterministic=True) == normal(raw), "fields that OpenTelemetry does not know"
        self.batches.append(batch)
        return trace_service_pb2.ExportTraceServiceResponse().SerializeToString()

    def spans(self) -> list:
        scopes = [scope for batch in list(self.batches) for of in batch.resource_spans for scope in of.scope_spans]
        return [span for scope in scopes for span in scope.spans]

    def stop(self):
        for stop in self._stop:
            stop()


def normal(raw: bytes) -> bytes:
    """The same message in the deterministic form, unknown fields kept."""
    return trace_service_pb2.ExportTraceServiceRequest.FromString(raw).SerializeToString(deterministic=True)


def over_http(collector: Collector):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            raw = self.rfile.read(int(self.headers["content-length"]))
            right = self.path == "/v1/traces" and self.headers["content-type"] == "application/x-protobuf"
            answer = collector.take(raw) if right else b""
            self.send_response(200 if right else 400)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    collector.url = f"http://127.0.0.1:{server.server_port}"
    collector._stop += [server.shutdown, server.server_close]


def over_grpc(collector: Collector):
    class Service(trace_service_pb2_grpc.TraceServiceServicer):
        def Export(self, request, context):
            collector.take(request.SerializeToString())
            return trace_service_pb2.ExportTraceServiceResponse()

    server = grpc.server(futures.ThreadPoolExecutor(2))
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(Service(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    collector.url = f"http://127.0.0.1:{port}"
    collector._stop.append(lambda: server.stop(None))


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def ask(port: int, method: str, path: str, body: dict | None = None, headers: dict | None = None):
    """Status, fields and body of one answer; status 0 if nobody listens."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_SECONDS)
    try:
        text = None if body is None else json.dumps(body)
        connection.request(method, path, text, {"content-type": "application/json", **(headers or {})})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    except OSError:
        return 0, {}, b""
    finally:
        connection.close()


@dataclass
class Gateway:
    traffic: int
    admin: int

    def chat(self, text: str, headers: dict | None = None, **more) -> int:
        body = {"model": MODEL, "messages": [{"role": "user", "content": text}], "max_tokens": 5, **more}
        return ask(self.traffic, "POST", "/v1/chat/completions", body, headers)[0]

    def metrics(self, accept: str) -> tuple[str, str]:
        _, fields, page = ask(self.admin, "GET", "/metrics", headers={"accept": accept})
        return fields["content-type"], page.decode()


def binary() -> Path:
    path = os.environ.get("WICKETGATE_TEST_BINARY")
    if not path:
        pytest.exit("WICKETGATE_TEST_BINARY is not set: run `cargo xtask test --only otel`", 2)
    return Path(path)


class Processes:
    """Ends what it started, the last first."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.running: list[subprocess.Popen] = []

    def start(self, name: str, *arguments: str, **environment: str):
        self.run(name, str(binary()), *arguments, **environment)

    def run(self, name: str, *command: str, **environment: str):
        log = (self.folder / f"{name}.log").open("w")
        env = {**os.environ, **environment}
        self.running.append(subprocess.Popen(command, stdout=log, stderr=log, env=env))

    def stop(self):
        for process in reversed(self.running):
            process.terminate()
            process.wait(WAIT_SECONDS)


def is_scraped(page: bytes) -> bool:
    lines = [line for line in page.splitlines() if line.startswith(b"wicketgate_endpoint_scrapes_total")]
    return any(not line.endswith(b" 0") for line in lines)


def described(endpoint: int, traffic: int, admin: int) -> dict:
    scheduler = {"name": "chat", "modelName": MODEL, "endpoints": [{"url": f"http://127.0.0.1:{endpoint}"}]}
    spec = {
        "schedulers": [scheduler],
        "listener": {"address": f"127.0.0.1:{traffic}"},
        "admin": {"address": f"127.0.0.1:{admin}"},
        "timeouts": {"drainDelay": "0s"},
    }
    kind = {"apiVersion": "gateway.wicketgate.dev/v1alpha1", "kind": "InferenceGatewayConfig"}
    return {**kind, "metadata": {"name": "otel"}, "spec": spec}


def through_collector(collector: Collector, folder: Path):
    """Puts OpenTelemetry's own collector between the gateway and the receiver."""
    over_http(collector)
    grpc_port, http_port = free_port(), free_port()
    protocols = {"grpc": {"endpoint": f"127.0.0.1:{grpc_port}"}, "http": {"endpoint": f"127.0.0.1:{http_port}"}}
    config = {
        "receivers": {"otlp": {"protocols": protocols}},
        "exporters": {"otlp_http": {"endpoint": collector.url, "compression": "none"}},
        "service": {
            "telemetry": {"metrics": {"level": "none"}},
            "pipelines": {"traces": {"receivers": ["otlp"], "exporters": ["otlp_http"]}},
        },
    }
    file = folder / "collector.yaml"
    file.write_text(json.dumps(config))
    processes = Processes(folder)
    processes.run("collector", os.environ["WICKETGATE_TEST_COLLECTOR"], "--config", f"file:{file}")
    collector._stop.insert(0, processes.stop)
    port = grpc_port if collector.protocol == "grpc" else http_port
    collector.url = f"http://127.0.0.1:{port}"
    until("the collector", lambda: listens(grpc_port) and listens(http_port))


def listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


PROTOCOLS = ["http/protobuf", "grpc"]
WAYS = PROTOCOLS + ([f"{one} through a collector" for one in PROTOCOLS] if os.environ.get("WICKETGATE_TEST_COLLECTOR") else [])


@pytest.fixture(params=WAYS)
def collector(request, tmp_path):
    protocol, _, through = request.param.partition(" ")
    made = Collector(protocol)
    if through:
        through_collector(made, tmp_path)
    else:
        over_grpc(made) if protocol == "grpc" else over_http(made)
    yield made
    made.stop()


@pytest.fixture
def gateway(collector, tmp_path):
    endpoint, traffic, admin = free_port(), free_port(), free_port()
    processes = Processes(tmp_path)
    processes.start("sim", "sim", "--port", str(endpoint), "--model", MODEL, "--time-scale", "0.1")
    document = tmp_path / "gateway.json"
    document.write_text(json.dumps(described(endpoint, traffic, admin)))
    processes.start(
        "serve",
        *("serve", "-f", str(document)),
        OTEL_EXPORTER_OTLP_ENDPOINT=collector.url,
        OTEL_EXPORTER_OTLP_PROTOCOL=collector.protocol,
        OTEL_TRACES_SAMPLER="parentbased_always_on",
        OTEL_RESOURCE_ATTRIBUTES="deployment.environment.name=test",
    )
    try:
        until("the gateway", lambda: ask(admin, "GET", "/readyz")[0] == 200)
        # Until then nobody knows which engine it is.
        until("a scrape", lambda: is_scraped(ask(admin, "GET", "/metrics")[2]))
        yield Gateway(traffic, admin)
    finally:
        processes.stop()
