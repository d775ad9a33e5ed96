"""What several processes fit: the table that the first one has read, for all of them.

data = shared(lambda: begun(…), processes)
"""

from collections.abc import Callable, Generator
from typing import Any

import torch

from deeplfm.app.sources import Rows
from deeplfm.data.stored import Stored
from deeplfm.training import Processes


def shared(
    begun: Callable[[], "Generator[object, None, Rows | Stored | None]"], processes: Processes
) -> Rows | Stored | None:
    """What the first process begins with, for all: a table as numbers and names."""
    import pandas as pd

    own: list[Rows | Stored | None] = []

    def work() -> Generator[object, None, dict[str, Any] | None]:
        data = yield from begun()
        own.append(data)
        if data is None or processes.size == 1:
            return None
        if isinstance(data, Stored):
            return {"path": str(data.path), "names": [data.input_names, data.output_names]}
        tables = {"x": data.x, "y": data.y}
        numbers = {n: torch.tensor(table.to_numpy(float)) for n, table in tables.items()}
        return numbers | {"names": [list(map(str, table.columns)) for table in tables.values()]}

    told = processes.share_work(work)
    if own or told is None:
        return own[0] if own else None
    if "path" in told:
        return Stored(told["path"], *told["names"])
    x, y = (
        pd.DataFrame(told[name].numpy(), columns=columns)
        for name, columns in zip("xy", told["names"], strict=True)
    )
    return Rows(x, y, {}, {})
