"""A kernel of tests/downstream in JAX on a processor: types that NumPy does not have."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

import jax

from kbench import serve, variant


@variant(of="negate", name="jax", backend="parallel")
@jax.jit
def negate(x):
    return -x


@variant(of="negate", name="jax_wrong", backend="parallel")
@jax.jit
def wrong(x):
    return abs(x)


if __name__ == "__main__":
    serve()
