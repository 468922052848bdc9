"""Which containers have an accelerator: a table of what device plugins are known to offer."""

from typing import Any

import pytest

from paddle_operator.api.accelerators import has_accelerator, is_accelerator

COMPUTES = [
    "iluvatar.ai/BI-V150-vgpu",
    "enflame.com/shared-gcu",
    "aliyun.com/gpu",
    "tencent.com/gpu",
    "amd.com/spx_nps1",
    "alibabacloud.com/ppu",
    "nvidia.com/gpu",
    "nvidia.com/gpu.shared",
    "nvidia.com/mig-1g.5gb",
    "amd.com/gpu",
    "huawei.com/Ascend910",
    "huawei.com/Ascend310P",
    "huawei.com/npu",
    "kunlunxin.com/xpu",
    "kunlunxin.com/vxpu-memory",
    "baidu.com/a800_80g_cgpu",
    "cambricon.com/mlu",
    "cambricon.com/mlu370",
    "cambricon.com/vmlu",
    "hygon.com/dcu",
    "hygon.com/dcunum",
    "metax-tech.com/gpu",
    "metax-tech.com/sgpu",
    "iluvatar.com/gpu",
    "iluvatar.ai/vgpu",
    "mthreads.com/vgpu",
    "enflame.com/gcu",
    "birentech.com/gpu",
    "habana.ai/gaudi",
    "gpu.intel.com/i915",
    "aliyun.com/gpu-mem",
    "tencent.com/vcuda-core",
    "volcano.sh/vgpu-number",
    "example.com/gpu",
    "maker.example/super-npu",
    "example.com/vgpus",
]
DOES_NOT = [
    "gpu.intel.com/i915_monitoring",
    "rdma/hca_gpu0",
    "cpu",
    "memory",
    "ephemeral-storage",
    "hugepages-2Mi",
    "github.com/fuse",
    "smarter-devices/fuse",
    "rdma/hca",
    "rdma/hca_shared_devices_a",
    "nvidia.com/hostdev",
    "nvidia.com/sriov_net",
    "huawei.com/roce",
    "baidu.com/eni",
    "aliyun/eni",
    "kubernetes.io/batch-cpu",
    "devices.kubevirt.io/kvm",
    "example.com/gputils",
    "example.com/inputs",
    "volcano.sh/rdma",
]


@pytest.mark.parametrize("name", COMPUTES)
def test_what_device_plugins_offer_to_compute_with_is_an_accelerator(name: str) -> None:
    assert is_accelerator(name)


@pytest.mark.parametrize("name", DOES_NOT)
def test_what_else_they_offer_is_none(name: str) -> None:
    assert not is_accelerator(name)


@pytest.mark.parametrize(
    ("resources", "annotation", "expected"),
    [
        ({}, None, False),
        ({"limits": {"nvidia.com/gpu": 1}}, None, True),
        ({"limits": {"nvidia.com/gpu": "0"}}, None, False),
        ({"requests": {"amd.com/gpu": "1"}}, None, True),
        ({"limits": {"github.com/fuse": 1, "cpu": "4"}}, None, False),
        ({"claims": [{"name": "gpus"}]}, None, True),
        ({"claims": []}, None, False),
        ({"claims": [{"name": "network"}]}, "false", False),
        ({"limits": {"example.com/brain": 1}}, None, False),
        ({"limits": {"example.com/brain": 1}}, "true", True),
        ({"limits": {"nvidia.com/gpu": 1}}, "false", False),
        ({}, "true", True),
    ],
)
def test_a_claim_counts_and_the_annotation_decides(
    resources: dict[str, Any], annotation: str | None, *, expected: bool
) -> None:
    annotations = {} if annotation is None else {"paddlepaddle.org/accelerator": annotation}
    assert has_accelerator({"resources": resources}, annotations) is expected
