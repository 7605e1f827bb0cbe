import { defineTool } from '../../src/tool.js'

/** Finds whatever it is asked for. */
export const searchTool = defineTool({
  name: 'search',
  description: 'Searches.',
  parameters: { type: 'object', properties: { query: { type: 'string' } } },
  effect: 'read',
  execute: ({ query }) => ({ found: String(query ?? '') }),
})

/** Changes something in the world: it runs alone. */
export const saveTool = defineTool({
  name: 'save',
  description: 'Saves a note.',
  parameters: { type: 'object', properties: { note: { type: 'string' } } },
  effect: 'once',
  execute: ({ note }) => ({ saved: String(note ?? '') }),
})
