"""Training that outlives its workers: processes are killed, freeze, are replaced and join while it goes on.

A *worker* is a process that runs the user's script. In `elastic_loop` it becomes a *keeper*: it holds the newest state
in host memory and a connection to the launcher, and computes nothing. The computing is done by a child, forked for
each *generation*, which is a set of workers that stays as it is. So whatever hangs in C++ can be killed, and the next
generation starts from the state in memory.

- `membership`: in the launcher; which workers there are, and when a generation ends.
- `launch`: in the launcher of each machine; starts workers, and replaces those that are killed.
- `keeper`: in each worker; starts and ends the children.
- `generation`: in each child; agrees on a state, and takes steps.
- `host_state`: the state in memory that keeper and child share.
- `transfer`: the state from one worker to another.
- `checkpoints`: the state in files.
- `loop`: `elastic_loop`, which users call.
"""
