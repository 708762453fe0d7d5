"""The resources and prompts of a server, under the names and URIs that its clients see."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from toolyard.catalog.server import Server, selector
from toolyard.catalog.uris import in_namespace, out_of_namespace
from toolyard.core.json import JsonObject, JsonValue, dumps
from toolyard.core.names import direct_name
from toolyard.core.offer import Offers
from toolyard.core.uri_template import uri_template


@dataclass(frozen=True, slots=True)
class Offered:
    """One prompt, resource or template: whose it is, what its provider calls it, and how clients see it."""

    namespace: str
    own: str
    definition: JsonObject


class OfferView:
    """A server shows those whose `namespace:name` or `namespace:uri` its tool patterns include. Of two with one name
    the first, by provider, is shown."""

    def __init__(self, server: Server, offers: Mapping[str, Offers]) -> None:
        self._server = server
        self._offers = offers
        each = [(namespace, one) for namespace, one in offers.items()]
        self.prompts = self._by("name", ((ns, one) for ns, of in each for one in of.prompts), self._prompt)
        self.resources = self._by("uri", ((ns, one) for ns, of in each for one in of.resources), self.uri)
        self.templates = self._by("uriTemplate", ((ns, one) for ns, of in each for one in of.templates), self.uri)

    @property
    def namespaces(self) -> Sequence[str]:
        """Those with resources of any kind."""
        return [namespace for namespace, offers in self._offers.items() if offers.reads]

    def uri(self, namespace: str, own: str) -> str:
        """A provider's URI as this server's clients see it."""
        return own if self._server.names == "bare" else in_namespace(namespace, own)

    def where(self, uri: str) -> tuple[str, str] | None:
        """The provider of a URI that a client names, and its own URI of it; None when none can be meant.

        A provider may have resources that are in no list; the server's patterns decide about these too.
        """
        listed = self.resources.get(uri)
        if listed is not None:
            return listed.namespace, listed.own
        if self._server.names == "direct" and (named := out_of_namespace(uri)) is not None:
            return named if named[0] in self._offers and self._includes(*named) else None
        for shown, template in self.templates.items():
            made = uri_template(shown)
            if made is not None and made.values(uri) is not None and self._includes(template.namespace, uri):
                return template.namespace, uri
        if self._server.names == "direct":
            return None
        able = [namespace for namespace in self.namespaces if self._includes(namespace, uri)]
        return (able[0], uri) if len(able) == 1 else None

    def completing(self, namespace: str) -> bool:
        offers = self._offers.get(namespace)
        return offers is not None and offers.completes

    def follows(self, namespace: str) -> bool:
        offers = self._offers.get(namespace)
        return offers is not None and offers.subscribes

    @cached_property
    def prompt_fingerprint(self) -> str:
        """Equal exactly while a client is told the same."""
        return _fingerprint(self.prompts.values())

    @cached_property
    def resource_fingerprint(self) -> str:
        return _fingerprint([*self.resources.values(), *self.templates.values()])

    def _prompt(self, namespace: str, own: str) -> str:
        return own if self._server.names == "bare" else direct_name(namespace, own, entity="prompt")

    def _includes(self, namespace: str, own: str) -> bool:
        return selector(self._server.tools)(f"{namespace}:{own}")

    def _by(
        self, key: str, found: Iterator[tuple[str, JsonObject]], shown: Callable[[str, str], str]
    ) -> Mapping[str, Offered]:
        offered: dict[str, Offered] = {}
        for namespace, definition in found:
            own = definition.get(key)
            if not isinstance(own, str) or not self._includes(namespace, own):
                continue
            name = shown(namespace, own)
            told: dict[str, JsonValue] = {**definition, key: name}
            offered.setdefault(name, Offered(namespace, own, told))
        return {name: offered[name] for name in sorted(offered)}


def _fingerprint(shown: Iterable[Offered]) -> str:
    return hashlib.blake2b(dumps([one.definition for one in shown]), digest_size=16).hexdigest()
