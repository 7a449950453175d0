"""Clients of the gateway under test, and the simulated servers' own controls."""

import hashlib
import os
import time
from dataclasses import dataclass

import anthropic
import httpx2
import openai
import pytest

WAIT_SECONDS = 10.0


def variable(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        pytest.exit(f"{name} is not set: run `cargo xtask test --only sdk-python`, or see tests/sdk/README.md", 2)
    return value


@pytest.fixture(scope="session")
def url() -> str:
    return variable("WICKETGATE_TEST_URL")


@pytest.fixture(scope="session")
def admin() -> str:
    return variable("WICKETGATE_TEST_ADMIN")


@pytest.fixture(scope="session")
def model() -> str:
    return variable("WICKETGATE_TEST_MODEL")


@pytest.fixture(scope="session")
def adapters() -> list[str]:
    return variable("WICKETGATE_TEST_ADAPTERS").split(",")


class SentBodies:
    """Remembers the bytes of each request body that a client sends."""

    def __init__(self) -> None:
        self.last: bytes = b""

    def __call__(self, request: httpx2.Request) -> None:
        self.last = request.read()

    def digest(self) -> str:
        return hashlib.sha256(self.last).hexdigest()


@pytest.fixture
def sent() -> SentBodies:
    return SentBodies()


@pytest.fixture
def client(url: str, sent: SentBodies):
    """OpenAI's client, without retries so that each error is seen."""
    http = openai.DefaultHttpx2Client(event_hooks={"request": [sent]})
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=30, http_client=http) as made:
        yield made


@pytest.fixture
def claude(url: str):
    """Anthropic's client, without retries."""
    with anthropic.Anthropic(base_url=url, api_key="none", max_retries=0, timeout=30) as made:
        yield made


@dataclass
class Endpoints:
    """The simulated model servers behind the gateway."""

    urls: list[str]
    http: httpx2.Client

    def fault(self, **fault: object) -> None:
        """Switches a fault on at every endpoint."""
        for url in self.urls:
            self.http.post(f"{url}/admin/fault", json=fault).raise_for_status()

    def clear(self) -> None:
        for url in self.urls:
            self.http.delete(f"{url}/admin/fault").raise_for_status()

    def wait_for(self, what: str, condition) -> dict:
        """The first received request for which `condition` holds; waits for it."""
        deadline = time.monotonic() + WAIT_SECONDS
        revisions = dict.fromkeys(self.urls, 0)
        while time.monotonic() < deadline:
            for url in self.urls:
                # Answered as soon as something changed since the revision, else after 100 ms.
                asked = self.http.get(f"{url}/admin/requests", params={"after": revisions[url], "wait": 100})
                page = asked.raise_for_status().json()
                revisions[url] = page["revision"]
                for request in page["requests"]:
                    if condition(request):
                        return request
        pytest.fail(f"no endpoint saw {what} within {WAIT_SECONDS} s")


@pytest.fixture(scope="session")
def all_endpoints() -> Endpoints:
    with httpx2.Client(timeout=10) as http:
        yield Endpoints(variable("WICKETGATE_TEST_ENDPOINTS").split(","), http)


@pytest.fixture
def endpoints(all_endpoints: Endpoints) -> Endpoints:
    """Endpoints without faults; those that a test switches on are cleared after it."""
    all_endpoints.clear()
    yield all_endpoints
    all_endpoints.clear()
