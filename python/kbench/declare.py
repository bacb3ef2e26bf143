"""What a file of variants says about its functions."""

from __future__ import annotations

import inspect
import os
import sys
from dataclasses import dataclass
from typing import Any, Callable, Optional, Sequence

BACKENDS = ("serial", "parallel", "cuda")
LIBRARIES = ("numpy", "torch", "jax")


class Declined(Exception):
    """Raised by a variant that cannot run at a size or on a machine, which is nobody's fault: the row is skipped."""


@dataclass(frozen=True)
class Variant:
    """One implementation of a kernel."""

    of: str
    name: str
    backend: str
    types: Optional[tuple[str, ...]]
    shapes: dict[str, tuple[str, ...]]
    prepare: Optional[Callable[..., dict[str, Any]]]
    tolerance: Optional[float]
    queue: Optional[int]
    library: Optional[str]
    function: Callable[..., Any]
    parameters: tuple[str, ...]

    @property
    def arrays(self) -> str:
        """The library whose arrays it takes: as it says, or else as its file imports."""
        return self.library or next((name for name in ("torch", "jax") if name in sys.modules), "numpy")

    def is_for(self, element: str) -> bool:
        return self.types is None or element in self.types

    def announcement(self) -> dict[str, Any]:
        """What kbench is told about it."""
        # What `prepare` adds is known when it has run; what it takes itself is of the kernel.
        parameters = names(self.prepare) if self.prepare else self.parameters
        code = inspect.unwrap(self.function).__code__
        return {
            "reply": "variant",
            "of": self.of,
            "name": self.name,
            "backend": self.backend,
            "types": None if self.types is None else list(self.types),
            "parameters": list(parameters),
            "tolerance": self.tolerance,
            "queue": self.queue or (16 if self.arrays == "jax" else 64),
            "place": {"file": os.path.relpath(code.co_filename), "line": code.co_firstlineno},
        }


VARIANTS: list[Variant] = []


def variant(
    *,
    of: str,
    name: str,
    backend: str,
    types: Optional[Sequence[str]] = None,
    shapes: Optional[dict[str, str]] = None,
    prepare: Optional[Callable[..., dict[str, Any]]] = None,
    tolerance: Optional[float] = None,
    queue: Optional[int] = None,
    arrays: Optional[str] = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a function as a variant of a kernel, and gives it back unchanged.

    of         the kernel, by its name or by its path
    name       the variant's name in reports
    backend    "serial", "parallel" or "cuda"
    types      element types for which it is defined, as kbench lists them (default: all that the kernel has)
    shapes     shapes of operands in terms of axes, as in {"x": "rows dim", "w": "dim"}; others are flat
    prepare    called once for some data, outside of the clock; gives arguments that are added, or take the place of operands
    tolerance  relative tolerance of this variant alone
    queue      calls that may wait for the device at once
    arrays     "numpy", "torch" or "jax" (default: what the file has imported)

    The function is given what its parameters name: operands of the kernel, then axes. It returns the outputs in the kernel's
    order, or writes them to the arrays of those names and returns None.
    """
    wrong = (
        (backend not in BACKENDS, f"backend={backend!r} is not one of {', '.join(BACKENDS)}"),
        (arrays not in (None, *LIBRARIES), f"arrays={arrays!r} is not one of {', '.join(LIBRARIES)}"),
        (isinstance(types, str), f"types={types!r} is a text; give a list, as in types=[{types!r}]"),
    )
    for is_wrong, text in wrong:
        if is_wrong:
            raise ValueError(f"variant {name!r} of {of!r}: {text}")

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        new = Variant(
            of, name, backend, None if types is None else tuple(types),
            {operand: tuple(shape.split()) for operand, shape in (shapes or {}).items()},
            prepare, tolerance, queue, arrays, function, names(function),
        )  # fmt: skip
        for known in VARIANTS:
            both = (known.of, known.name) == (of, name)
            if both and (None in (known.types, new.types) or set(known.types or ()) & set(new.types or ())):
                raise ValueError(f"variant {name!r} of {of!r}: there is one of that name already")
        VARIANTS.append(new)
        return function

    return register


def names(function: Optional[Callable[..., Any]]) -> tuple[str, ...]:
    """Names of a function's parameters."""
    if function is None:
        return ()
    parameters = inspect.signature(function).parameters.values()
    for parameter in parameters:
        if parameter.kind is not parameter.POSITIONAL_OR_KEYWORD:
            raise ValueError(f"{function.__qualname__}: its parameters are found by their names, and `{parameter}` is not an ordinary one")
    return tuple(parameter.name for parameter in parameters)


def find(of: str, name: str, element: str) -> Variant:
    """The variant of a name, for an element type."""
    for known in VARIANTS:
        if (known.of, known.name) == (of, name) and known.is_for(element):
            return known
    raise LookupError(f"there is no variant {name!r} of {of!r} for {element}")
