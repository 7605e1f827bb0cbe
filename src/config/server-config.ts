import { z } from 'zod'
import { isAddressRange } from '../server/security/client-address.js'
import { tokenProblem } from '../server/security/server-token.js'
import { group, list, text, webAddress, wholeNumber } from './schema-parts.js'

const token = z
  .string({ error: 'must be a token' })
  .refine(entry => tokenProblem(entry) === undefined, { error: ({ input }) => tokenProblem(String(input)) })

const TOKENS_ERROR =
  'must be an object of tokens and users, or a list of tokens, each at least 8 characters long'

/** The server with the web chat. */
export const serverSchema = group({
  port: wholeNumber(0, 65_535).default(18_789).describe('The port to listen on; 0 takes any free one.'),
  host: text().default('127.0.0.1').describe('The address to listen on. Any but loopback needs a token.'),
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
      'Tokens that give access: `{ token: user }`, or a list of tokens that are all the user `user`. Each is the token itself (at least 16 characters; 8 are accepted with a warning until the next release) or the hashed form that `lango token new` prints. Never printed.',
    ),
  allowedOrigins: list(webAddress())
    .default([])
    .describe('Web pages of other origins that may use the server, such as `https://chat.example.com`.'),
  allowedHosts: list(text())
    .default([])
    .describe('Names under which the server is reached besides its own address, such as `chat.example.com`.'),
  trustedProxies: list(
    text().refine(isAddressRange, { error: 'must be an IP address or a range such as 10.0.0.0/8' }),
  )
    .default([])
    .describe(
      'Proxies whose `X-Forwarded-For` says where a request comes from, as addresses or ranges such as `10.0.0.0/8`. Attempts to sign in are limited per address.',
    ),
  keepRunsDays: wholeNumber(1)
    .default(30)
    .describe(
      'How long the events of runs and the requests that were sent are kept. Messages are kept for ever.',
    ),
  graceMs: wholeNumber(0)
    .default(10_000)
    .describe('How long runs may go on when the server is asked to end.'),
  runsPerUser: wholeNumber(1).optional().describe('Runs of one user at the same time. Default 8.'),
  streamsPerUser: wholeNumber(1).optional().describe('Open streams of one user. Default 32.'),
  maxBodyBytes: wholeNumber(1024)
    .optional()
    .describe('The largest request, attachments included. Default 10485760.'),
}).superRefine((server, context) => {
  if (Object.keys(server.tokens).length > 0 || isLoopback(server.host)) return
  const message = 'needs at least one entry in `server.tokens`, because others can reach that address'
  context.addIssue({ code: 'custom', path: ['host'], message })
})

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host === '[::1]' || /^127(\.\d{1,3}){3}$/.test(host)
}
