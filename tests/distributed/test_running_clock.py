"""The clock of heartbeats."""

from types import SimpleNamespace

from functorch_like.distributed import running_clock


def test_gaps_between_readings_count_little(monkeypatch):
    now = 100.0
    monkeypatch.setattr(running_clock, "time", SimpleNamespace(monotonic=lambda: now))
    clock = running_clock.RunningClock(2.0)
    assert clock.read() == 0
    now += 1.5
    assert clock.read() == 1.5
    now += 3600
    assert clock.read() == 3.5 and clock.read() == 3.5
