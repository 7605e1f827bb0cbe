import { expect, test } from 'vitest'
import { stepReason, stepTitle } from '../../src/transcript/repair-words.js'
import { finishText, profileTitle } from '../../web/src/inspector/words.js'
import { adviceFor, errorTitle } from '../../web/src/state/problem-of.js'
import { failuresByName } from '../support/prototype-names.js'

test('the page shows a prototype name as an unknown profile, step, reason and error', async () => {
  const failures = await failuresByName(name => {
    expect([profileTitle(name), finishText(name)]).toEqual([name, name])
    expect(stepTitle(name).toLowerCase()).toBe(name.replaceAll('-', ' ').toLowerCase())
    expect([stepReason(name), adviceFor(name)]).toEqual([undefined, undefined])
    expect(errorTitle(name)).toBe('The answer failed')
  })
  expect(failures).toEqual([])
})
