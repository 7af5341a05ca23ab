"""Arrays of a state that stay on the card until somebody looks at them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fedrecplus.engines.cuda.card import Tensor


class CardArray:
    """A tensor that looks like a NumPy array that nobody writes to.

    Between rounds the clients' private state never leaves the card. A checkpoint takes all of it, an evaluation the
    rows that it asks for, and a look for divergence one bit.
    """

    def __init__(self, tensor: Tensor, host: NDArray[Any] | None = None) -> None:
        self.tensor, self._host = tensor, host
        """the same numbers, where they are on the processor already"""

    @property
    def shape(self) -> tuple[int, ...]:
        """As of an array."""
        return tuple(self.tensor.shape)

    @property
    def size(self) -> int:
        """As of an array."""
        return self.tensor.numel()

    @property
    def ndim(self) -> int:
        """As of an array."""
        return self.tensor.dim()

    @property
    def dtype(self) -> np.dtype[Any]:
        """As of an array."""
        return np.dtype(str(self.tensor.dtype).removeprefix("torch."))

    def __len__(self) -> int:
        return len(self.tensor)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if self._host is not None:
            return np.array(self._host, dtype=dtype, copy=copy)
        array: NDArray[Any] = self.tensor.cpu().numpy()
        if array.base is not None and self.tensor.device.type == "cpu" and copy is not False:
            array = array.copy()  # in the interpreter the tensor's own memory
        return array if dtype is None else array.astype(dtype, copy=False)

    def __getitem__(self, index: Any) -> Any:
        """Some rows, gathered on the card; anything else by way of the whole array."""
        if isinstance(index, np.ndarray) and index.dtype.kind in "iu" and self.tensor.dtype.is_floating_point:
            places = torch.from_numpy(index.astype(np.int64)).to(self.tensor.device)
            return self.tensor[places].cpu().numpy()
        if isinstance(index, int | slice | np.integer):
            value = self.tensor[int(index) if isinstance(index, np.integer) else index]
            return value.cpu().numpy().copy()
        return np.asarray(self)[index]

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if ufunc is np.isfinite and method == "__call__" and not options:
            return CardArray(torch.isfinite(self.tensor))
        plain = (np.asarray(each) if isinstance(each, CardArray) else each for each in inputs)
        return getattr(ufunc, method)(*plain, **options)

    def all(self) -> bool:
        """Whether all numbers are true."""
        return bool(self.tensor.all())

    def astype(self, dtype: Any, copy: bool = True) -> NDArray[Any]:
        """A NumPy array of another type."""
        return np.asarray(self).astype(dtype, copy=copy)

    def copy(self) -> NDArray[Any]:
        """A NumPy array that may be written to."""
        return np.array(self)
