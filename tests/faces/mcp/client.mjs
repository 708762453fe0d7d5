// The TypeScript client's part of the script in test_foreign_clients.py: `node client.mjs PACKAGE URL legacy|modern`.
const [packageFolder, url, era] = process.argv.slice(2)
const { Client, StreamableHTTPClientTransport } = await import(`file://${packageFolder}/dist/index.mjs`)

const mode = era === 'legacy' ? 'legacy' : { pin: '2026-07-28' }
const client = new Client({ name: 'tests', version: '1' }, { versionNegotiation: { mode } })
await client.connect(new StreamableHTTPClientTransport(new URL(url)))

const progress = []
const { tools } = await client.listTools()
const good = await client.callTool({ name: 'kit_echo_action', arguments: { text: 'hi' } })
const failed = await client.callTool({ name: 'kit_fail_action', arguments: {} })
const slow = await client.callTool({ name: 'kit_slow_action' }, { onprogress: (report) => progress.push(report.message) })
const unknown = await client.callTool({ name: 'kit_nope_action' }).then(() => null, (error) => error.code)

console.log(JSON.stringify({
  version: client.getNegotiatedProtocolVersion(),
  tools: tools.map((tool) => tool.name),
  good: good.structuredContent,
  failed: [failed.isError, failed.content[0].text],
  slow: slow.content[0].text,
  progress,
  unknown,
}))
await client.close()
