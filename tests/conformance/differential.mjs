// The TypeScript client's part of test_differential.py: `node differential.mjs PACKAGE URL legacy|modern SCRIPT`.
const [packageFolder, url, era, script] = process.argv.slice(2)
const { Client, StreamableHTTPClientTransport } = await import(`file://${packageFolder}/dist/index.mjs`)

const { calls, uris } = JSON.parse(script)
const mode = era === 'legacy' ? 'legacy' : { pin: '2026-07-28' }
const options = { versionNegotiation: { mode }, capabilities: { elicitation: { form: {} } } }
const client = new Client({ name: 'tests', version: '1' }, options)
const asked = []
client.setRequestHandler('elicitation/create', (request) => {
  asked.push(request.params.message)
  const fields = Object.keys(request.params.requestedSchema.properties)
  return { action: 'accept', content: Object.fromEntries(fields.map((name) => [name, `my ${name}`])) }
})
await client.connect(new StreamableHTTPClientTransport(new URL(url)))

const byName = (one, other) => (one.name < other.name ? -1 : 1)
const found = { version: client.getNegotiatedProtocolVersion(), calls: {}, read: {}, asked }
found.tools = (await client.listTools()).tools.sort(byName)
found.resources = (await client.listResources()).resources.sort(byName)
found.prompts = (await client.listPrompts()).prompts.sort(byName)
for (const [name, given] of Object.entries(calls)) found.calls[name] = await client.callTool({ name, arguments: given })
for (const uri of uris) found.read[uri] = await client.readResource({ uri })
found.unknown = await client.callTool({ name: 'nobody', arguments: {} }).then(() => null, (error) => error.code)

console.log(JSON.stringify(found))
await client.close()
