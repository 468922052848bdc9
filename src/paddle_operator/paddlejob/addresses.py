"""Which address of a pod its peers are told. Paddle splits endpoints at the colon, so IPv6 is no use."""

from ipaddress import IPv4Address

from paddle_operator.api.core import Pod


def ipv4_address(pod: Pod) -> str:
    """The IPv4 one, also of a dual-stack pod; empty as long as there is none."""
    written = [pod.status.pod_ip, *(address.ip for address in pod.status.pod_ips)]
    return next((address for address in written if _is_ipv4(address)), "")


def _is_ipv4(address: str) -> bool:
    try:
        IPv4Address(address)
    except ValueError:
        return False
    return True
