"""One operation from its declaration: arguments, body, server, headers and what a model is told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from toolyard.core.json import JsonObject, JsonValue
from toolyard.providers.openapi.bodies import Bodies, BodyPlan
from toolyard.providers.openapi.media import accept_of
from toolyard.providers.openapi.model import Argument, Body, Operation
from toolyard.providers.openapi.naming import argument_key, with_hash
from toolyard.providers.openapi.nodes import Node, as_object, as_text, texts
from toolyard.providers.openapi.parameters import Input, Parameters
from toolyard.providers.openapi.references import Document
from toolyard.providers.openapi.report import Findings
from toolyard.providers.openapi.schemas import Schemas
from toolyard.providers.openapi.security import Security
from toolyard.providers.openapi.servers import Servers
from toolyard.providers.openapi.walk import Declaration

LONGEST_DESCRIPTION = 2_000
LONGEST_TITLE = 120
_ORDER = ("path", "query", "header", "cookie", "body")


class Operations:
    """Builds the operations of one document, over shared components."""

    def __init__(self, document: Document, findings: Findings, *, document_url: str) -> None:
        root = document.root
        self._document = document
        self._swagger = "swagger" in root
        self._security = Security(document, findings)
        self._schemas = Schemas(document, findings)
        self._parameters = Parameters(
            document, self._schemas, findings, swagger=self._swagger, api_keys=self._security.api_keys
        )
        self._bodies = Bodies(document, self._schemas, self._parameters, findings)
        self.servers = Servers(root, document_url, findings)

    def build(self, declared: Declaration, name: str) -> Operation:
        node, place = declared.node, declared.place
        refs: set[str] = set()
        parameters = self._parameters.declared(
            (declared.item.get("parameters"), declared.item_place.child("parameters")),
            (node.get("parameters"), place.child("parameters")),
        )
        inputs = list(self._parameters.inputs(parameters, declared.path, place, refs))
        if self._swagger:
            consumes = texts(node.get("consumes") or self._document.root.get("consumes"))
            plan = self._bodies.of_swagger(parameters, consumes, place, declared.method, refs)
        else:
            plan = self._bodies.of_request_body(
                node.get("requestBody"), place.child("requestBody"), declared.method, refs
            )
        keyed = with_keys([*inputs, *(plan.inputs if plan else ())])
        return Operation(
            key=declared.key,
            name=name,
            method=declared.method,
            path=declared.path,
            server=self.servers.of(
                (node.get("servers"), place.child("servers")),
                (declared.item.get("servers"), declared.item_place.child("servers")),
            ),
            description=_description(declared),
            root=msgspec.json.encode(_root_schema(keyed)),
            refs=tuple(sorted(refs)),
            arguments=tuple(argument for argument, _ in keyed),
            body=_body(plan, keyed),
            fixed_headers=tuple(self._parameters.fixed_headers(parameters)),
            idempotency_header=self._parameters.idempotency_header(parameters),
            accept=accept_of(self._answers(node, declared)),
            title=" ".join(as_text(node.get("summary")).split())[:LONGEST_TITLE],
            operation_id=as_text(node.get("operationId")),
            tags=tuple(texts(node.get("tags"))),
        )

    def components(self) -> Mapping[str, JsonObject]:
        self._schemas.finish()
        return self._schemas.components

    def refs(self) -> dict[str, tuple[str, ...]]:
        return self._schemas.refs

    def security(self) -> tuple[str, ...]:
        return self._security.described()

    def note_needs(self, built: Iterable[Operation]) -> None:
        """What is missing before a first call; a document whose operations all name a server needs no other."""
        if not all(operation.server for operation in built):
            self.servers.note_needs()
        self._security.note_needs()

    def _answers(self, node: Node, declared: Declaration) -> list[str]:
        if self._swagger:
            return texts(node.get("produces") or self._document.root.get("produces"))
        types: list[str] = []
        for status, value in as_object(node.get("responses")).items():
            if status.startswith("2"):
                found = self._document.follow(declared.place.child("responses", status), value)
                types += as_object(as_object(found.node if found else None).get("content"))
        return types


def with_keys(inputs: Sequence[Input]) -> list[tuple[Argument, Input]]:
    """Every argument under a key of its own: the first place of `_ORDER` keeps a shared name, others add theirs."""
    taken: set[str] = set()
    keyed: list[tuple[Argument, Input]] = []
    counts = Counter((each.argument.place, _plain_key(each.argument)) for each in inputs)
    for each in sorted(inputs, key=lambda each: _ORDER.index(each.argument.place)):
        argument, key = each.argument, _plain_key(each.argument)
        if counts[argument.place, key] > 1:
            key = with_hash(key, argument.name)
        if key in taken:
            key = f"{key[:56]}__{argument.place}"
        if key in taken:
            key = with_hash(key, f"{argument.place} {argument.name}")
        taken.add(key)
        keyed.append((msgspec.structs.replace(argument, key=key), each))
    return keyed


def _plain_key(argument: Argument) -> str:
    return argument.key or argument_key(argument.name)


def _body(plan: BodyPlan | None, keyed: list[tuple[Argument, Input]]) -> Body | None:
    """The plan's body, with the key that its one whole argument was given in the end."""
    if plan is None or not plan.body.whole:
        return plan.body if plan else None
    whole = next(argument.key for argument, _ in keyed if argument.place == "body")
    return msgspec.structs.replace(plan.body, whole=whole)


def _root_schema(keyed: list[tuple[Argument, Input]]) -> dict[str, JsonValue]:
    schema: dict[str, JsonValue] = {
        "type": "object",
        "properties": {argument.key: each.schema for argument, each in keyed},
    }
    required = [argument.key for argument, each in keyed if each.required]
    if required:
        schema["required"] = required
    return {**schema, "additionalProperties": False}


def _description(declared: Declaration) -> str:
    """Summary and description as one text, without saying the same twice."""
    node = declared.node
    summary = as_text(node.get("summary")) or as_text(declared.item.get("summary"))
    summary, details = summary.strip(), as_text(node.get("description")).strip()
    text = details if not summary or details.startswith(summary) else f"{summary}\n\n{details}" if details else summary
    text = text or declared.key
    if node.get("deprecated") is True:
        text = f"Deprecated. {text}"
    return text if len(text) <= LONGEST_DESCRIPTION else f"{text[: LONGEST_DESCRIPTION - 2].rstrip()} …"
