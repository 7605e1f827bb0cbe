/** `serve-web.ts <options as JSON>`: serves until it is killed, and prints its address. */
import { startWebServer } from './web-server.js'

const server = await startWebServer(JSON.parse(process.argv[2] ?? '{}'))
console.log(server.url)
