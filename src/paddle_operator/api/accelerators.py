"""Whether a container has an accelerator: Paddle must be told on a CPU, and must not be told on a GPU.

Device plugins name what they offer, and not all of it computes: `github.com/fuse` and `rdma/hca` do not. So
names are looked up. What no table can know, a job says itself, by an annotation.
"""

import re
from typing import Any

from .annotations import answer_to
from .names import ANNOTATION_ACCELERATOR

# Domain and name, as the device plugins of the makers and of those who share their devices call them. Beside
# devices they offer their memory or cores, which nobody asks for without a device.
_DEVICES = {
    "nvidia.com": r"gpu.*|mig-.*|vgpu.*|pgpu.*",
    "amd.com": r"gpu.*|[sdqc]px_.*",
    "gpu.intel.com": r"i915|xe",
    "habana.ai": r"gaudi.*",
    "huawei.com": r"ascend.*|npu.*",
    "kunlunxin.com": r"v?xpu.*",
    "baidu.com": r".*(cgpu|xpu|npu|dcu).*",
    "cambricon.com": r"v?mlu.*",
    "hygon.com": r"v?dcu.*",
    "metax-tech.com": r"s?gpu.*",
    "iluvatar.com": r"v?gpu.*|.*vcuda.*",
    "iluvatar.ai": r"v?gpu.*|.*vcuda.*",
    "mthreads.com": r"[sv]?gpu.*",
    "enflame.com": r"v?gcu.*",
    "enflame-tech.com": r"v?gcu.*",
    "birentech.com": r".*gpu.*",
    "aliyun.com": r"gpu-.*",
    "tencent.com": r"vcuda-.*",
    "volcano.sh": r"v?gpu-.*",
}
# Of all others: a word of the name says what it is.
_DEVICE_WORDS = re.compile(r"(?:^|[^a-z])[a-z]?(?:gpu|npu|xpu|mlu|dcu|gcu|hpu|tpu|ppu|sdaa)s?(?:$|[^a-z])")
# What goes with a device and is none, for all that its name says: a port of the network.
_NETWORKS = frozenset({"rdma", "network", "networking"})


def has_accelerator(container: dict[str, Any], annotations: dict[str, str]) -> bool:
    """By the job's annotation; else by what the container asks for.

    A claim (dynamic resource allocation) does not say of what it is: mostly of an accelerator.
    """
    if (told := answer_to(ANNOTATION_ACCELERATOR, annotations)) is not None:
        return told
    has_claims = bool((container.get("resources") or {}).get("claims"))
    return has_claims or any(map(is_accelerator, _extended(container)))


def unknown_resources(container: dict[str, Any], annotations: dict[str, str]) -> list[str]:
    """What it asks for of device plugins, if nobody can tell that some of it is an accelerator."""
    is_told = answer_to(ANNOTATION_ACCELERATOR, annotations) is not None
    return [] if is_told or has_accelerator(container, annotations) else sorted(_extended(container))


def _extended(container: dict[str, Any]) -> set[str]:
    """Other than Kubernetes' own."""
    resources = container.get("resources") or {}
    asked = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
    return {
        name
        for name, amount in asked.items()
        if "/" in name and "kubernetes.io/" not in name and str(amount) != "0"
    }


def is_accelerator(resource: str) -> bool:
    domain, slash, name = resource.lower().rpartition("/")
    if not slash or domain.partition(".")[0] in _NETWORKS:
        return False
    is_listed = domain in _DEVICES and re.fullmatch(_DEVICES[domain], name) is not None
    return is_listed or _DEVICE_WORDS.search(name) is not None
