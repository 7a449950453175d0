"""Starts two vLLM replicas and the gateway, and ends them again."""

import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import openai
import pytest

MODEL = "tiny"
ADAPTERS = ("lora-a", "lora-b")
ENGINE_READY_SECONDS = 400.0  # two at once on two busy cores; 33 s when alone
GATEWAY_READY_SECONDS = 30.0
STOP_SECONDS = 20.0

ENGINE_ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",  # two threads on shared cores are many times slower
}


def variable(name: str) -> Path:
    value = os.environ.get(name)
    if not value:
        pytest.exit(f"{name} is not set: run `cargo xtask test --only real-engine`", 2)
    return Path(value)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until(what: str, condition: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.05)  # between two looks


STARTED: list["Server"] = []


def pytest_configure() -> None:
    """On SIGTERM, ends what we started before we leave; pytest itself only minds SIGINT."""

    def leave(number: int, _frame: object) -> None:
        for server in STARTED:
            server.kill()
        raise KeyboardInterrupt(f"signal {number}")

    signal.signal(signal.SIGTERM, leave)


@dataclass
class Server:
    """A process in a session of its own, so that ending it reaches its children."""

    name: str
    command: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen | None = None

    @property
    def log(self) -> Path:
        return variable("WICKETGATE_TEST_LOGS") / f"real-engine-{self.name}.log"

    def start(self) -> None:
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                self.command,
                env=os.environ | self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        STARTED.append(self)

    def wait_ready(self, url: str, seconds: float) -> None:
        def ready() -> bool:
            if self.process.poll() is not None:
                tail = "\n".join(self.log.read_text(errors="replace").splitlines()[-15:])
                pytest.exit(f"{self.name} left early ({self.process.returncode}):\n{tail}", 3)
            try:
                return httpx2.get(url, timeout=2).status_code == 200
            except httpx2.HTTPError:
                return False

        wait_until(f"{self.name} is ready", ready, seconds)

    def kill(self) -> None:
        """Ends the process and all its children at once, as a lost machine would."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()

    def stop(self) -> None:
        if self.process is None:
            return
        # The gateway takes a second signal as the wish not to wait for open streams.
        for patience in (1.0, STOP_SECONDS):
            if self.process.poll() is None:
                self.process.terminate()
                try:
                    self.process.wait(patience)
                except subprocess.TimeoutExpired:
                    pass
        self.kill()


@dataclass
class Engine:
    """One vLLM replica."""

    address: str
    server: Server

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    def metric(self, name: str, **labels: str) -> float:
        """Sum of the series of `name` with these labels on the engine's own page."""
        return metric(httpx2.get(f"{self.url}/metrics", timeout=10).text, name, **labels)


def metric(page: str, name: str, **labels: str) -> float:
    total = 0.0
    for line in page.splitlines():
        found = re.fullmatch(rf"{re.escape(name)}(?:\{{(.*)\}})? (\S+)(?: \d+)?", line)
        if found and all(f'{label}="{value}"' in (found[1] or "") for label, value in labels.items()):
            total += float(found[2])
    return total


def engine(number: int) -> Engine:
    models = variable("WICKETGATE_TEST_MODELS")
    port = free_port()
    command = [str(variable("WICKETGATE_TEST_ENGINE")), "-m", "vllm.entrypoints.openai.api_server"]
    command += ["--model", str(models / "tiny-llama"), "--served-model-name", MODEL]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    command += ["--dtype", "bfloat16", "--max-model-len", "2048", "--max-num-seqs", "16", "--enforce-eager"]
    command += ["--block-size", "32", "--num-gpu-blocks-override", "512", "--enable-prefix-caching"]
    command += ["--enable-lora", "--max-lora-rank", "8", "--max-loras", "2", "--max-cpu-loras", "4"]
    command += ["--lora-modules", *(f"{name}={models / name}" for name in ADAPTERS)]
    return Engine(f"127.0.0.1:{port}", Server(f"vllm-{number}", command, ENGINE_ENVIRONMENT))


@pytest.fixture(scope="session")
def engines():
    made = [engine(1), engine(2)]
    try:
        for replica in made:
            replica.server.start()
        for replica in made:
            replica.server.wait_ready(f"{replica.url}/health", ENGINE_READY_SECONDS)
        yield made
    finally:
        for replica in made:
            replica.server.stop()


@dataclass
class Gateway:
    url: str
    admin: str

    def metric(self, name: str, **labels: str) -> float:
        return metric(httpx2.get(f"{self.admin}/metrics", timeout=10).text, name, **labels)


@pytest.fixture(scope="session")
def gateway(engines):
    listen, admin = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    command = [str(variable("WICKETGATE_TEST_BINARY")), "serve", "--listen", listen, "--admin", admin]
    for replica in engines:
        command += ["--endpoint", replica.url]
    server = Server("serve", command)
    try:
        server.start()
        server.wait_ready(f"http://{admin}/readyz", GATEWAY_READY_SECONDS)
        yield Gateway(f"http://{listen}", f"http://{admin}")
    finally:
        server.stop()


@pytest.fixture
def client(gateway):
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="none", max_retries=0, timeout=120) as made:
        yield made
