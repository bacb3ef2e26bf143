"""The kernels as JAX does them on a GPU, compiled by XLA: `cargo run --example suite -- --worker jax`.

Halves are computed in f32, which costs XLA nothing where it fuses operations. Products of f32 are of f32, not of TF32.
"""

import os
import sys
import tempfile
from pathlib import Path

# Every launch is a process of its own, and compiling takes longer than measuring.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(tempfile.gettempdir()) / "kbench-jax"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
from kbench import Declined, serve, variant  # noqa: E402

FLOATS = ["f32", "f16", "bf16"]
ROWS = {"x": "rows dim"}
HEADS = "seq heads head_dim"
KEYS = "batch kv_heads seq head_dim"
TRANSPOSED = {"a": "m k", "b": "n k"}
EXACT = jax.lax.Precision.HIGHEST


def compiled(of, static=(), **options):
    """The variant of a kernel by a function that XLA compiles, anew for every value of its static parameters."""

    def register(function):
        return variant(of=of, name="jax", backend="cuda", **options)(jax.jit(function, static_argnames=static))

    return register


def wide(x):
    return x.astype(jnp.float32)


# Element-wise.


@compiled("gelu", types=FLOATS)
def gelu(x):
    return jax.nn.gelu(wide(x), approximate=False).astype(x.dtype)


@compiled("gelu_tanh", types=FLOATS)
def gelu_tanh(x):
    return jax.nn.gelu(wide(x), approximate=True).astype(x.dtype)


@compiled("silu", types=FLOATS)
def silu(x):
    return jax.nn.silu(wide(x)).astype(x.dtype)


# Normalisation.


@compiled("rms_norm", static="eps", types=FLOATS, shapes=ROWS)
def rms_norm(x, w, eps):
    return (normalised(wide(x), eps) * w).astype(x.dtype)


@compiled("rms_norm_gemma", static="eps", types=FLOATS, shapes=ROWS)
def rms_norm_gemma(x, w, eps):
    return (normalised(wide(x), eps) * (1 + wide(w))).astype(x.dtype)


@compiled("layer_norm", static="eps", types=FLOATS, shapes=ROWS)
def layer_norm(x, w, b, eps):
    # jax.nn.standardize takes the variance from two large sums, which is not exact enough here.
    centred = wide(x) - wide(x).mean(axis=-1, keepdims=True)
    return (normalised(centred, eps) * w + b).astype(x.dtype)


@compiled("qk_norm", static="eps", types=FLOATS, shapes={"q": HEADS, "k": HEADS})
def qk_norm(q, k, wq, wk, eps):
    return tuple((normalised(wide(x), eps) * w).astype(x.dtype) for x, w in ((q, wq), (k, wk)))


def normalised(x, eps):
    return x * jax.lax.rsqrt(jnp.square(x).mean(axis=-1, keepdims=True) + eps)


@compiled("softmax", types=FLOATS, shapes=ROWS)
def softmax(x):
    return jax.nn.softmax(wide(x), axis=-1).astype(x.dtype)


# Position.


@compiled("rope", types=FLOATS, shapes={"x": HEADS, "cos": "seq 1 head_dim/2", "sin": "seq 1 head_dim/2"})
def rope(x, cos, sin):
    a, b = jnp.split(x, 2, axis=-1)
    return jnp.concatenate((a * cos - b * sin, a * sin + b * cos), axis=-1).astype(x.dtype)


# Attention. JAX wants positions outside of heads.


@compiled("attention_prefill", types=FLOATS, shapes={"q": "batch heads seq head_dim", "k": KEYS, "v": KEYS})
def attention_prefill(q, k, v):
    return attention(q, k, v, is_causal=False, implementation=fastest(q))


@compiled("attention_causal", types=FLOATS, shapes={"q": "batch heads seq head_dim", "k": KEYS, "v": KEYS})
def attention_causal(q, k, v):
    return attention(q, k, v, is_causal=True, implementation=fastest(q))


@compiled("attention_decode", types=FLOATS, shapes={"q": "batch heads 1 head_dim", "k": KEYS, "v": KEYS})
def attention_decode(q, k, v):
    # XLA reads keys and values as they lie; for cuDNN it would copy them.
    return attention(q, k, v, implementation="xla")


def attention(q, k, v, **options):
    if q.dtype == jnp.float16 and options["implementation"] == "xla":
        raise Declined("XLA has no products of f16 that are added up in f32")
    q, k, v = (x.swapaxes(1, 2) for x in (q, k, v))
    with jax.default_matmul_precision("highest" if q.dtype == jnp.float32 else "default"):
        return jax.nn.dot_product_attention(q, k, v, **options).swapaxes(1, 2)


def fastest(q):
    """cuDNN has no f32, and heads of whole vectors only."""
    has_cudnn = q.dtype != jnp.float32 and q.shape[-1] % 8 == 0 and q.shape[-1] <= 128
    return "cudnn" if has_cudnn else "xla"


# Products. Except for f32, the second matrix is transposed.


@compiled("matmul", shapes={"a": "m k", "b": "k n"})
def matmul(a, b):
    return jnp.matmul(a, b, precision=EXACT)


@compiled("matmul_batched", shapes={"a": "batch m k", "b": "batch k n"})
def matmul_batched(a, b):
    return jnp.matmul(a, b, precision=EXACT)


@compiled("matmul_half", types=FLOATS[1:], shapes=TRANSPOSED)
def matmul_half(a, b):
    return jnp.einsum("mk,nk->mn", a, b)


@compiled("matmul_int8", shapes={**TRANSPOSED, "scale_a": "m 1"})
def matmul_int8(a, b, scale_a, scale_b):
    if any(length % 16 for length in (*a.shape, len(b))):
        raise Declined("XLA's products of int8 are not right for lengths that are no multiples of 16")
    return wide(jnp.einsum("mk,nk->mn", a, b, preferred_element_type=jnp.int32)) * scale_a * scale_b


@compiled("matmul_fp8_tensor", shapes=TRANSPOSED)
def matmul_fp8_tensor(a, b, scale_a, scale_b):
    return jnp.einsum("mk,nk->mn", a, b, preferred_element_type=jnp.float32) * (scale_a * scale_b)


@compiled("matmul_fp8", static="quant", shapes=TRANSPOSED)
def matmul_fp8(a, b, scale_a, scale_b, quant):
    """A product for each block of columns, which are added up with their factors."""
    depth = a.shape[1]
    if depth % quant:
        raise Declined("k is no multiple of quant")

    def blocks(x, scale):
        rows, count = len(x), depth // quant
        scale = jnp.repeat(scale.reshape(-1, count), quant, axis=0, total_repeat_length=rows)
        return x.reshape(rows, count, quant), scale

    (a, scale_a), (b, scale_b) = blocks(a, scale_a), blocks(b, scale_b)
    sums = jnp.einsum("mbk,nbk->bmn", a, b, preferred_element_type=jnp.float32)
    return jnp.sum(sums * scale_a.T[:, :, None] * scale_b.T[:, None, :], axis=0)


# Losses.


@compiled("mse", types=FLOATS)
def mse(x, y):
    return jnp.square(wide(x) - wide(y)).mean()


@compiled("cross_entropy", types=FLOATS, shapes={"logits": "rows classes", "targets": "rows 1"})
def cross_entropy(logits, targets):
    logits = wide(logits)
    losses = jax.nn.logsumexp(logits, axis=-1, keepdims=True) - jnp.take_along_axis(logits, targets, axis=-1)
    return losses.mean()


if __name__ == "__main__":
    serve()
