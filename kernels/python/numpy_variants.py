"""The kernels as NumPy does them: `cargo run --example suite -- --worker numpy`.

Results are written where the kernel wants them, halves are computed in f32. NumPy has no bf16. It works on one core,
except for the products that it leaves to its BLAS.
"""

import sys
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
from kbench import serve, variant  # noqa: E402

FLOATS = ["f32", "f16"]
ROWS = {"x": "rows dim", "out": "rows dim"}
HEADS = "seq heads head_dim"

one_core = partial(variant, name="numpy", backend="serial")
all_cores = partial(variant, name="numpy", backend="parallel")


def wide(x):
    return x.astype(np.float32, copy=False)


# Element-wise.


@one_core(of="saxpy")
def saxpy(a, x, y):
    y += a * x


@one_core(of="add", types=FLOATS)
def add(x, y, out):
    np.add(x, y, out=out)


@one_core(of="mul", types=FLOATS)
def mul(x, y, out):
    np.multiply(x, y, out=out)


@one_core(of="div", types=FLOATS)
def div(x, y, out):
    np.divide(x, y, out=out)


@one_core(of="relu", types=FLOATS)
def relu(x, out):
    np.maximum(x, 0, out=out)


@one_core(of="gelu", types=FLOATS)
def gelu(x, out):
    x = wide(x)
    distance = np.abs(x)
    np.subtract(np.maximum(x, 0), distance * tail(distance), out=out)


def tail(x):
    """1 − Φ(x), as NumPy has no error function: e^(−x²/2) times a polynomial of 1 / (1 + x/4).

    It is fitted so that the relative error is below 4e-8 up to x = 5, before rounding.
    """
    t = 1 / (1 + 0.25 * x)
    value = -0.0959101261 * t
    for factor in (0.361290537, -0.303894723, 0.317452301, 0.00511026711, 0.117775757, 0.0981759817):
        value += factor
        value *= t
    value *= np.exp(-0.5 * x * x)
    return value


@one_core(of="gelu_tanh", types=FLOATS)
def gelu_tanh(x, out):
    x = wide(x)
    np.multiply(0.5 * x, 1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x * x * x)), out=out)


@one_core(of="silu", types=FLOATS)
def silu(x, out):
    x = wide(x)
    np.divide(x, 1 + np.exp(-x), out=out)


# Normalisation.


@one_core(of="rms_norm", types=FLOATS, shapes=ROWS)
def rms_norm(x, w, eps, out):
    np.multiply(normalised(wide(x), eps), w, out=out)


@one_core(of="rms_norm_gemma", types=FLOATS, shapes=ROWS)
def rms_norm_gemma(x, w, eps, out):
    np.multiply(normalised(wide(x), eps), 1 + wide(w), out=out)


@one_core(of="layer_norm", types=FLOATS, shapes=ROWS)
def layer_norm(x, w, b, eps, out):
    x = wide(x)
    result = normalised(x - x.mean(axis=-1, keepdims=True), eps)
    result *= w
    np.add(result, b, out=out)


@one_core(of="qk_norm", types=FLOATS, shapes={"q": HEADS, "k": HEADS, "q_out": HEADS, "k_out": HEADS})
def qk_norm(q, k, wq, wk, eps, q_out, k_out):
    np.multiply(normalised(wide(q), eps), wq, out=q_out)
    np.multiply(normalised(wide(k), eps), wk, out=k_out)


def normalised(x, eps):
    mean_square = np.vecdot(x, x)[..., None] / x.shape[-1]
    return x / np.sqrt(mean_square + eps)


@one_core(of="softmax", types=FLOATS, shapes=ROWS)
def softmax(x, out):
    x = wide(x)
    weights = np.exp(x - x.max(axis=-1, keepdims=True))
    np.divide(weights, weights.sum(axis=-1, keepdims=True), out=out)


# Position.


@one_core(of="rope", types=FLOATS, shapes={"x": HEADS, "cos": "seq 1 head_dim/2", "sin": "seq 1 head_dim/2"})
def rope(x, cos, sin):
    a, b = np.split(x, 2, axis=-1)
    turned = a * cos - b * sin
    b[...] = a * sin + b * cos
    a[...] = turned


# Products.


@all_cores(of="matmul", shapes={"a": "m k", "b": "k n", "c": "m n"})
def matmul(a, b, c):
    np.matmul(a, b, out=c)


@all_cores(of="matmul_batched", shapes={"a": "batch m k", "b": "batch k n", "c": "batch m n"})
def matmul_batched(a, b, c):
    np.matmul(a, b, out=c)


@all_cores(of="matmul_half", types=["f16"], shapes={"a": "m k", "b": "n k", "c": "m n"})
def matmul_half(a, b, c):
    c[...] = wide(a) @ wide(b).T


# Losses.


@one_core(of="mse", types=FLOATS)
def mse(x, y, out):
    difference = np.subtract(x, y, dtype=np.float32)
    out[0] = np.square(difference, out=difference).mean()


@one_core(of="cross_entropy", types=FLOATS, shapes={"logits": "rows classes"})
def cross_entropy(logits, targets, out):
    logits = wide(logits)
    largest = logits.max(axis=1)
    sums = np.exp(logits - largest[:, None]).sum(axis=1)
    out[0] = np.mean(np.log(sums) + largest - logits[np.arange(len(targets)), targets])


# Quantisation.


@one_core(of="quantise", shapes={"x": "rows dim", "values": "rows dim"})
def quantise(x, values, scales):
    largest = np.abs(x).max(axis=1)
    np.rint(x * factors(largest), out=values, casting="unsafe")
    np.divide(largest, 127, out=scales)


def factors(largest):
    """What makes 127 of the largest elements of rows; of next to nothing it makes zero."""
    return np.divide(127, largest, out=np.zeros_like(largest), where=largest >= 1e-36)[:, None]


@one_core(of="dequantise", shapes={"values": "rows dim", "scales": "rows 1", "out": "rows dim"})
def dequantise(values, scales, out):
    np.multiply(values, scales, out=out)


@one_core(of="quantise_round_trip", shapes=ROWS)
def quantise_round_trip(x, out):
    largest = np.abs(x).max(axis=1)
    np.multiply(np.rint(x * factors(largest)), largest[:, None] / 127, out=out)


# Reductions.


@one_core(of="sum", types=FLOATS)
def sum_(x, out):
    np.sum(x, dtype=np.float32, keepdims=True, out=out)


# A BLAS adds up in f32, and in few lanes.
@all_cores(of="dot", types=FLOATS, tolerance=1e-5)
def dot(x, y, out):
    out[0] = np.dot(wide(x), wide(y))


@one_core(of="argmax")
def argmax(x, value, index):
    index[0] = x.argmax()
    value[0] = x[index[0]]


# Fourier transforms, of pairs that are complex numbers.


@one_core(of="fft", shapes={"x": "n 2", "out": "n 2"})
def fft(x, out):
    np.fft.fft(as_complex(x), out=as_complex(out))


@one_core(of="fft_2d", shapes={"x": "rows columns 2", "out": "rows columns 2"})
def fft_2d(x, out):
    np.fft.fft2(as_complex(x), out=as_complex(out))


@one_core(of="fft_3d", shapes={"x": "depth rows columns 2", "out": "depth rows columns 2"})
def fft_3d(x, out):
    np.fft.fftn(as_complex(x), out=as_complex(out))


def as_complex(x):
    return x.view(np.complex64)[..., 0]


# Sparse matrices.


@one_core(of="coo_to_csr")
def coo_to_csr(row_indices, rows, row_offsets):
    row_offsets[...] = np.searchsorted(row_indices, np.arange(rows + 1, dtype=np.uint32))


@one_core(of="csr_to_coo")
def csr_to_coo(row_offsets, rows, row_indices):
    row_indices[...] = np.repeat(np.arange(rows, dtype=np.uint32), np.diff(row_offsets))


# Memory.


@one_core(of="copy")
def copy(x, out):
    np.copyto(out, x)


@one_core(of="fill")
def fill(value, out):
    out.fill(value)


if __name__ == "__main__":
    serve()
