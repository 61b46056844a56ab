"""Address of the coordinator, number of processes and rank, read from the environment of launchers and clusters."""

import pytest

from functorch_like.distributed.environment import detect, first_node
from functorch_like.errors import DistributedError

SLURM = {
    "SLURM_JOB_ID": "123456", "SLURM_PROCID": "5", "SLURM_LOCALID": "1", "SLURM_NTASKS": "8",
    "SLURM_STEP_NUM_TASKS": "6", "SLURM_STEP_NODELIST": "gpu[003-005],login1",
}  # fmt: skip
OPENMPI = {
    "OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "OMPI_MCA_orte_hnp_uri": "1531576320.0;tcp://10.96.0.1,10.148.0.1:34911",
}  # fmt: skip


def test_nothing_is_found_where_nothing_is():
    assert detect(env={})[:4] == (None,) * 4


def test_plain_variables():
    env = {"FT_COORDINATOR_ADDRESS": "a:1", "FT_NUM_PROCESSES": "4", "FT_PROCESS_ID": "2", "FT_LOCAL_PROCESS_ID": "0"}
    assert detect(env=env)[:4] == ("a:1", 4, 2, 0)
    assert detect(env={**SLURM, **env})[:4] == ("a:1", 4, 2, 0)  # a launcher inside a job takes precedence


def test_the_variables_of_pytorchs_launcher():
    env = {"MASTER_ADDR": "node1", "MASTER_PORT": "29500", "WORLD_SIZE": "2", "RANK": "1", "LOCAL_RANK": "0"}
    assert detect(env=env)[:4] == ("node1:29500", 2, 1, 0)


def test_slurm():
    address, *rest = detect(env=SLURM)[:4]
    assert rest == [6, 5, 1]
    host, port = address.split(":")
    assert host == "gpu003" and 49152 <= int(port) <= 65535
    assert detect(env={**SLURM, "SLURM_JOB_ID": "123457"}).coordinator_address != address  # another job, another port


def test_a_batch_script_is_no_task():
    assert detect(env={"SLURM_JOB_ID": "1", "SLURM_NTASKS": "4"}).num_processes is None


@pytest.mark.parametrize(
    ("nodes", "first"),
    [
        ("node7", "node7"),
        ("node7,node9", "node7"),
        ("gpu[003-007,012],login1", "gpu003"),
        ("gpu[12,14]", "gpu12"),
        ("rack1-[2-3]-ib", "rack1-2-ib"),
        ("a-b-1.example.org", "a-b-1.example.org"),
    ],
)
def test_the_first_of_a_list_of_nodes(nodes, first):
    assert first_node(nodes) == first


def test_open_mpi():
    address, *rest = detect(env=OPENMPI)[:4]
    assert rest == [4, 3, 1] and address.startswith("10.96.0.1:")


def test_open_mpi_without_the_address_of_mpirun():
    env = {**OPENMPI, "OMPI_MCA_orte_hnp_uri": ""}
    assert detect(env=env).coordinator_address is None  # on several machines the user has to give it
    assert detect(env={**env, "OMPI_COMM_WORLD_LOCAL_SIZE": "4"}).coordinator_address.startswith("127.0.0.1:")


def test_one_method_alone():
    assert detect("openmpi", {**SLURM, **OPENMPI}).process_id == 3
    assert detect("slurm", OPENMPI).process_id is None
    with pytest.raises(DistributedError, match="'slurms' is unknown; did you mean 'slurm'"):
        detect("slurms", {})


def test_a_variable_that_is_no_number():
    with pytest.raises(DistributedError, match="FT_NUM_PROCESSES='four' is not a number"):
        detect(env={"FT_PROCESS_ID": "0", "FT_NUM_PROCESSES": "four"})
