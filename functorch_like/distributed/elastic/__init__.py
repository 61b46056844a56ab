"""Training that continues when workers are killed, freeze, are replaced or join.

A *worker* is a process that runs the user's script. In `elastic_loop` it becomes a *keeper*: it holds the newest state
in host memory and a connection to the launcher, and computes nothing. A child process computes; it is forked for each
*generation*, a fixed set of workers. So a child that hangs in C++ can be killed, and the next generation starts from
the state in memory.

- `membership`: in the launcher; records the workers, and begins and ends generations.
- `launch`: in the launcher of each machine; starts workers, and replaces those that are killed.
- `keeper`: in each worker; starts and ends the children.
- `generation`: in each child; agrees on a state, and takes steps.
- `host_state`: the state in memory that keeper and child share.
- `transfer`: the state from one worker to another.
- `checkpoints`: the state in files.
- `loop`: `elastic_loop`, which users call.
"""
