"""How kernels are compiled, and the keyed draws inside them."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from filelock import FileLock
from numba.core import caching, registry, runtime

from fedrecplus.randomness import mix as plain_mix, to_unit as plain_to_unit

# sums may be reordered so that they run in vector registers; NaN and infinity keep their meaning
_MATH = {"reassoc", "contract", "nsz", "arcp"}
_OPTIONS = {"nogil": True, "fastmath": _MATH, "error_model": "numpy", "no_cfunc_wrapper": True}
_INNER = {"forceinline": True, "no_cpython_wrapper": True}
_numba: Any = numba  # some versions have types and some have none
_caching: Any = caching
_registry: Any = registry
_runtime: Any = runtime
_PACKAGE = Path(__file__).parents[1]
_SOURCES = [_PACKAGE / "randomness.py", *sorted((_PACKAGE / "arrays").glob("*.py"))]
_SOURCES += sorted((_PACKAGE / "engines" / "fast").rglob("*.py"))
_SOURCES.append(_PACKAGE / "parts" / "pseudo_items" / "_kernels.py")
_STAMP = hashlib.sha256(b"".join(path.read_bytes() for path in _SOURCES if path.exists())).hexdigest()


class ForgivingCache(_caching.FunctionCache):  # type: ignore[misc]
    """Numba's cache on disk, where nothing that is wrong with the disk is an error: it costs a compilation.

    Numba reads a stale index before it looks whether it is stale: a class that is gone from the package, or a file cut
    short by a kill, would be an error for ever. And it asks only whether the kernel's own file has changed, though the
    kernels it calls are compiled into it: here a change in any file of the engine makes all of them anew.

    Who finds nothing compiles behind a lock. Two processes that compile the same kernel may come to machine code that
    sums in another order, so the second waits, and reads what the first has kept.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = _caching.IndexDataCacheFile(self._cache_path, self._impl.filename_base, _STAMP)
        self._lock: FileLock | None = None

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled kernel, or None where there is none that can be read: then the lock is held until it is kept."""
        loaded = self._read(sig, target_context)
        if loaded is None:
            self._take_lock()
            loaded = self._read(sig, target_context)
            if loaded is not None:
                self._release_lock()
        return loaded

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled kernel if that is possible, in a new index where the old one can't be read."""
        try:
            super().save_overload(sig, data)
        except OSError:
            return
        except Exception:
            self._start_anew(sig, data)
        finally:
            self._release_lock()

    def _read(self, sig: Any, target_context: Any) -> Any:
        try:
            _runtime.rtsys.initialize(target_context)  # not all that infers types: no kept kernel needs it
            return self._load_overload(sig, target_context)
        except Exception:
            return None

    def _take_lock(self) -> None:
        if self._lock is None:
            with contextlib.suppress(OSError):
                path = Path(self._cache_path) / f"{self._impl.filename_base}.lock"
                path.parent.mkdir(parents=True, exist_ok=True)
                lock = FileLock(path, thread_local=False)
                lock.acquire()  # a process that dies lets go of it
                self._lock = lock

    def _release_lock(self) -> None:
        if self._lock is not None:
            with contextlib.suppress(OSError):
                self._lock.release()
            self._lock = None

    def _start_anew(self, sig: Any, data: Any) -> None:
        try:
            self.flush()
            super().save_overload(sig, data)
        except OSError:
            return


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile at first use, without the interpreter's lock, and cache; a cache that can't be written is no error."""
    return _kept(function, _OPTIONS)


def exact_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same, with sums in the order that the code has.

    Where a loop writes one array and reads another, the machine code asks whether they overlap before it uses vectors,
    and asks too broadly: it depends on where memory was free which way a loop goes, and the two may round differently.
    """
    return _kept(function, {**_OPTIONS, "fastmath": False})


def _kept(function: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    compiled: Any = _numba.njit(**options)(function)
    if _numba.config.DISABLE_JIT:
        return function
    with contextlib.suppress(RuntimeError):  # numba found no folder that it may write to
        compiled._cache = ForgivingCache(function)
    result: Callable[..., Any] = compiled
    return result


class Inner(_registry.CPUDispatcher):  # type: ignore[misc]
    """A function for kernels to call. Without the part that Python would call it by, which takes time to compile."""

    def __init__(self, function: Callable[..., Any], **more: Any) -> None:
        super().__init__(function, targetoptions={"nopython": True, **_INNER, **_OPTIONS, **more})

    def __call__(self, *args: Any) -> Any:
        """From Python: the plain function."""
        return self.py_func(*args)


def inner(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile into the kernels that call it, and nowhere else.

    A function that several kernels call out of line is in the machine code of each, and the loader keeps the copy that
    it met first: a process that has just compiled would sum in another order than one that reads the cache.
    """
    return function if _numba.config.DISABLE_JIT else Inner(function)


def section(function: Callable[..., Any]) -> Callable[..., Any]:
    """Put into the kernels that call it, before they are compiled: not compiled by itself, it sums in their order."""
    return function if _numba.config.DISABLE_JIT else Inner(function, inline="always")


mix = inner(plain_mix)
to_unit = inner(plain_to_unit)
