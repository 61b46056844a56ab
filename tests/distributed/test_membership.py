"""The membership of an elastic run, with the test in the role of a worker."""

import sys
import threading
import time

import pytest
from support.processes import wait_until

from functorch_like.distributed.coordinator import free_address
from functorch_like.distributed.elastic import membership as membership_module
from functorch_like.distributed.elastic.keeper import _connect
from functorch_like.distributed.elastic.membership import Membership

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elastic runs need Linux")


class Run:
    """A membership and one worker."""

    def __init__(self):
        self.told, address = [], free_address()
        self.membership = Membership(
            address, 1, 1, start_timeout=60, heartbeat_timeout=1.0, max_stalls=3,
            newest=lambda: 0, running=lambda: {0}, tell=self.told.append,
        )  # fmt: skip
        self.worker = _connect(address, 60)
        self._ended = threading.Event()
        threading.Thread(target=self._beat, daemon=True).start()

    def hello(self):
        # The worker is on another machine, so that the launcher kills no process with its pid.
        self.worker.send({"op": "hello", "worker": 0, "host": "elsewhere", "pid": 1, "step": 0, "layout": ""})

    def _beat(self):
        while not self._ended.wait(0.1):
            self.worker.send({"op": "beat"})

    def receive(self):
        """Return the next message that is not a heartbeat."""
        while (header := self.worker.receive(60)[0])["op"] == "beat":
            pass
        return header

    def end(self):
        self._ended.set()
        self.membership.close()
        self.worker.close()


@pytest.fixture
def run():
    made = Run()
    yield made
    made.end()


def test_a_generation_whose_coordinator_no_worker_reaches(run, monkeypatch):
    """The membership stops it, because its children would retry for ever. The next generation has more time."""
    monkeypatch.setattr(membership_module, "_MEETING_TIMEOUT", 0.5)
    begun = time.monotonic()  # read before `hello`, because the clock of the generation may start at once
    run.hello()
    for number in (1, 2):
        header = run.receive()
        assert (header["op"], header["number"]) == ("generation", number)
        assert run.receive()["op"] == "stop" and time.monotonic() - begun >= number
        begun = time.monotonic()
        run.worker.send({"op": "ready", "generation": number, "step": 0, "why": "stopped", "digest": ""})
    assert "did not come" in run.told[1] and "within 1 s" in run.told[1] and "within 2 s" in run.told[3], run.told


def test_an_error_of_the_launcher_ends_the_run(run, monkeypatch):
    def fail(host):
        raise OSError("no port is left")

    monkeypatch.setattr(membership_module, "free_address", fail)
    run.hello()
    assert wait_until(lambda: run.membership.failure, lambda: None)
    assert run.membership.failure == "the launcher failed: OSError: no port is left"


def test_a_port_that_is_taken_meanwhile(run, monkeypatch):
    taken = free_address()
    listener = membership_module.listen(taken)
    addresses = iter([taken, taken, free_address()])
    monkeypatch.setattr(membership_module, "free_address", lambda host: next(addresses))
    run.hello()
    assert run.receive()["op"] == "generation" and not run.membership.failure
    listener.close()
