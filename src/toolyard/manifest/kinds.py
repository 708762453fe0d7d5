"""Kinds of provider that packages add, found by the entry points of the group `toolyard.providers`.

Nothing is looked up until somebody names a kind that is not built in: a deployment without such packages pays nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar, cast

from toolyard.core.errors import BadInput
from toolyard.manifest.models import BUILT_IN_KINDS, BuiltInConfig, Manifest, PluginConfig

GROUP = "toolyard.providers"
C = TypeVar("C", bound=PluginConfig)


@dataclass(frozen=True, slots=True)
class ProviderKind(Generic[C]):
    """What an entry point names: the fields of an entry in the manifest, and how a provider is made of them.

    `config` is a subclass of `PluginConfig` whose `tag` is the kind's name; `build` is given an instance of it and
    returns a provider, not started yet (`toolyard.plugins.Provider`).
    """

    config: type[C]
    build: Callable[[C], object]


def kind_of(config: PluginConfig) -> ProviderKind[PluginConfig]:
    """
    Raises:
        BadInput: the package that adds it is not installed any more, or broken.
    """
    return find_kind(str(type(config).__struct_config__.tag))


@lru_cache(maxsize=64)
def find_kind(name: str) -> ProviderKind[PluginConfig]:
    """
    Raises:
        BadInput: no package adds it, several do, or what one adds cannot be used; with the package and the cause.
    """
    found = {(entry.value, _package(entry)): entry for entry in entry_points(group=GROUP, name=name)}
    if not found:
        raise BadInput(
            f"There is no kind of provider {name[:100]!r}.",
            where="kind",
            suggestion=f"Known here: {', '.join([*BUILT_IN_KINDS, *added_kinds()])}.",
        )
    if len(found) > 1:
        packages = " and ".join(sorted(package for _, package in found))
        raise BadInput(f"The kind {name!r} is added by {packages}.", where="kind", suggestion="Keep one of them.")
    (entry,) = found.values()
    return _loaded(entry)


def added_kinds() -> list[str]:
    """The names that installed packages add, good or broken."""
    return sorted({entry.name for entry in entry_points(group=GROUP)} - set(BUILT_IN_KINDS))


@dataclass(frozen=True, slots=True)
class ListedKind:
    name: str
    packages: tuple[str, ...]
    """Those that add it; none for a built-in one."""
    problem: str | None = None
    """Why it cannot be used."""


def listed_kinds() -> list[ListedKind]:
    """The built-in kinds, then those of packages. Each package is loaded; what goes wrong with one is its `problem`."""
    return [*(ListedKind(name, ()) for name in BUILT_IN_KINDS), *map(_listed, added_kinds())]


def _listed(name: str) -> ListedKind:
    packages = tuple(sorted({_package(entry) for entry in entry_points(group=GROUP, name=name)}))
    try:
        find_kind(name)
    except BadInput as error:
        return ListedKind(name, packages, error.message)
    return ListedKind(name, packages)


def unknown_kinds(entries: Iterable[object]) -> set[str]:
    """The kinds that these entries name and that are not built in."""
    named = (cast("dict[str, object]", entry).get("kind") for entry in entries if isinstance(entry, dict))
    return {kind for kind in named if isinstance(kind, str) and kind not in BUILT_IN_KINDS}


def configs_of(kinds: Iterable[ProviderKind[PluginConfig]]) -> Any:
    """The type of a provider's entry, these kinds among the built-in ones."""
    union: Any = BuiltInConfig
    for kind in kinds:
        union = union | kind.config
    return union


def manifest_of(kinds: Iterable[ProviderKind[PluginConfig]]) -> type[Manifest]:
    """The manifest's type, with providers of these kinds too."""
    kinds = list(kinds)
    if not kinds:
        return Manifest
    import msgspec

    providers = tuple[configs_of(kinds), ...]  # type: ignore[misc]
    made = msgspec.defstruct(
        "Manifest", [("providers", providers, ())], bases=(Manifest,), frozen=True, kw_only=True,
        forbid_unknown_fields=True, omit_defaults=True,
    )  # fmt: skip
    return cast("type[Manifest]", made)


def _loaded(entry: EntryPoint) -> ProviderKind[PluginConfig]:
    try:
        kind: object = entry.load()
    except Exception as error:
        raise _broken(entry, f"{type(error).__name__}: {error}") from error
    if not isinstance(kind, ProviderKind):
        raise _broken(entry, f"{entry.value} is no toolyard.plugins.ProviderKind")
    found = cast("ProviderKind[PluginConfig]", kind)
    config = cast("object", found.config)
    fits = isinstance(config, type) and issubclass(config, PluginConfig)
    if not fits or found.config.__struct_config__.tag != entry.name:
        raise _broken(entry, f"its config must be a PluginConfig with tag={entry.name!r}")
    return found


def _broken(entry: EntryPoint, cause: str) -> BadInput:
    return BadInput(
        f"The kind {entry.name!r} of the package {_package(entry)} cannot be used: {cause}.",
        where="kind",
        suggestion="Update or remove the package.",
    )


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else entry.module
