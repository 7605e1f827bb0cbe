/** A server over stdio whose tools have the names that every object inherits; each answers with its arguments. */
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js'

const names = Object.getOwnPropertyNames(Object.prototype)
const server = new Server({ name: 'inherited', version: '1.0.0' }, { capabilities: { tools: {} } })
server.setRequestHandler(ListToolsRequestSchema, () => ({
  tools: names.map(name => ({
    name,
    inputSchema: { type: 'object', properties: Object.fromEntries([[name, { type: 'string' }]]) },
  })),
}))
server.setRequestHandler(CallToolRequestSchema, ({ params }) => ({
  content: [{ type: 'text', text: JSON.stringify([params.name, params.arguments]) }],
}))
await server.connect(new StdioServerTransport())
