"""Servers with CPUs of several cores or sockets: `python -m functorch_like.backends.xeon.run_cpu script.py`."""
