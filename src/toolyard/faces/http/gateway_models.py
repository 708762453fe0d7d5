"""How a provider's tools look to an inference server: the words of MCP's `tools/list`."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from toolyard.faces.http.models import Given, JsonMap


class GatewayProvider(Given):
    name: str
    tools: int = Field(description="How many can be called now.")


class GatewayTool(Given):
    model_config = ConfigDict(populate_by_name=True)

    id: str = Field(description="`namespace:name`, by which it is called at `/v1/tools/{id}/call`.")
    name: str
    title: str | None = None
    description: str
    input_schema: JsonMap = Field(serialization_alias="inputSchema", description="JSON Schema 2020-12, closed.")
    output_schema: JsonMap | None = Field(default=None, serialization_alias="outputSchema")
    annotations: JsonMap = Field(description="Hints in MCP's sense.")


class ProviderTools(Given):
    name: str
    tools: list[GatewayTool]
