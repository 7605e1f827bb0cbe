/** What wakes an agent up without a person: schedules, and hooks of other systems. */
import { z } from 'zod'
import { isTimeZone, parseCron } from '../base/cron.js'
import { group, list, modelName, oneOf, text } from './schema-parts.js'

const NAME_ERROR = 'must consist of letters, digits, underscores and hyphens, at most 64'

const name = z
  .string({ error: NAME_ERROR })
  .regex(/^[A-Za-z0-9_-]{1,64}$/, { error: NAME_ERROR })
  .describe('Its name, unique in the list.')

const SESSION_ERROR = 'must be the id of a session, or `new`'

const target = {
  session: text(SESSION_ERROR)
    .max(200, { error: SESSION_ERROR })
    .describe('The session that gets the message, or `new` for a session of its own each time.'),
  user: text().optional().describe('The user whose session it is. Default `user`.'),
  model: modelName.optional().describe('The model of these runs. Default: that of the agent.'),
}

const cron = text().superRefine((value, context) => {
  const parsed = parseCron(value)
  if ('problem' in parsed) context.addIssue({ code: 'custom', message: parsed.problem })
})

const scheduleSchema = group({
  name,
  cron: cron.describe(
    'When: minute, hour, day of the month, month, day of the week; such as `0 9 * * MON-FRI`.',
  ),
  timeZone: text()
    .refine(isTimeZone, { error: 'must be a time zone such as Europe/Berlin' })
    .optional()
    .describe('The time zone of `cron`, such as `Europe/Berlin`. Default `UTC`.'),
  text: text().describe('The message.'),
  ...target,
  missed: oneOf(['skip', 'latest', 'all'])
    .optional()
    .describe(
      'Ticks that no process was there for: none is made up for, the latest, or all (at most the newest 100). Default `skip`.',
    ),
  overlap: oneOf(['queue', 'skip'])
    .optional()
    .describe(
      'When the run of the tick before has not ended: wait for the session, or leave the tick out. Default `queue`.',
    ),
})

const hookSchema = group({
  name: name.describe('Its name, unique in the list: the last part of `/api/hooks/{name}`.'),
  secret: text('must be a secret of at least 16 characters')
    .min(16, { error: 'must be a secret of at least 16 characters' })
    .describe(
      'The secret that requests are signed with; refer to a variable of the environment. Never printed.',
    ),
  scheme: oneOf(['standard', 'github'])
    .optional()
    .describe('How requests are signed: as Standard Webhooks, or as by GitHub. Default `standard`.'),
  text: text().describe(
    'What to do with it. `{{body.path.of.a.value}}` names a value of the body; only named ones are sent. Without names the whole body is.',
  ),
  ...target,
})

type Named = { name: string }

/** Names are unique. */
function unique(entries: readonly Named[], context: z.RefinementCtx): void {
  for (const [index, entry] of entries.entries()) {
    if (entries.findIndex(other => other.name === entry.name) === index) continue
    context.addIssue({
      ...{ code: 'custom', path: [index, 'name'] },
      message: 'must be unique: another entry has the name',
    })
  }
}

export const schedulesSchema = list(scheduleSchema).superRefine(unique)

export const hooksSchema = list(hookSchema).superRefine(unique)
