"""Training on a CUDA device as on the CPU: `make gpu`."""

from types import SimpleNamespace

import pytest
import torch

from dikast.training.packed_attention import packed_attention, segment_table

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize(("dtype", "most"), [(torch.float32, 1e-4), (torch.bfloat16, 0.03)])
@pytest.mark.parametrize("heads", [(28, 4), (6, 6)])
def test_packed_trees_attend_as_on_the_cpu(dtype: torch.dtype, most: float, heads: tuple[int, int]) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device here")
    torch.manual_seed(0)
    made = [torch.randn(1, count, 90, 64).to(dtype) for count in (heads[0], heads[1], heads[1])]
    table = segment_table([40, 55, 80, 90], [-1, 0, 0, 2])
    found = []
    for device, kind in (("cpu", torch.float32), ("cuda", dtype)):
        query, key, value = given = [each.to(device, kind).requires_grad_() for each in made]
        out, _ = packed_attention(SimpleNamespace(), query, key, value, table, scaling=0.125)
        gradients = torch.autograd.grad((out.float() ** 2).sum(), given)
        found.append([each.detach().float().cpu() for each in (out, *gradients)])
    for expected, each in zip(*found, strict=True):
        assert float((expected - each).norm() / expected.norm()) < most
