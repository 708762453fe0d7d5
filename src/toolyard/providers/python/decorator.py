"""`@toolyard.tool`: marks a function as a tool and leaves it callable as before."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from toolyard.core.errors import BadInput
from toolyard.core.names import LONGEST_TOOL_NAME
from toolyard.core.tool import TASK_MODES, Annotations, TaskMode

_MARK = "__toolyard_tool__"
_UNSAID = Annotations()
_F = TypeVar("_F", bound=Callable[..., object])


@dataclass(frozen=True, slots=True)
class PythonTool:
    """A function and what its author said about it. Schemas are made when a provider starts."""

    function: Callable[..., Any]
    name: str
    title: str | None = None
    description: str | None = None
    """Overrides the docstring's."""
    annotations: Annotations = _UNSAID
    cluster: str | None = None
    tags: tuple[str, ...] = ()
    time_limit: float | None = None
    task: TaskMode | None = None

    @staticmethod
    def of(function: object) -> PythonTool | None:
        """The tool that a decorated function carries."""
        found = getattr(function, _MARK, None)
        return found if isinstance(found, PythonTool) else None


@overload
def tool(function: _F, /) -> _F: ...


@overload
def tool(
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    read_only: bool | None = None,
    destructive: bool | None = None,
    idempotent: bool | None = None,
    open_world: bool | None = None,
    cluster: str | None = None,
    tags: tuple[str, ...] = (),
    time_limit: float | None = None,
    task: TaskMode | None = None,
) -> Callable[[_F], _F]: ...


def tool(
    function: _F | None = None,
    /,
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    read_only: bool | None = None,
    destructive: bool | None = None,
    idempotent: bool | None = None,
    open_world: bool | None = None,
    cluster: str | None = None,
    tags: tuple[str, ...] = (),
    time_limit: float | None = None,
    task: TaskMode | None = None,
) -> _F | Callable[[_F], _F]:
    """Makes a typed function, sync or async, a tool. Works bare (`@tool`) and with arguments (`@tool(...)`).

    The name is the function's, the description and the arguments' texts come from its docstring, the schema from its
    type hints. `read_only`, `destructive`, `idempotent` and `open_world` say what a call may do; `time_limit` is in
    seconds. `task` says whether MCP clients may be given a task in place of the result: `never`, when the call takes
    long (`auto`, the default) or `always`. A sync function runs in a thread of its own pool, an async one on the event
    loop.

    Raises:
        BadInput: not a function, or a name, limit or task mode that cannot be.
    """

    def mark(marked: _F) -> _F:
        if not callable(marked) or inspect.isclass(marked):
            raise BadInput(f"@toolyard.tool takes a function, not {type(marked).__name__}.", where="tool")
        own_name = name or getattr(marked, "__name__", "")
        if not own_name or own_name == "<lambda>" or len(own_name) > LONGEST_TOOL_NAME:
            raise BadInput(f"{own_name!r} cannot be a tool's name.", where="name", suggestion="Give it `name=`.")
        if time_limit is not None and time_limit <= 0:
            raise BadInput(f"{own_name}: time_limit must be more than 0 seconds.", where="time_limit")
        if task is not None and task not in TASK_MODES:
            raise BadInput(f"{own_name}: {task!r} is no task mode.", where="task", suggestion="never, auto or always")
        setattr(
            marked,
            _MARK,
            PythonTool(
                function=marked,
                name=own_name,
                title=title,
                description=description,
                annotations=Annotations(read_only, destructive, idempotent, open_world),
                cluster=cluster,
                tags=tags,
                time_limit=time_limit,
                task=task,
            ),
        )
        return marked

    return mark if function is None else mark(function)
