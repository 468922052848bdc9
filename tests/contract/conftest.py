"""Each contract is tried on the server in memory and on a real one."""

import pytest
from contract_bench import Bench, MemoryBench, ServerBench


@pytest.fixture(params=["memory", pytest.param("server", marks=pytest.mark.apiserver)])
def bench(request: pytest.FixtureRequest) -> Bench:
    if request.param == "memory":
        return MemoryBench()
    return ServerBench(request.getfixturevalue("world"))
