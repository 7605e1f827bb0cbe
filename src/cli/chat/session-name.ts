import { randomInt } from 'node:crypto'
import type { SessionKey } from '../../session/message.js'
import type { SessionStore } from '../../session/session-store.js'

/** A new session's id that a person can read, say and type again, such as `calm-otter-417`. */
function sessionName(): string {
  const pick = (words: readonly string[]) => words[randomInt(words.length)] ?? ''
  return `${pick(QUALITIES)}-${pick(ANIMALS)}-${randomInt(100, 1000)}`
}

/** A name that no session of this user has yet. */
export async function unusedSessionName(
  store: SessionStore,
  owner: Omit<SessionKey, 'sessionId'>,
): Promise<string> {
  for (let attempt = 0; attempt < 20; attempt++) {
    const sessionId = sessionName()
    const found = await store.loadSession({ ...owner, sessionId }, { budgetTokens: 'off', maxMessages: 1 })
    if (!found) return sessionId
  }
  return `${sessionName()}-${randomInt(1_000_000, 10_000_000)}`
}

const QUALITIES =
  'able bold brave bright brisk calm clear clever cool eager early fair fast fine fond free fresh gentle glad good grand happy keen kind light lively loud lucky merry mild neat noble open plain proud quick quiet rapid ready round sharp shy smart snug soft solid sound still sunny swift tidy true warm wise witty young'.split(
    ' ',
  )

const ANIMALS =
  'ant badger bat bear beaver bee bison boar cat colt crab crane crow deer dingo dove duck eagle elk falcon fawn finch fox frog gecko goat goose hare hawk hen heron horse ibis jay koala lamb lark lion llama lynx mole moose moth mouse newt otter owl panda pony puma quail rabbit raven robin seal shrew snail sparrow stork swan tiger toad trout viper wolf wren yak zebra'.split(
    ' ',
  )
