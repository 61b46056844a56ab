"""The coordinator and its members (joining, exchanges, losses, leaving), with threads in place of processes."""

import socket
import threading
import time

import pytest

from functorch_like.distributed import member as member_module
from functorch_like.distributed.coordinator import Coordinator, free_address, listen
from functorch_like.distributed.member import Member
from functorch_like.distributed.wire import join_address, pack, split_address, unpack
from functorch_like.errors import DistributedError

PROGRAMS = []


class Service:
    """Stand-in for jaxlib's service."""

    def __init__(self, address):
        self.address, self.running = address, True

    def shutdown(self):
        self.running = False


@pytest.fixture(autouse=True)
def _nobody_ends(monkeypatch):
    """Keep losses from ending this process, and wait until all threads of the test have ended."""
    monkeypatch.setattr(member_module, "_end_process", lambda: None)
    before = set(threading.enumerate())
    yield
    while PROGRAMS:
        PROGRAMS.pop().end()
    deadline = time.monotonic() + 30
    while set(threading.enumerate()) - before:
        assert time.monotonic() < deadline, threading.enumerate()
        time.sleep(0.005)


class Program:
    """A coordinator and its members."""

    def __init__(self, count, timeout=20.0, heartbeat=20.0, host_process=None):
        self.address, self.services, self.members = free_address(), [], []
        PROGRAMS.append(self)
        self.count, self.timeout, self.heartbeat, self.host = count, timeout, heartbeat, host_process
        self.coordinator = Coordinator(
            listen(self.address), self.address, count, self._service,
            join_timeout=timeout, heartbeat_timeout=heartbeat, host_process=host_process,
        )  # fmt: skip

    def _service(self, address):
        self.services.append(Service(address))
        return self.services[-1]

    def join(self, ranks, count=None, versions=None):
        """Join with these ranks at the same time; return the member or the error of each."""
        found = [None] * len(ranks)

        def one(i, rank):
            try:
                found[i] = Member(
                    self.address, rank, count or self.count, (versions or {}).get(rank, "v1"),
                    join_timeout=self.timeout, heartbeat_timeout=self.heartbeat, host_process=self.host,
                )  # fmt: skip
            except DistributedError as error:
                found[i] = error

        together([lambda i=i, r=r: one(i, r) for i, r in enumerate(ranks)])
        self.members += [m for m in found if isinstance(m, Member)]
        return found

    def end(self):
        for member in self.members:
            member.disconnect()
        self.coordinator.close(1.0)


def together(jobs):
    """Call functions at the same time, in threads; return their results or errors."""
    results = [None] * len(jobs)

    def call(i, job):
        try:
            results[i] = job()
        except DistributedError as error:
            results[i] = error

    threads = [threading.Thread(target=call, args=(i, job)) for i, job in enumerate(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    return results


@pytest.fixture
def three():
    program = Program(3)
    return program, program.join([0, 1, 2])


def test_all_come_and_the_service_takes_the_port_over(three):
    program, members = three
    assert [m.rank for m in members] == [0, 1, 2]
    assert [s.address for s in program.services] == [program.address]
    assert members[0].hostname == "127.0.0.1"


def test_values_go_to_all(three):
    _, members = three
    values = {m.rank: f"value {m.rank}".encode() * 1000 for m in members}
    assert together([lambda m=m: m.exchange("k", values[m.rank], 20) for m in members]) == [values] * 3
    again = {m.rank: b"" for m in members}  # a second round of the same key
    assert together([lambda m=m: m.exchange("k", b"", 20) for m in members]) == [again] * 3


def test_some_may_exchange_among_themselves(three):
    _, members = three
    some = together([lambda m=m: m.exchange("k", b"x", 20, [0, 2]) for m in members if m.rank != 1])
    assert some == [{0: b"x", 2: b"x"}] * 2


def test_who_does_not_come_to_an_exchange_is_named(three):
    _, members = three
    other = threading.Thread(target=lambda: members[2].exchange("b", b"", 1.5, [1, 2]))
    other.start()
    with pytest.raises(DistributedError, match=r"step: processes 1 and 2 did not come within 0.5 s.*'b' \(process 2\)"):
        members[0].exchange("a", b"", 0.5, what="step")
    together([lambda: members[1].exchange("b", b"", 20, [1, 2])])
    other.join()


def test_a_death_ends_the_wait(three):
    _, members = three
    threading.Timer(0.2, members[1].disconnect).start()
    with pytest.raises(DistributedError, match="process 1 of 3 is gone: its connection closed"):
        members[0].exchange("k", b"", 20)
    assert "process 1 of 3 is gone" in members[2].loss(wait=20)


def test_the_reason_of_a_failure_is_passed_on(three):
    _, members = three
    members[1].fail("it ended with ValueError: bad luck")
    assert members[0].loss(wait=20) == "process 1 of 3 is gone: it ended with ValueError: bad luck"


def test_waiting_for_one_that_left(three):
    _, members = three
    threading.Timer(0.2, lambda: members[1].leave(0.1)).start()
    with pytest.raises(DistributedError, match="k waits for process 1, which left the program before"):
        members[0].exchange("k", b"", 20)


def test_all_leave(three):
    program, members = three
    assert together([lambda m=m: m.leave(20) for m in members]) == [""] * 3
    for member in members:
        member.disconnect()
    program.coordinator.close(20)
    assert not program.services[0].running


def test_who_does_not_leave_is_named(three):
    _, members = three
    assert members[0].leave(0.2) == "processes 1 and 2 did not leave within 0.2 s"


def test_a_frozen_process_is_noticed():
    program = Program(2, heartbeat=1.0)
    members = program.join([0, 1])
    members[1]._connection.send = lambda *a: True  # its heartbeats stop, its connection stays
    assert members[0].loss(wait=30) == "process 1 of 2 is gone: it was silent for 1 s: frozen, or its machine is lost"


def test_the_wait_for_the_last_process_is_no_silence():
    """Processes that come early may wait for longer than the limit of silence."""
    program = Program(2, heartbeat=1.0)
    first = threading.Thread(target=program.join, args=([0],))
    first.start()
    time.sleep(2.5)
    (second,) = program.join([1])
    first.join()
    assert second.loss(wait=2.0) == "" and not program.members[0].has_losses


def test_an_error_at_the_beginning_reaches_all(monkeypatch):
    def fail(self, address):
        raise ValueError("no service today")

    monkeypatch.setattr(Program, "_service", fail)
    errors = Program(2).join([0, 1])
    assert all("ValueError: no service today" in str(error) for error in errors)


def test_a_lost_coordinator_is_noticed():
    program = Program(2)
    members = program.join([0, 1])
    program.coordinator.close(0.0)
    assert "the connection to the coordinator ended" in members[1].loss(wait=20)


def test_a_process_that_never_comes():
    program = Program(4, timeout=0.5)
    first, third = program.join([0, 2])
    assert "processes 1 and 3 of 4 did not come" in str(first) and "within 0.5 s" in str(third)
    assert program.services == []


def test_two_processes_with_one_number():
    found = Program(2).join([1, 1])
    assert all("two processes have process_id=1" in str(error) for error in found)


def test_processes_that_count_differently():
    (error,) = Program(2).join([1], count=3)
    assert "process 1 expects 3 processes, and the coordinator 2" in str(error)


def test_processes_of_different_versions():
    found = Program(2).join([0, 1], versions={1: "v2"})
    assert all("runs v1" in str(error) and "runs v2" in str(error) for error in found)


def test_one_that_comes_too_late(three):
    program, _ = three
    program.timeout = 0.3
    (error,) = program.join([1])
    assert isinstance(error, DistributedError)


def test_no_coordinator():
    address = free_address()
    begun = time.monotonic()
    with pytest.raises(DistributedError, match=f"process 0.*could not be reached at {address} within 0.3 s"):
        Member(address, 1, 2, "v", join_timeout=0.3, heartbeat_timeout=1.0)
    assert time.monotonic() - begun < 60


def test_a_port_in_use():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(DistributedError, match=rf"the coordinator cannot listen at {address}: .*in use"):
            listen(address)


def test_an_address_of_another_machine():
    with pytest.raises(DistributedError) as caught:
        listen("192.0.2.1:5000")
    assert "coordinator_bind_address" in str(caught.value)


def test_strangers_are_turned_away():
    program = Program(1)
    with socket.create_connection(split_address(program.address)) as stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" + b" " * 64)
        stranger.settimeout(20)
        assert stranger.recv(1) == b""
    (member,) = program.join([0])
    assert member.exchange("k", b"v", 1) == {0: b"v"}


def test_addresses():
    assert split_address("a.b:12") == ("a.b", 12) and split_address("[::1]:12") == ("::1", 12)
    assert join_address("::1", 12) == "[::1]:12" and join_address("h", 12) == "h:12"
    for wrong in ("", "host", "host:", ":1", "host:port", "host:70000"):
        with pytest.raises(ValueError, match="^" + wrong):
            split_address(wrong)


def test_packing():
    values = {3: b"", 0: b"abc", 1: b"d"}
    assert unpack(*pack(values)) == values
