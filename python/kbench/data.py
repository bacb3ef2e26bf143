"""Data of one cell, as kbench hands it over: operands in a file that is mapped into memory."""

from __future__ import annotations

import mmap
import os
import re
from dataclasses import dataclass
from typing import Any, Optional, Union

import numpy as np

from .declare import Declined

#: Types that NumPy does not have are bits to it.
BITS = {"bf16": np.uint16, "e4m3": np.uint8, "e5m2": np.uint8}
DTYPES: dict[str, Any] = {
    "f32": np.float32, "f64": np.float64, "f16": np.float16,
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "isize": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "usize": np.uint64,
    "bool": np.bool_, **BITS,
}  # fmt: skip


#: Words that are compared at once.
PIECE = 1 << 16


@dataclass(frozen=True)
class Operand:
    """A number, or a sequence of numbers, at a place in the file."""

    name: str
    element: str
    length: Optional[int]
    offset: int
    written: bool

    @property
    def count(self) -> int:
        return 1 if self.length is None else self.length

    @property
    def bytes(self) -> int:
        return self.count * np.dtype(DTYPES[self.element]).itemsize


def same_bits(array: np.ndarray, other: np.ndarray) -> bool:
    """Whether two arrays have the same bytes."""
    bytes_, others = array.reshape(-1).view(np.uint8), other.reshape(-1).view(np.uint8)
    if bytes_.size != others.size:
        return False
    # Words are compared faster than bytes, and pieces need no memory for what is found.
    words = bytes_.size - bytes_.size % 8
    whole, other_whole = bytes_[:words].view(np.uint64), others[:words].view(np.uint64)
    pieces = (slice(begin, begin + PIECE) for begin in range(0, whole.size, PIECE))
    return np.array_equal(bytes_[words:], others[words:]) and all(
        np.array_equal(whole[piece], other_whole[piece]) for piece in pieces
    )


class Data:
    """Operands and axes of one cell."""

    def __init__(self, request: dict[str, Any]):
        self.kernel: str = request["kernel"]
        self.element: str = request["type"]
        self.axes: dict[str, int] = dict(request["axes"])
        self.in_place: str = request["in_place"]
        self.operands = [
            Operand(o["name"], o["type"], o["length"], o["offset"], o["written"]) for o in request["operands"]
        ]
        self._file = os.open(request["file"], os.O_RDWR)
        #: What this process changes is not seen elsewhere: an input that a variant writes to is noticed by comparing.
        self._own = mmap.mmap(self._file, 0, access=mmap.ACCESS_COPY)
        self._shared = mmap.mmap(self._file, 0)
        # What is only written has no content that matters.
        self.initial = {
            o.name: self._bits(self._shared, o) if self.in_place == "no" else self._bits(self._shared, o).copy()
            for o in self.written
        }

    @property
    def read(self) -> list[Operand]:
        return [operand for operand in self.operands if not operand.written]

    @property
    def written(self) -> list[Operand]:
        return [operand for operand in self.operands if operand.written]

    def _bits(self, memory: mmap.mmap, operand: Operand) -> np.ndarray:
        return np.ndarray((operand.count,), DTYPES[operand.element], memory, operand.offset)

    def input(self, operand: Operand) -> np.ndarray:
        """An input, in the memory of this process."""
        return self._bits(self._own, operand)

    def output(self, operand: Operand) -> np.ndarray:
        """An output, as kbench sees it."""
        return self._bits(self._shared, operand)

    def number(self, operand: Operand) -> Union[int, float, bool]:
        """A number by itself."""
        value = self._bits(self._shared, operand)
        if operand.element in ("e4m3", "e5m2"):
            raise Declined(f"`{operand.name}` is a single {operand.element}, which Python has no number for")
        if operand.element == "bf16":
            return float((value.astype(np.uint32) << 16).view(np.float32)[0])
        return value[0].item()

    def changed_inputs(self) -> list[str]:
        """Inputs that are not as they were; they are put right again."""
        changed = []
        for operand in self.read:
            own, shared = self.input(operand), self._bits(self._shared, operand)
            if not same_bits(own, shared):
                own[...] = shared
                changed.append(operand.name)
        return changed

    def append(self, offset: int, content: bytes) -> int:
        """Writes behind the operands; gives where the next may begin."""
        os.pwrite(self._file, content, offset)
        return offset + len(content)

    @property
    def end(self) -> int:
        """Where the operands end."""
        return len(self._shared)

    def shape(self, operand: Operand, shape: tuple[str, ...]) -> tuple[int, ...]:
        """A shape in terms of axes, which has to fit the operand."""
        dimensions = tuple(self._dimension(text) for text in shape) if shape else (operand.count,)
        if int(np.prod(dimensions)) != operand.count:
            raise ValueError(f"`{operand.name}` has {operand.count} elements, and the shape {dimensions} has others")
        return dimensions

    def _dimension(self, text: str) -> int:
        value = None
        for sign, factor in re.findall(r"([*/]?)([^*/]+)", text):
            if not factor.isdigit() and factor not in self.axes:
                raise ValueError(f"a shape has `{factor}`, which is no axis of the kernel: {', '.join(self.axes)}")
            number = int(factor) if factor.isdigit() else self.axes[factor]
            value = number if value is None else value // number if sign == "/" else value * number
        return value or 0

    def close(self) -> None:
        self.initial.clear()
        for memory in (self._own, self._shared):
            try:
                memory.close()
            except BufferError:
                pass  # an array of somebody still looks at it; it goes with the array
        os.close(self._file)
