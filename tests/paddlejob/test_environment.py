"""What processes are told, by mode and network: in the pod itself, and by the config map."""

from typing import Any

import make
import pytest

from paddle_operator.api.names import MEETING_PORT, port_range
from paddle_operator.api.paddlejob import PaddleJob, Role
from paddle_operator.paddlejob.config_map import build_config_map
from paddle_operator.paddlejob.endpoints import Endpoint, Slot, port_of, slots_of
from paddle_operator.paddlejob.pods import build_pod

SERVERS, GLOO = "PADDLE_PSERVERS_IP_PORT_LIST", "PADDLE_GLOO_HTTP_ENDPOINT"


def job_of(mode: str, intranet: str, **spec: Any) -> PaddleJob:
    status = {"hostPort": 35000} if intranet.startswith("Host") else {}
    servers: dict[str, Any] = {"ps": make.role(2)} if mode == "PS" else {}
    return make.paddlejob(
        workers=1 if mode == "Single" else 2, intranet=intranet, status=status, **servers, **spec
    )


def own_variables(job: PaddleJob, role: Role, rank: int) -> dict[str, Any]:
    pod = build_pod(job, Slot(role, rank))
    variables = pod["spec"]["containers"][0]["env"]
    return {one["name"]: one.get("value", "from the pod's status") for one in variables}


def shared(job: PaddleJob, *hosts: str) -> dict[str, str]:
    """The map of pods that have these addresses, servers first."""
    slots = slots_of(job)
    endpoints = {
        name: Endpoint(host, port_of(job, slot))
        for (name, slot), host in zip(slots.items(), hosts, strict=True)
    }
    data: dict[str, str] = build_config_map(job, endpoints)["data"]
    return data


def test_collective_workers_are_told_all_endpoints() -> None:
    job = job_of("Collective", "PodIP")
    assert own_variables(job, Role.WORKER, 1) == {
        "POD_IP": "from the pod's status",
        "PADDLE_TRAINER_ID": "1",
        "PADDLE_RANK": "1",
        "RANK": "1",
        "TRAINING_ROLE": "TRAINER",
        "PADDLE_TRAINING_ROLE": "TRAINER",
        "PADDLE_CURRENT_ENDPOINT": "$(POD_IP):2379",
        "PADDLE_DISTRI_BACKEND": "gloo",
    }
    assert shared(job, "198.18.0.1", "198.18.0.2") == {
        "PADDLE_JOB_ID": "team-resnet",
        "PADDLE_PORT": "2379",
        "PADDLE_TRAINERS": "198.18.0.1,198.18.0.2",
        "PADDLE_TRAINERS_NUM": "2",
        "PADDLE_TRAINER_ENDPOINTS": "198.18.0.1:2379,198.18.0.2:2379",
        "PADDLE_MASTER": "198.18.0.1:2379",
        "PADDLE_NNODES": "2",
        "MASTER_ADDR": "198.18.0.1",
        "MASTER_PORT": "2397",
        "NNODES": "2",
        "TRAINER_IP_LIST": "198.18.0.1,198.18.0.2",
        "TRAINER_PORTS_NUM": "20",
    }


@pytest.mark.parametrize("intranet", ["PodIP", "Service", "Host"])
@pytest.mark.parametrize("mode", ["Single", "Collective"])
def test_who_deletes_all_of_paddles_variables_still_knows_where_to_meet(mode: str, intranet: str) -> None:
    """As today's recipes do: they keep no name with PADDLE or ENDPOINT in it."""
    job = job_of(mode, intranet)
    hosts = ["a.team.svc", "b.team.svc"][: len(slots_of(job))]
    known = own_variables(job, Role.WORKER, 0) | shared(job, *hosts)
    left = {name: value for name, value in known.items() if "PADDLE" not in name and "ENDPOINT" not in name}
    port = 35018 if intranet == "Host" else 2397
    meeting = {"MASTER_ADDR": "a.team.svc", "MASTER_PORT": str(port), "NNODES": str(len(hosts)), "RANK": "0"}
    assert meeting.items() <= left.items()
    assert left["TRAINER_IP_LIST"] == ",".join(hosts)


@pytest.mark.parametrize("intranet", ["PodIP", "Host"])
def test_workers_that_are_independent_on_purpose_are_told_who_they_are_and_of_nobody_to_meet(
    intranet: str,
) -> None:
    metadata = {"annotations": {"paddlepaddle.org/independent-ranks": "true"}}
    users = [{"name": "NNODES", "value": "1"}, {"name": "MASTER_ADDR", "value": "127.0.0.1"}]
    job = make.paddlejob(
        pod=make.template(make.container(env=users)),
        intranet=intranet,
        metadata=metadata,
        status={"hostPort": 35000},
    )
    known = own_variables(job, Role.WORKER, 1) | shared(job, "198.18.0.1", "198.18.0.2")
    assert known.keys() & {"PADDLE_MASTER", "PADDLE_NNODES", "PADDLE_RANK", "RANK", "MASTER_PORT"} == set()
    assert not [name for name in known if name.endswith("TRAINER_ENDPOINTS")]
    assert (known["PADDLE_TRAINER_ID"], known["PADDLE_TRAINERS_NUM"]) == ("1", "2")
    assert (known["NNODES"], known["MASTER_ADDR"]) == ("1", "127.0.0.1"), "those of the template"


def test_in_ps_mode_names_that_others_use_as_well_are_the_users() -> None:
    users = [{"name": "RANK", "value": "7"}, {"name": "PADDLE_TRAINER_ID", "value": "7"}]
    job = make.paddlejob(pod=make.template(make.container(env=users)), ps=make.role(1))
    own = own_variables(job, Role.WORKER, 0)
    assert (own["RANK"], own["PADDLE_TRAINER_ID"]) == ("7", "0")


def test_no_trainer_is_given_the_port_of_the_meeting_place() -> None:
    first, last = map(int, port_range(35000).split(":"))
    assert first == 35001
    # A node with sixteen devices has as many trainers, and the launcher draws one port more.
    assert last - first + 1 == 17
    assert last < 35000 + MEETING_PORT


@pytest.mark.parametrize("intranet", ["Host", "HostNetwork"])
def test_on_the_host_network_workers_are_told_where_to_meet_because_they_may_share_an_address(
    intranet: str,
) -> None:
    job = job_of("Collective", intranet)
    own = own_variables(job, Role.WORKER, 1)
    told = shared(job, "198.18.0.1", "198.18.0.1")
    assert (own["PADDLE_PORT"], own["PORT_RANGE"], own["PADDLE_RANK"]) == ("35020", "35021:35037", "1")
    assert own["PADDLE_CURRENT_ENDPOINT"] == "$(POD_IP):35020"
    assert (told["PADDLE_MASTER"], told["PADDLE_NNODES"]) == ("198.18.0.1:35000", "2")
    # What fleet.init counts, and what the launcher does: entries and hosts.
    assert told["PADDLE_TRAINER_ENDPOINTS"] == "198.18.0.1:35000,198.18.0.1:35020"
    assert told["DISTRIBUTED_TRAINER_ENDPOINTS"] == "198.18.0.1:35000,worker-1:35020"


@pytest.mark.parametrize("intranet", ["PodIP", "Host"])
def test_workers_with_a_node_each_need_no_other_names(intranet: str) -> None:
    told = shared(job_of("Collective", intranet), "198.18.0.1", "198.18.0.2")
    assert "DISTRIBUTED_TRAINER_ENDPOINTS" not in told


def test_servers_and_workers_are_told_of_the_servers() -> None:
    job = job_of("PS", "PodIP")
    assert own_variables(job, Role.PS, 1) == {
        "POD_IP": "from the pod's status",
        "PADDLE_TRAINER_ID": "1",
        "TRAINING_ROLE": "PSERVER",
        "PADDLE_TRAINING_ROLE": "PSERVER",
        "FLAGS_enable_pir_api": "0",
    }
    told = shared(job, "198.18.0.1", "198.18.0.2", "198.18.0.3", "198.18.0.4")
    assert told[SERVERS] == "198.18.0.1:2379,198.18.0.2:2379"
    assert told["PADDLE_TRAINER_ENDPOINTS"] == "198.18.0.3:2379,198.18.0.4:2379"
    assert told["PADDLE_TRAINERS_NUM"] == "2"


@pytest.mark.parametrize(
    ("spec", "gloo"),
    [({}, "1"), ({"withGloo": 1}, "1"), ({"withGloo": 2}, "2"), ({"withGloo": 0}, None)],
)
def test_gloo_meets_at_the_first_server_on_a_port_of_its_own(spec: dict[str, Any], gloo: str | None) -> None:
    told = shared(job_of("PS", "PodIP", **spec), *"abcd")
    assert told.get("PADDLE_WITH_GLOO") == gloo
    assert told.get("PADDLE_GLOO_RENDEZVOUS") == (gloo and "3")
    assert told.get(GLOO) == (gloo and "a:2397")


def test_servers_on_the_host_network_have_ports_of_their_own() -> None:
    job = job_of("PS", "Host")
    told = shared(job, *["198.18.0.1"] * 4)
    assert told[SERVERS] == "198.18.0.1:35000,198.18.0.1:35020"
    assert told[GLOO] == "198.18.0.1:35018"
    assert own_variables(job, Role.WORKER, 0)["PADDLE_PORT"] == "35040"
    assert "PADDLE_MASTER" not in told


def test_a_users_flag_wins() -> None:
    flag = {"name": "FLAGS_enable_pir_api", "value": "1"}
    pod = make.template(make.container(env=[flag]))
    job = make.paddlejob(ps=make.role(1, pod))
    assert own_variables(job, Role.PS, 0)["FLAGS_enable_pir_api"] == "1"


@pytest.mark.parametrize(("intranet", "kept"), [("PodIP", "40000:40100"), ("Host", "35001:35017")])
def test_a_users_range_of_ports_wins_where_nobody_else_is_harmed(intranet: str, kept: str) -> None:
    pod = make.template(make.container(env=[{"name": "PORT_RANGE", "value": "40000:40100"}]))
    job = make.paddlejob(pod=pod, intranet=intranet, status={"hostPort": 35000})
    assert own_variables(job, Role.WORKER, 0)["PORT_RANGE"] == kept


def test_the_launcher_is_given_names_with_dots_and_a_server_the_name_that_its_own_hosts_file_has() -> None:
    assert (
        own_variables(job_of("Collective", "Service"), Role.WORKER, 1)["POD_IP"] == "resnet-worker-1.team.svc"
    )
    assert own_variables(job_of("PS", "Service"), Role.PS, 1)["POD_IP"] == "resnet-ps-1"
