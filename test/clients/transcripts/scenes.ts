/**
 * Conversations with coding agents: what the user says, what the model answers, and what happens to the program. The
 * model is a strict provider on loopback; files and commands are real, in an empty folder.
 */

import type { ScriptFinish } from '../../../src/testing/strict/script.js'

/** A call in words of its own: each program has its own names for these tools. */
export type Call =
  | { read: string }
  | { shell: string }
  | { write: string; content: string }
  | { edit: string; from: string; to: string }
  | { look: string }
  | { other: string; args: Record<string, unknown> }

export interface Step {
  says?: string
  thinks?: string
  redacted?: true
  calls?: readonly Call[]
  finish?: ScriptFinish
  /** The provider refuses the key. */
  refused?: true
}

export interface Turn {
  user: string
  picture?: string
  steps: readonly Step[]
  /** What happens to the program once the command has created the file `started`. */
  ends?: 'killed' | 'interrupted'
  /** What the user says once the command has created the file `started`. */
  meanwhile?: string
  /** Further arguments of the program. */
  flags?: readonly string[]
  /** Only in programs that can: the conversation is summarized before the turn. */
  compacts?: true
}

export interface Scene {
  name: string
  turns: readonly Turn[]
  only?: readonly string[]
  /** Programs with several providers use this one; default: the first. */
  api?: string
}

const MANY_SCRIPTS =
  'Grüße, Καλημέρα, Здравствуй, नमस्ते, 你好, こんにちは, 안녕하세요, שלום, مرحبا, ไทย, 👩‍👩‍👧‍👦🏳️‍🌈, é, "quotes" \\ and $HOME'

const WAITS = 'touch started; sleep 20; echo over'

export const SCENES: readonly Scene[] = [
  {
    name: 'answer',
    turns: [{ user: 'Is it raining?', steps: [{ says: 'I cannot see the sky.' }] }],
  },
  {
    name: 'three-turns',
    turns: [1, 2, 3].map(n => ({ user: `Question ${n}?`, steps: [{ says: `Answer ${n}.` }] })),
  },
  {
    name: 'reads-a-file',
    turns: [
      {
        user: 'What is on my list?',
        steps: [{ says: 'I look.', calls: [{ read: 'notes.txt' }] }, { says: 'Milk and bread.' }],
      },
    ],
  },
  {
    name: 'runs-a-command',
    api: 'openai-responses',
    turns: [
      {
        user: 'How many lines?',
        steps: [{ calls: [{ shell: 'wc -l < notes.txt' }] }, { says: 'Two.' }],
      },
    ],
  },
  {
    name: 'writes-and-edits',
    turns: [
      {
        user: 'Write a greeting, then change it.',
        steps: [
          { calls: [{ write: 'greeting.txt', content: 'Hello {"name": "Ann"}\n' }] },
          { says: 'Now the change.', calls: [{ edit: 'greeting.txt', from: 'Hello', to: 'Good morning' }] },
          { says: 'Done.' },
        ],
      },
    ],
  },
  {
    name: 'command-fails',
    turns: [
      {
        user: 'Deploy it.',
        steps: [
          { calls: [{ shell: 'echo half; echo "disk full: /data" >&2; exit 3' }] },
          { says: 'It failed.' },
        ],
      },
    ],
  },
  {
    name: 'file-is-missing',
    api: 'openai-completions',
    turns: [
      {
        user: 'Read the plan.',
        steps: [{ calls: [{ read: 'plan.txt' }] }, { says: 'There is no plan.' }],
      },
    ],
  },
  {
    name: 'three-calls-at-once',
    turns: [
      {
        user: 'Look at everything.',
        steps: [
          {
            says: 'All at once.',
            calls: [{ read: 'notes.txt' }, { shell: 'echo one' }, { shell: 'echo two' }],
          },
          { says: 'Three things.' },
        ],
      },
    ],
  },
  {
    name: 'one-of-three-calls-fails',
    api: 'google-generative-ai',
    turns: [
      {
        user: 'Look at everything again.',
        steps: [
          { calls: [{ shell: 'echo one' }, { read: 'plan.txt' }, { shell: 'exit 1' }] },
          { says: 'One of three.' },
        ],
      },
    ],
  },
  {
    name: 'calls-one-after-the-other',
    turns: [
      {
        user: 'First the list, then the time.',
        steps: [
          { says: 'First.', calls: [{ read: 'notes.txt' }] },
          { says: 'Second.', calls: [{ shell: 'echo nine' }] },
          { says: 'Milk at nine.' },
        ],
      },
      { user: 'Thanks.', steps: [{ says: 'You are welcome.' }] },
    ],
  },
  {
    name: 'thinks-and-calls',
    turns: [
      {
        user: 'Think, then look.',
        steps: [
          { thinks: 'The list is a file.', calls: [{ read: 'notes.txt' }] },
          { thinks: 'Two things are on it.', says: 'Milk and bread.' },
        ],
      },
    ],
  },
  {
    name: 'thinks-and-calls-in-parallel',
    api: 'openai-responses',
    turns: [
      {
        user: 'Think, then look twice.',
        steps: [
          { thinks: 'Two looks.', says: 'Two.', calls: [{ shell: 'echo one' }, { shell: 'echo two' }] },
          { thinks: 'Enough.', says: 'One and two.' },
        ],
      },
      {
        user: 'Again.',
        steps: [{ thinks: 'Once more.', calls: [{ shell: 'echo three' }] }, { says: 'Three.' }],
      },
    ],
  },
  {
    name: 'thinks-only',
    turns: [
      { user: 'Think hard.', steps: [{ thinks: 'A long thought.\nIn two lines.', says: 'Forty-two.' }] },
      { user: 'Harder.', steps: [{ thinks: 'Another thought.', says: 'Still forty-two.' }] },
    ],
  },
  {
    name: 'thoughts-are-withheld',
    only: ['claude-code', 'pi'],
    turns: [
      {
        user: 'Think in secret.',
        steps: [
          { redacted: true, calls: [{ shell: 'echo secret' }] },
          { redacted: true, says: 'Done.' },
        ],
      },
    ],
  },
  {
    name: 'gemini-thinks-and-calls',
    only: ['pi'],
    api: 'google-generative-ai',
    turns: [
      {
        user: 'Think, then look twice.',
        steps: [
          { thinks: 'Two looks.', calls: [{ shell: 'echo one' }, { shell: 'echo two' }] },
          { thinks: 'Enough.', says: 'One and two.' },
        ],
      },
    ],
  },
  {
    name: 'picture-from-the-user',
    turns: [{ user: 'What is this?', picture: 'pixel.png', steps: [{ says: 'One pixel.' }] }],
  },
  {
    name: 'picture-from-a-tool',
    turns: [
      { user: 'Look at pixel.png.', steps: [{ calls: [{ look: 'pixel.png' }] }, { says: 'One pixel.' }] },
    ],
  },
  {
    name: 'many-scripts',
    turns: [
      {
        user: MANY_SCRIPTS,
        steps: [
          {
            calls: [
              { write: 'grüße 你好.txt', content: MANY_SCRIPTS },
              { shell: "printf '%s' 'नमस्ते 👩‍👩‍👧‍👦'" },
            ],
          },
          { says: `Echo: ${MANY_SCRIPTS}` },
        ],
      },
    ],
  },
  {
    name: 'output-of-two-hundred-lines',
    turns: [{ user: 'Count.', steps: [{ calls: [{ shell: 'seq 1 200' }] }, { says: 'To two hundred.' }] }],
  },
  {
    name: 'command-without-output',
    api: 'openai-completions',
    turns: [{ user: 'Say nothing.', steps: [{ calls: [{ shell: 'true' }] }, { says: 'Nothing was said.' }] }],
  },
  {
    name: 'unknown-tool',
    turns: [
      {
        user: 'Fly.',
        steps: [
          { calls: [{ other: 'fly', args: { to: { city: 'Rome', at: [1, 2.5, null, true] } } }] },
          { says: 'I cannot.' },
        ],
      },
    ],
  },
  {
    name: 'invalid-arguments',
    api: 'openai-responses',
    turns: [
      {
        user: 'Read something.',
        steps: [{ calls: [{ other: 'read', args: { wrong: 'argument' } }] }, { says: 'That was wrong.' }],
      },
    ],
  },
  {
    name: 'killed-during-a-command',
    turns: [
      { user: 'Ready?', steps: [{ says: 'Yes.' }] },
      { user: 'Wait.', ends: 'killed', steps: [{ says: 'I wait.', calls: [{ shell: WAITS }] }] },
    ],
  },
  {
    name: 'killed-and-resumed',
    turns: [
      { user: 'Wait.', ends: 'killed', steps: [{ calls: [{ shell: WAITS }] }] },
      { user: 'Are you there?', steps: [{ says: 'Here I am.' }] },
    ],
  },
  {
    name: 'interrupted-by-the-user',
    turns: [
      { user: 'Wait.', ends: 'interrupted', steps: [{ says: 'I wait.', calls: [{ shell: WAITS }] }] },
      { user: 'Leave it.', steps: [{ says: 'Left.' }] },
    ],
  },
  {
    name: 'refused-by-the-provider',
    turns: [
      { user: 'Ready?', steps: [{ says: 'Yes.' }] },
      { user: 'Go.', steps: [{ calls: [{ shell: 'echo gone' }] }, { refused: true }] },
      { user: 'Once more.', steps: [{ says: 'Now it works.' }] },
    ],
  },
  {
    name: 'cut-at-the-limit',
    only: ['claude-code', 'pi'],
    turns: [
      { user: 'Tell a story.', steps: [{ says: 'Once upon a', finish: 'length' }, { says: 'time.' }] },
      { user: 'Go on.', steps: [{ says: 'The end.' }] },
    ],
  },
  {
    name: 'compacted',
    turns: [
      {
        user: 'What is on my list?',
        steps: [{ calls: [{ read: 'notes.txt' }] }, { says: 'Milk and bread.' }],
      },
      {
        user: 'And now?',
        compacts: true,
        steps: [{ calls: [{ shell: 'echo eggs' }] }, { says: 'Eggs too.' }],
      },
    ],
  },
  {
    name: 'forked',
    only: ['claude-code', 'pi'],
    turns: [
      { user: 'Left or right?', steps: [{ says: 'Left.' }] },
      { user: 'Why?', flags: ['fork'], steps: [{ says: 'It is shorter.' }] },
    ],
  },
  {
    name: 'other-model-goes-on',
    only: ['claude-code', 'pi'],
    turns: [
      { user: 'Look.', steps: [{ thinks: 'A look.', calls: [{ shell: 'echo seen' }] }, { says: 'Seen.' }] },
      {
        user: 'Look again.',
        flags: ['other'],
        steps: [{ thinks: 'Again.', calls: [{ shell: 'echo more' }] }, { says: 'More.' }],
      },
    ],
  },
  {
    name: 'user-speaks-meanwhile',
    only: ['claude-code', 'pi'],
    turns: [
      {
        user: 'Wait.',
        meanwhile: 'And buy eggs.',
        steps: [{ calls: [{ shell: 'touch started; sleep 4; echo over' }] }, { says: 'Over; eggs noted.' }],
      },
    ],
  },
  {
    name: 'sub-agent',
    only: ['claude-code'],
    turns: [
      {
        user: 'Let somebody else look.',
        steps: [
          {
            calls: [
              {
                other: 'Agent',
                args: {
                  description: 'Looks',
                  prompt: 'Read the list.',
                  subagent_type: 'general-purpose',
                  run_in_background: false,
                },
              },
            ],
          },
          { calls: [{ read: 'notes.txt' }] },
          { says: 'It has milk and bread.' },
          { says: 'Milk and bread, says the other.' },
        ],
      },
    ],
  },
  {
    name: 'mentions-a-file',
    only: ['claude-code'],
    turns: [{ user: 'Read @notes.txt and say what it is.', steps: [{ says: 'A list.' }] }],
  },
]
