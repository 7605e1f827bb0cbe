import { z } from 'zod'
import { isAddressRange } from '../server/security/client-address.js'
import { tokenProblem } from '../server/security/server-token.js'
import { group, list, text, webAddress, wholeNumber } from './schema-parts.js'

const token = z
  .string({ error: 'must be a token' })
  .refine(entry => tokenProblem(entry) === undefined, { error: ({ input }) => tokenProblem(String(input)) })

const TOKENS_ERROR = 'must be an object of tokens and users, or a list of tokens of at least 8 characters'

/** The server with the web chat. */
export const serverSchema = group({
  port: wholeNumber(0, 65_535).default(18_789).describe('The port to listen on; 0 for any free one.'),
  host: text()
    .default('127.0.0.1')
    .describe('The address to listen on. Any address other than loopback needs a token.'),
  tokens: z
    .union(
      [
        z.record(token, text('must be the name of a user'), { error: TOKENS_ERROR }),
        z.array(token, { error: TOKENS_ERROR }),
      ],
      { error: TOKENS_ERROR },
    )
    .default({})
    .describe(
      'Access tokens: `{ token: user }`, or a list of tokens that all belong to the user `user`. Each is the token itself (at least 16 characters; 8 are accepted with a warning until the next release) or the hash that `lango token new` prints. Never printed.',
    ),
  allowedOrigins: list(webAddress())
    .default([])
    .describe('Other origins whose web pages may use the server, such as `https://chat.example.com`.'),
  allowedHosts: list(text())
    .default([])
    .describe('Host names of the server other than its own address, such as `chat.example.com`.'),
  trustedProxies: list(
    text().refine(isAddressRange, { error: 'must be an IP address or a range such as 10.0.0.0/8' }),
  )
    .default([])
    .describe(
      'Proxies whose `X-Forwarded-For` header is trusted, as addresses or ranges such as `10.0.0.0/8`. Sign-in attempts are limited per client address.',
    ),
  keepRunsDays: wholeNumber(1)
    .default(30)
    .describe('How long run events and sent requests are kept, unless `retention.runsDays` is set.'),
  graceMs: wholeNumber(0)
    .default(4000)
    .describe(
      'How long active runs may continue when the server is stopped. Those that have not ended then are handed over.',
    ),
  closeMs: wholeNumber(100)
    .optional()
    .describe(
      'How long stopping may take as a whole: the time of `graceMs`, handing over unfinished runs, closing connections and the store. Then the process exits. At most half of it, or all but 4000, is left for `graceMs`. Default 8000, or `graceMs` + 4000 where that is longer.',
    ),
  runsPerUser: wholeNumber(1).optional().describe('Maximum number of concurrent runs per user. Default 8.'),
  streamsPerUser: wholeNumber(1).optional().describe('Maximum number of open streams per user. Default 32.'),
  maxBodyBytes: wholeNumber(1024)
    .optional()
    .describe('Maximum size of a request body, attachments included. Default 10485760.'),
  maxMessages: wholeNumber(1)
    .optional()
    .describe('Maximum number of messages in one request. Default 10000.'),
  maxStateKeys: wholeNumber(1)
    .optional()
    .describe('Maximum number of state keys that one request sets. Default 5000.'),
  maxParts: wholeNumber(1)
    .optional()
    .describe('Maximum number of parts in one message of a request. Default 1000.'),
  maxDepth: wholeNumber(4, 1000)
    .optional()
    .describe('Maximum number of levels of nested JSON in a request body. Default 50.'),
  maxValues: wholeNumber(100)
    .optional()
    .describe(
      'Maximum number of JSON values in a request body, counted before it is parsed. Default 100000.',
    ),
}).superRefine((server, context) => {
  if (Object.keys(server.tokens).length > 0 || isLoopback(server.host)) return
  const message =
    'needs at least one entry in `server.tokens`, because that address is reachable from other machines'
  context.addIssue({ code: 'custom', path: ['host'], message })
})

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host === '[::1]' || /^127(\.\d{1,3}){3}$/.test(host)
}
