"""Calling and timing one variant on some data."""

from __future__ import annotations

import gc
import itertools
import statistics
import time
from typing import Any, Callable, Optional

import numpy as np

from .cuda import Span, Stopwatch
from .data import Data, Operand, same_bits
from .declare import Declined, Variant, names
from .libraries import Library

#: How often a gate may open by itself before the variant is to blame.
GATES = 2
#: Spans from which the part of a library's streams is taken.
OVERHEAD_SPANS = 21
#: Seconds between two looks at threads that come to rest, and how long they may take.
REST_LOOK, LONGEST_REST = 0.002, 0.1


def rest() -> None:
    """Waits until threads that spin for more work have gone to sleep: whoever is measured next has the processor to itself."""
    end = time.perf_counter() + LONGEST_REST
    while time.perf_counter() < end:
        used = time.process_time()
        time.sleep(REST_LOOK)
        if time.process_time() - used < REST_LOOK / 4:
            return


class Site:
    """Operands of some data as arrays of one library; shared by all its variants."""

    def __init__(self, data: Data, library: Library):
        self.data, self.library = data, library
        self._inputs: dict[str, Any] = {}

    def input(self, operand: Operand) -> Any:
        if operand.length is None:
            return self.data.number(operand)
        if operand.name not in self._inputs:
            self._inputs[operand.name] = self.library.array(self.data.input(operand), operand.element)
        return self._inputs[operand.name]

    def changed_inputs(self) -> list[str]:
        """Inputs that are not as they were; they are put right again."""
        changed = self.data.changed_inputs()
        for operand in self.data.read:
            array = self._inputs.get(operand.name)
            if array is None:
                continue
            if not same_bits(self.library.bits(array, operand.element), self.data.input(operand)):
                changed.append(operand.name)
                del self._inputs[operand.name]
        return changed


class Subject:
    """One variant on some data."""

    def __init__(self, variant: Variant, site: Site):
        self.variant, self.site = variant, site
        self.data, self.library = site.data, site.library
        self._operands = {operand.name: operand for operand in self.data.operands}
        self._prepared: dict[str, Any] = {}
        if variant.prepare is not None:
            with self.library.on_stream():
                self._prepared = variant.prepare(*(self._argument(name) for name in names(variant.prepare)))
                self.library.wait(self._prepared)
        self._fixed = [
            self._prepared[name] if name in self._prepared else self._argument(name) for name in variant.parameters
        ]
        #: Places among the arguments of outputs that it takes.
        self._taken = [
            (place, self._operands[name])
            for place, name in enumerate(variant.parameters)
            if name not in self._prepared and name in self._operands and self._operands[name].written
        ]
        self._is_fresh = self.data.in_place == "fresh" and bool(self._taken)
        #: Modes in which a call waits for the device, so that nothing can be queued behind a gate.
        self._waiting: set[str] = set()
        #: Whether it was called on the device in this process.
        self._is_loaded = False
        self._overhead: Optional[float] = None
        self._graphs: dict[int, tuple[Callable[[], None], list[list[Any]], tuple[Any, list[Any]]]] = {}
        #: What was last called, and what came of it.
        self._last: tuple[Any, list[Any]] = (None, self._fixed)

    def _argument(self, name: str) -> Any:
        operand = self._operands.get(name)
        if operand is None:
            if name in self.data.axes:
                return self.data.axes[name]
            text = f"takes `{name}`, which is no axis, no parameter that has a form in other languages, and not from `prepare`"
            raise TypeError(text)
        if operand.written:
            bits = self.data.initial[name]
            array = self.library.array(bits, operand.element, is_written=True)
        else:
            array = self.site.input(operand)
        if operand.length is None and not operand.written:
            return array
        return self.library.reshape(array, self.data.shape(operand, self.variant.shapes.get(name, ())))

    # Once.

    def call(self) -> tuple[list[tuple[str, bytes]], list[str]]:
        """Calls once on the outputs as kbench has them; gives what is returned, and inputs that were changed."""
        arguments = self._with_outputs({o.name: self.data.output(o) for _, o in self._taken})
        with self.library.on_stream():
            result = self.variant.function(*arguments)
            self.library.wait(result)
        self._is_loaded = True
        returned = self._write(result, arguments)
        return returned, self.site.changed_inputs()

    def fetch(self, inputs: bool) -> list[str]:
        """Writes the outputs of the last sample to where kbench sees them; gives inputs that were changed, if asked to."""
        result, arguments = self._last
        self._write(result, arguments)
        return self.site.changed_inputs() if inputs else []

    def poison(self) -> None:
        """Gives outputs that are only written the content that they have in the file: what a sample leaves of it shows."""
        if self.data.in_place == "no" and self._taken:
            self._with_outputs({operand.name: self.data.output(operand) for _, operand in self._taken})
            self.library.wait(self._fixed)

    def _with_outputs(self, contents: dict[str, np.ndarray]) -> list[Any]:
        """Arguments with some content of the outputs."""
        arguments = list(self._fixed)
        with self.library.on_stream():
            for place, operand in self._taken:
                bits = contents[operand.name]
                arguments[place] = self.library.assign(arguments[place], bits, operand.element)
        self._fixed = arguments
        return arguments

    def _write(self, result: Any, arguments: list[Any]) -> list[tuple[str, bytes]]:
        """Hands outputs over; gives those that are no operands."""
        written = self.data.written
        if result is None:
            taken = {operand.name: arguments[place] for place, operand in self._taken}
            missing = [operand.name for operand in written if operand.name not in taken]
            if missing:
                raise TypeError(f"returned None, and does not take `{missing[0]}`, so that nothing is known of it")
            outputs = [taken[operand.name] for operand in written]
        else:
            outputs = list(result) if isinstance(result, (tuple, list)) else [result]
        if len(outputs) < len(written):
            raise TypeError(f"returned {len(outputs)} value(s) where {len(written)} are expected")
        self._check_own(outputs, arguments)
        for operand, output in zip(written, outputs):
            try:
                bits = self.library.bits(output, operand.element)
            except TypeError as error:
                raise TypeError(f"{error} in `{operand.name}`") from None
            if bits.size != operand.count:
                raise TypeError(f"gives {bits.size} element(s) in `{operand.name}` where {operand.count} are expected")
            self.data.output(operand)[...] = bits
        rest = outputs[len(written) :]
        return [(element, self.library.bits(value, element).tobytes()) for value in rest
                for element in [self.library.element(value)]]  # fmt: skip

    def _check_own(self, outputs: list[Any], arguments: list[Any]) -> None:
        """A result that is another look at an argument, or fewer numbers than it seems, leaves the work to whoever reads it."""
        taken = {place for place, _ in self._taken}
        for output in outputs:
            if self.library.is_spread(output):
                raise TypeError("gives a result whose elements share memory: compute them all")
            for place, argument in enumerate(arguments):
                if place not in taken and self.library.is_same_memory(output, argument):
                    raise TypeError(f"gives a result that is in the memory of `{self.variant.parameters[place]}`: give it its own")

    # Timed.

    def _copies(self, count: int) -> list[list[Any]]:
        """As many argument lists with fresh outputs."""
        with self.library.on_stream():
            first = self._with_outputs(self.data.initial)
            lists = []
            for _ in range(count):
                arguments = list(first)
                for place, _operand in self._taken:
                    arguments[place] = self.library.copy(first[place])
                lists.append(arguments)
            self.library.wait(lists)
        return lists

    def on_host(self, per_batch: int, batches: int) -> float:
        """Nanoseconds of a sample on the processor."""
        function, total, result = self.variant.function, 0, None
        wait = self.library.wait if self.library.name == "jax" else None
        if wait is not None:
            plain = function
            function = lambda *arguments: wait(value := plain(*arguments)) or value  # noqa: E731
        if self._taken and self.data.in_place == "reuse":
            self._with_outputs(self.data.initial)
        arguments = self._fixed
        for _ in range(batches):
            lists = self._copies(per_batch) if self._is_fresh else None
            turns: Any = lists if lists is not None else itertools.repeat(arguments, per_batch)
            gc.disable()
            try:
                start = time.perf_counter_ns()
                for arguments in turns:
                    result = function(*arguments)
                total += time.perf_counter_ns() - start
            finally:
                gc.enable()
        self._last = (result, arguments)
        if self.variant.backend == "parallel":
            rest()
        return float(total)

    def end_to_end(self, per_batch: int, batches: int) -> float:
        """Nanoseconds from data on the host to results on the host, by the host's clock."""
        if self.variant.prepare is not None:
            raise Declined("its data is prepared once, and not in every call")
        library, data, variant = self.library, self.data, self.variant
        operands = [self._operands.get(name) for name in variant.parameters]
        moved = [
            (place, operand, data.shape(operand, variant.shapes.get(operand.name, ())))
            for place, operand in enumerate(operands)
            if operand is not None and operand.length is not None and (not operand.written or data.in_place != "no")
        ]
        contents = {o.name: data.initial[o.name] if o.written else data.input(o) for _, o, _ in moved}
        arguments, result = list(self._fixed), None
        library.wait(arguments)
        start = time.perf_counter_ns()
        with library.on_stream():
            for _ in range(per_batch * batches):
                for place, operand, shape in moved:
                    arguments[place] = library.reshape(library.array(contents[operand.name], operand.element), shape)
                result = variant.function(*arguments)
                outputs = [arguments[place] for place, _ in self._taken] if result is None else result
                outputs = outputs if isinstance(outputs, (tuple, list)) else [outputs]
                for operand, output in itertools.zip_longest(data.written, outputs):
                    library.bits(output, operand.element if operand else library.element(output))
        total = time.perf_counter_ns() - start
        self._last = (result, arguments)
        return float(total)

    def on_device(self, watch: Stopwatch, mode: str, per_batch: int, batches: int) -> dict[str, Any]:
        """A sample on the device: nanoseconds of all calls, of one call by the host's clock, and whether launching was over
        before the calls began."""
        self._load()
        time_ = {"hot": self._hot, "cold": self._cold, "graph": self._graph}[mode]
        total = host = 0.0
        with self.library.on_stream():
            for _ in range(batches):
                device, seen = self._timed(watch, time_, per_batch, mode)
                total, host = total + device, host + seen
        calls = max(1, per_batch * batches)
        return {"nanoseconds": total, "host": host / calls, "gated": mode not in self._waiting}

    def _load(self) -> None:
        """Calls once: what is compiled or loaded for that must not wait for a gate."""
        if self._is_loaded:
            return
        with self.library.on_stream():
            result = self.variant.function(*self._lists(1)[0])
            self.library.wait(result)
        self._is_loaded = True

    def _timed(self, watch: Stopwatch, time_: Any, calls: int, mode: str) -> tuple[float, float]:
        """A gate that had to open by itself may be the host's fault; when it happens again, a call waits for the device, and its
        launches are part of its time."""
        for _ in range(GATES):
            spans, overhead = time_(watch, calls, mode not in self._waiting)
            if not any(span.expired for span in spans):
                break
        else:
            if mode != "graph":
                self._waiting.add(mode)
            spans, overhead = time_(watch, calls, mode not in self._waiting)
        return sum(max(0.0, span.device - overhead) for span in spans), sum(span.host for span in spans)

    def _span(self, watch: Stopwatch, lists: list[list[Any]], gated: bool) -> Span:
        """A span of calls, one for each list of arguments."""
        function, library = self.variant.function, self.library

        def work() -> None:
            result = None
            followed = library.follow(lists[0], watch.follow) if lists else []
            for arguments in lists:
                arguments = followed if arguments is lists[0] or not self._is_fresh else arguments
                result = function(*arguments)
            if lists:
                self._last = (result, arguments)
            library.lead(result)

        return watch.span(work, gated, alone=not library.has_own_streams)

    def _overhead_of(self, watch: Stopwatch) -> float:
        """What two events take by themselves; more where the streams of a library have to wait for each other."""
        if self._overhead is None:
            self._overhead = watch.overhead
            if self.library.has_own_streams:
                library, arguments = self.library, self._fixed

                def work() -> None:
                    library.lead(library.follow(arguments, watch.follow))

                spans = [watch.span(work).device for _ in range(OVERHEAD_SPANS)]
                self._overhead = max(watch.overhead, statistics.median(spans))
        return self._overhead

    def _lists(self, calls: int) -> list[list[Any]]:
        if self._is_fresh:
            return self._copies(calls)
        if self._taken and self.data.in_place == "reuse":
            self._with_outputs(self.data.initial)
            self.library.wait(self._fixed)
        return [self._fixed] * calls

    def _hot(self, watch: Stopwatch, calls: int, gated: bool) -> tuple[list[Span], float]:
        return [self._span(watch, self._lists(calls), gated)], self._overhead_of(watch)

    def _cold(self, watch: Stopwatch, calls: int, gated: bool) -> tuple[list[Span], float]:
        written = sum(operand.bytes for operand in self.data.written)
        spans = []
        for _ in range(calls):
            lists = self._lists(1)
            watch.flush(written)
            spans.append(self._span(watch, lists, gated))
        return spans, self._overhead_of(watch)

    def _graph(self, watch: Stopwatch, calls: int, _gated: bool) -> tuple[list[Span], float]:
        if not calls:
            return [watch.span(lambda: None)], watch.overhead
        overhead = watch.measure_graph_overhead(self.library.capture)
        if calls not in self._graphs:
            self._graphs[calls] = self._captured(calls)
        replay, lists, self._last = self._graphs[calls]
        # Once untimed: what another graph, or an emptied cache, costs the first calls is no property of them.
        self._renew(lists)
        replay()
        watch.driver.synchronize()
        self._renew(lists)
        return [watch.span(replay)], overhead

    def _captured(self, calls: int) -> tuple[Callable[[], None], list[list[Any]], tuple[Any, list[Any]]]:
        lists = self._lists(calls)
        function = self.variant.function
        function(*lists[0])  # what is compiled or loaded now is not recorded
        self.library.wait(None)
        result = None

        def work() -> None:
            nonlocal result
            for arguments in lists:
                result = function(*arguments)

        replay = self.library.capture(work)
        return replay, lists, (result, lists[-1])

    def _renew(self, lists: list[list[Any]]) -> None:
        """Gives outputs that are also inputs their initial content, in the memory that was recorded."""
        if not self._taken or self.data.in_place == "no":
            return
        for arguments in lists if self._is_fresh else lists[:1]:
            for place, operand in self._taken:
                self.library.assign(arguments[place], self.data.initial[operand.name], operand.element)
        self.library.wait(None)
