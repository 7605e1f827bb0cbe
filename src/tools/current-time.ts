import { z } from 'zod'
import { AgentError } from '../errors.js'
import { defineTool, type Tool } from '../tool.js'

/** Tells the time. `now` is the clock. */
export function currentTimeTool({ now = Date.now }: { now?: () => number } = {}): Tool {
  return defineTool({
    name: 'current_time',
    description: 'Tells the current date and time, in UTC and in a time zone.',
    parameters: z.object({
      time_zone: z.string().optional().describe('Such as "Asia/Seoul". Default: that of this machine.'),
    }),
    effect: 'read',
    execute: ({ time_zone }) => {
      const date = new Date(now())
      const local = formatter(time_zone)
      return {
        utc: date.toISOString(),
        local: local.format(date),
        timeZone: local.resolvedOptions().timeZone,
      }
    },
  })
}

function formatter(timeZone: string | undefined): Intl.DateTimeFormat {
  try {
    return new Intl.DateTimeFormat('en-GB', {
      dateStyle: 'full',
      timeStyle: 'long',
      ...(timeZone ? { timeZone } : {}),
    })
  } catch (error) {
    const message = `"${timeZone}" is not a time zone. Use a name such as "Europe/Berlin".`
    throw new AgentError('invalid-argument', message, { cause: error })
  }
}
