# Part of the dfa project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small facts about tensors: formats, orders of dims, memory of others."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from dfa import _core

_FORMATS = {
    torch.float64: "f64",
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.int16: "i16",
    torch.int64: "i64",
}
_DTYPES = {fmt: dtype for dtype, fmt in _FORMATS.items()}
_DTYPES["remainder"] = torch.int16


def format_of(dtype: torch.dtype, what: str) -> str:
    """The storage format of a floating dtype; others are a ``ValueError``."""
    fmt = _FORMATS.get(dtype)
    if fmt is None or not dtype.is_floating_point:
        raise ValueError(
            f"expects {what} of dtype float64, float32, float16 or bfloat16, "
            f"but got {dtype}"
        )
    return fmt


def dtype_of(fmt: str) -> torch.dtype:
    """The dtype whose elements a storage format has."""
    return _DTYPES[fmt]


def is_dense(tensor: Tensor) -> bool:
    """Whether the elements fill one run of memory, in any order of dims."""
    if tensor.layout != torch.strided:
        return False
    expected = 1
    dims = [d for d in range(tensor.dim()) if tensor.size(d) != 1]
    for dim in sorted(dims, key=tensor.stride):
        if tensor.stride(dim) != expected:
            return tensor.numel() == 0
        expected *= tensor.size(dim)
    return True


def same_order(left: Tensor, right: Tensor) -> bool:
    """Whether two tensors of one shape lie in the same order in memory."""
    if left.stride() == right.stride() or left.numel() <= 1:
        return True
    rows = zip(left.shape, left.stride(), right.stride(), strict=True)
    return all(size == 1 or a == b for size, a, b in rows)


def in_order_of(tensor: Tensor, like: Tensor, dtype: torch.dtype) -> Tensor:
    """The tensor with the dtype given, in the memory order of ``like``."""
    if tensor.dtype == dtype and same_order(tensor, like):
        return tensor
    out = torch.empty_strided(
        like.shape, like.stride(), dtype=dtype, device=like.device
    )
    return out.copy_(tensor)


def flat(tensor: Tensor) -> Tensor:
    """A dense tensor's elements in memory order, as a 1-D view."""
    return torch.as_strided(
        tensor, (tensor.numel(),), (1,), tensor.storage_offset()
    )


def at_address(
    address: int,
    dtype: torch.dtype,
    device: torch.device,
    owner: Any,
    shape: tuple[int, ...] = (),
    strides: tuple[int, ...] = (),
) -> Tensor:
    """Device memory of others as a tensor that shares it.

    ``owner`` is kept alive as long as the tensor.
    """
    # 32-bit integers have no storage format: they come as floats of that size.
    fmt = "f32" if dtype == torch.int32 else _FORMATS[dtype]
    view = _core.view(
        address, shape, strides, fmt, device.type, device.index or 0, owner
    )
    return torch.from_dlpack(view).view(dtype)


def local_part(tensor: Tensor) -> Tensor:
    """The elements on this rank: of a DTensor its local tensor."""
    inner = getattr(tensor, "_local_tensor", None)
    return tensor if inner is None else inner


def split_remainder(exact: Tensor) -> tuple[Tensor, Tensor]:
    """float32 as bfloat16, rounded with ties away from zero, and 16 bits.

    Together they are exact: ``join_remainder`` gives the same bits back.
    """
    bits = exact.contiguous().view(torch.int32)
    high = ((bits + 0x8000) >> 16).to(torch.int16)
    return high.view(torch.bfloat16), bits.to(torch.int16)


def join_remainder(param: Tensor, remainder: Tensor) -> Tensor:
    """The float32 that a bfloat16 parameter and its remainder stand for."""
    high = param.contiguous().view(torch.int16).to(torch.int32)
    low = remainder.contiguous().to(torch.int32)
    # A negative low half had been rounded up.
    return (((high - (low < 0).int()) << 16) | (low & 0xFFFF)).view(
        torch.float32
    )
