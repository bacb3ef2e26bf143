"""The kernels as PyTorch does them, on a GPU and on all cores: `cargo run --example suite -- --worker torch`.

Operations are PyTorch's own where it has them, short compositions elsewhere; torch.compile is not used. Products and
convolutions of f32 are of f32, not of TF32.
"""

import sys
import warnings
from pathlib import Path

import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
from kbench import Declined, serve, variant  # noqa: E402

warnings.filterwarnings("ignore", "Sparse CSR tensor support|Please use the new API settings")
torch.backends.cudnn.allow_tf32 = False

HALVES = ["f16", "bf16"]
FLOATS = ["f32", *HALVES]
ROWS = {"x": "rows dim"}
HEADS = "seq heads head_dim"
ANGLES = "seq 1 head_dim/2"
KEYS = "batch kv_heads seq head_dim"
TRANSPOSED = {"a": "m k", "b": "n k"}


def on_gpu(of, name="torch", **options):
    return variant(of=of, name=name, backend="cuda", **options)


def everywhere(of, suffix="", **options):
    """The same function on a GPU and on all cores."""

    def register(function):
        on_gpu(of, "torch" + suffix, **options)(function)
        return variant(of=of, name="torch_cpu" + suffix, backend="parallel", **options)(function)

    return register


# Element-wise.


@everywhere("saxpy")
def saxpy(a, x, y):
    y.add_(x, alpha=a)


@everywhere("add", types=FLOATS)
def add(x, y):
    return x + y


@everywhere("mul", types=FLOATS)
def mul(x, y):
    return x * y


@everywhere("div", types=FLOATS)
def div(x, y):
    return x / y


@everywhere("relu", types=FLOATS)
def relu(x):
    return F.relu(x)


@everywhere("gelu", types=FLOATS)
def gelu(x):
    return F.gelu(x)


@everywhere("gelu_tanh", types=FLOATS)
def gelu_tanh(x):
    return F.gelu(x, approximate="tanh")


@everywhere("silu", types=FLOATS)
def silu(x):
    return F.silu(x)


# Normalisation.


@everywhere("rms_norm", types=FLOATS, shapes=ROWS)
def rms_norm(x, w, eps):
    return F.rms_norm(x, w.shape, w, eps)


@everywhere("rms_norm_gemma", types=FLOATS, shapes=ROWS)
def rms_norm_gemma(x, w, eps):
    return F.rms_norm(x, w.shape, 1 + w, eps)


@everywhere("layer_norm", types=FLOATS, shapes=ROWS)
def layer_norm(x, w, b, eps):
    return F.layer_norm(x, w.shape, w, b, eps)


@everywhere("qk_norm", types=FLOATS, shapes={"q": HEADS, "k": HEADS})
def qk_norm(q, k, wq, wk, eps):
    return F.rms_norm(q, wq.shape, wq, eps), F.rms_norm(k, wk.shape, wk, eps)


@everywhere("softmax", types=FLOATS, shapes=ROWS)
def softmax(x):
    return F.softmax(x, dim=-1)


# Position.


@everywhere("rope", types=FLOATS, shapes={"x": HEADS, "cos": ANGLES, "sin": ANGLES})
def rope(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1).to(x.dtype)


@everywhere("rope", suffix="_on_the_fly", types=FLOATS, shapes={"x": HEADS})
def rope_on_the_fly(x, seq, head_dim):
    # Angles of many turns, of which f32 would not have enough digits.
    double = {"dtype": torch.float64, "device": x.device}
    frequencies = 10_000 ** (-torch.arange(0, head_dim, 2, **double) / head_dim)
    angles = torch.outer(torch.arange(seq, **double), frequencies)[:, None]
    return rope(x, angles.cos().float(), angles.sin().float())


# Attention.


@everywhere("attention_prefill", types=FLOATS, shapes={"q": "batch heads seq head_dim", "k": KEYS, "v": KEYS})
def attention_prefill(q, k, v):
    return attention(q, k, v)


@everywhere("attention_causal", types=FLOATS, shapes={"q": "batch heads seq head_dim", "k": KEYS, "v": KEYS})
def attention_causal(q, k, v):
    return attention(q, k, v, is_causal=True)


@everywhere("attention_decode", types=FLOATS, shapes={"q": "batch heads 1 head_dim", "k": KEYS, "v": KEYS})
def attention_decode(q, k, v):
    return attention(q, k, v)


def attention(q, k, v, **options):
    """Groups are told of only where there are some: not all of PyTorch's kernels know them."""
    return F.scaled_dot_product_attention(q, k, v, enable_gqa=q.shape[1] != k.shape[1], **options)


# Products. Except for f32, the second matrix is transposed.


@everywhere("matmul", shapes={"a": "m k", "b": "k n"})
def matmul(a, b):
    return torch.mm(a, b)


@everywhere("matmul_batched", shapes={"a": "batch m k", "b": "batch k n"})
def matmul_batched(a, b):
    return torch.bmm(a, b)


@everywhere("matmul_half", types=HALVES, shapes=TRANSPOSED)
def matmul_half(a, b):
    return torch.mm(a, b.t())


@everywhere("matmul_int8", shapes={**TRANSPOSED, "scale_a": "m 1"})
def matmul_int8(a, b, scale_a, scale_b, m, n, k):
    if a.is_cuda and (m <= 16 or n % 8 or k % 8):
        raise Declined("torch._int_mm wants more than 16 rows, and n and k of multiples of 8")
    return torch._int_mm(a, b.t()) * scale_a * scale_b


def row_scales(scale, rows, k, quant):
    """A factor for every row and 128 columns, rows side by side, as cuBLASLt takes them for both matrices."""
    scale = scale.view(-1, -(-k // quant)).repeat_interleave(quant, dim=0)[:rows]
    return scale.repeat_interleave(quant // 128, dim=1)[:, : k // 128].t().contiguous()


def spread_scales(scale_a, scale_b, m, n, k, quant):
    return {"scale_a": row_scales(scale_a, m, k, quant).t(), "scale_b": row_scales(scale_b, n, k, quant)}


@on_gpu("matmul_fp8", shapes=TRANSPOSED, prepare=spread_scales)
def matmul_fp8(a, b, scale_a, scale_b, m, n, k, quant):
    if m % 16 or n % 16 or k % 128 or quant % 128:
        raise Declined("torch._scaled_mm wants m and n of multiples of 16, and k and blocks of multiples of 128")
    return scaled_product(a, b, scale_a, scale_b)


@on_gpu("matmul_fp8_tensor", shapes=TRANSPOSED)
def matmul_fp8_tensor(a, b, scale_a, scale_b, n, k):
    if n % 16 or k % 16:
        raise Declined("torch._scaled_mm wants n and k of multiples of 16")
    return scaled_product(a, b, scale_a, scale_b)


def scaled_product(a, b, scale_a, scale_b):
    try:
        return torch._scaled_mm(a, b.t(), scale_a, scale_b, out_dtype=torch.float32)
    except RuntimeError as error:
        if "NOT_SUPPORTED" in str(error):
            raise Declined("cuBLASLt has no kernel for it") from error
        raise


# Losses, which PyTorch rounds to the type of its operands, and the kernels do not: three roundings at most.

ROUNDED_F16 = 3 * 2**-11
ROUNDED_BF16 = 3 * 2**-9
LOGITS = {"logits": "rows classes"}


@everywhere("mse", types=["f32"])
@everywhere("mse", types=["bf16"], tolerance=ROUNDED_BF16)
def mse(x, y):
    return F.mse_loss(x, y).float()


# The result of f16 numbers would be one, and overflow.
@everywhere("mse", types=["f16"])
def mse_in_single(x, y):
    return F.mse_loss(x.float(), y.float())


def long_targets(targets):
    return {"targets": targets.view(torch.int32).long()}


@everywhere("cross_entropy", types=["f32"], shapes=LOGITS, prepare=long_targets)
@everywhere("cross_entropy", types=["f16"], shapes=LOGITS, prepare=long_targets, tolerance=ROUNDED_F16)
@everywhere("cross_entropy", types=["bf16"], shapes=LOGITS, prepare=long_targets, tolerance=ROUNDED_BF16)
def cross_entropy(logits, targets):
    return F.cross_entropy(logits, targets).float()


# Quantisation.


@everywhere("quantise", shapes=ROWS)
def quantise(x):
    largest = x.abs().amax(dim=1, keepdim=True)
    return torch.round(x * factors(largest)).to(torch.int8), largest / 127


def factors(largest):
    """What makes 127 of the largest elements of rows; of next to nothing it makes zero.

    A number over a tensor would be the number times its reciprocal, rounded twice: some integers would differ.
    """
    return torch.where(largest < 1e-36, 0, torch.full_like(largest, 127) / largest)


@everywhere("dequantise", shapes={"values": "rows dim", "scales": "rows 1"})
def dequantise(values, scales):
    return values * scales


@everywhere("quantise_round_trip", shapes=ROWS)
def quantise_round_trip(x):
    largest = x.abs().amax(dim=1, keepdim=True)
    return torch.round(x * factors(largest)) * (largest / 127)


# Reductions.


@everywhere("sum", types=FLOATS)
def sum_(x):
    return torch.sum(x, dtype=torch.float32)


# A BLAS adds up in f32, and in few lanes; of halves it makes halves.
@everywhere("dot", types=["f32"], tolerance=1e-5)
@everywhere("dot", types=["bf16"], tolerance=ROUNDED_BF16)
def dot(x, y):
    return torch.dot(x, y).float()


# A sum of many products is beyond f16.
@everywhere("dot", types=["f16"], tolerance=1e-5)
def dot_in_single(x, y):
    return torch.dot(x.float(), y.float())


@everywhere("argmax")
def argmax(x):
    index = torch.argmax(x)
    return torch.take(x, index), index.to(torch.int32)


# Signals.


@everywhere("fft", shapes={"x": "n 2"})
def fft(x):
    return torch.view_as_real(torch.fft.fft(torch.view_as_complex(x)))


@everywhere("fft_2d", shapes={"x": "rows columns 2"})
def fft_2d(x):
    return torch.view_as_real(torch.fft.fft2(torch.view_as_complex(x)))


@everywhere("fft_3d", shapes={"x": "depth rows columns 2"})
def fft_3d(x):
    return torch.view_as_real(torch.fft.fftn(torch.view_as_complex(x)))


IMAGES = {"image": "batch channels_in size size", "weights": "channels_out channels_in kernel kernel"}


@everywhere("conv2d", shapes=IMAGES)
def conv2d(image, weights, kernel):
    return F.conv2d(image, weights, padding=kernel // 2)


# Sparse matrices.


def csr_matrix(row_offsets, column_indices, values, rows):
    offsets, columns = row_offsets.view(torch.int32), column_indices.view(torch.int32)
    return {"matrix": torch.sparse_csr_tensor(offsets, columns, values, size=(rows, rows))}


@everywhere("spmv", prepare=csr_matrix)
def spmv(matrix, x):
    return matrix @ x


@everywhere("coo_to_csr")
def coo_to_csr(row_indices, rows):
    return torch._convert_indices_from_coo_to_csr(row_indices.view(torch.int32), rows, out_int32=True)


def entries_of(row_offsets):
    """Whoever has a matrix knows how many entries it has; PyTorch would have to wait for the device to tell."""
    return {"entries": int(row_offsets.view(torch.int32)[-1])}


@everywhere("csr_to_coo", prepare=entries_of)
def csr_to_coo(row_offsets, entries):
    return torch.repeat_interleave(row_offsets.view(torch.int32).diff(), output_size=entries)


# Memory.


@everywhere("copy")
def copy(x, out):
    out.copy_(x)


@everywhere("fill")
def fill(value, out):
    out.fill_(value)


if __name__ == "__main__":
    serve()
