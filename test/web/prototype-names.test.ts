import { expect, test } from 'vitest'
import { stepReason, stepTitle } from '../../src/transcript/repair-words.js'
import { finishText, profileTitle } from '../../web/src/inspector/words.js'
import { adviceFor, errorTitle } from '../../web/src/state/problem-of.js'
import { PROTOTYPE_NAMES } from '../support/prototype-names.js'

test.each(PROTOTYPE_NAMES)('the page shows %s as an unknown profile, step, reason and error', name => {
  expect([profileTitle(name), finishText(name)]).toEqual([name, name])
  expect(stepTitle(name).toLowerCase()).toBe(name.replaceAll('-', ' ').toLowerCase())
  expect([stepReason(name), adviceFor(name)]).toEqual([undefined, undefined])
  expect(errorTitle(name)).toBe('The answer failed')
})
