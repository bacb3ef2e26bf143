"""Kernels written in Triton: `cargo run --example suite -- --worker triton`.

A program has a row, which it reads once and keeps in registers; everything is computed in f32.
"""

import sys
from pathlib import Path

import torch  # noqa: F401  (whose arrays they work on)
import triton
import triton.language as tl

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
from kbench import Declined, serve, variant  # noqa: E402

FLOATS = ["f32", "f16", "bf16"]


def on_gpu(of):
    return variant(of=of, name="triton", backend="cuda", types=FLOATS)


def row_in_registers(dim):
    """The block for a row, and as many warps as give each thread some eight elements."""
    block = triton.next_power_of_2(dim)
    if block > 1 << 16:
        raise Declined("rows of more than 65536 elements do not fit into registers")
    return {"BLOCK": block, "num_warps": min(max(block // 256, 1), 16)}


# Element-wise.


@on_gpu("gelu")
def gelu(x, out, n):
    gelu_block[(triton.cdiv(n, 1024),)](x, out, n, BLOCK=1024, num_warps=4)


@triton.jit
def gelu_block(x, out, n, BLOCK: tl.constexpr):
    index = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = index < n
    value = tl.load(x + index, mask=inside).to(tl.float32)
    tl.store(out + index, 0.5 * value * (1.0 + tl.erf(value * 0.7071067811865476)), mask=inside)


# Normalisation.


@on_gpu("rms_norm")
def rms_norm(x, w, eps, out, rows, dim):
    rms_norm_row[(rows,)](x, w, out, dim, eps, **row_in_registers(dim))


@triton.jit
def rms_norm_row(x, w, out, dim, eps, BLOCK: tl.constexpr):
    column = tl.arange(0, BLOCK)
    inside = column < dim
    start = tl.program_id(0).to(tl.int64) * dim
    value = tl.load(x + start + column, mask=inside, other=0.0).to(tl.float32)
    weight = tl.load(w + column, mask=inside).to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, axis=0) / dim + eps)
    tl.store(out + start + column, value * scale * weight, mask=inside)


@on_gpu("layer_norm")
def layer_norm(x, w, b, eps, out, rows, dim):
    layer_norm_row[(rows,)](x, w, b, out, dim, eps, **row_in_registers(dim))


@triton.jit
def layer_norm_row(x, w, b, out, dim, eps, BLOCK: tl.constexpr):
    column = tl.arange(0, BLOCK)
    inside = column < dim
    start = tl.program_id(0).to(tl.int64) * dim
    value = tl.load(x + start + column, mask=inside, other=0.0).to(tl.float32)
    weight = tl.load(w + column, mask=inside).to(tl.float32)
    bias = tl.load(b + column, mask=inside).to(tl.float32)
    centred = tl.where(inside, value - tl.sum(value, axis=0) / dim, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, axis=0) / dim + eps)
    tl.store(out + start + column, centred * scale * weight + bias, mask=inside)


@on_gpu("softmax")
def softmax(x, out, rows, dim):
    softmax_row[(rows,)](x, out, dim, **row_in_registers(dim))


@triton.jit
def softmax_row(x, out, dim, BLOCK: tl.constexpr):
    column = tl.arange(0, BLOCK)
    inside = column < dim
    start = tl.program_id(0).to(tl.int64) * dim
    value = tl.load(x + start + column, mask=inside, other=-float("inf")).to(tl.float32)
    weight = tl.exp(value - tl.max(value, axis=0))
    tl.store(out + start + column, weight / tl.sum(weight, axis=0), mask=inside)


if __name__ == "__main__":
    serve()
