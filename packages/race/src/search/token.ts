/**
 * A schedule as a short text that can be pasted: `r1.a4b2a2.7f3c01ab`. Version, steps of each flow in
 * turn (`a` is the first flow), and a hash of the statements, by which changed code is recognised.
 * Letters and digits only, so no shell touches it.
 */
import { createHash } from 'node:crypto'
import type { Choice, Run } from '../core/model.ts'
import { fingerprintOf } from './trace.ts'

const actions: readonly (readonly [Choice['action'], string])[] = [
  ['crash', 'X'],
  ['lose-answer', 'A'],
  ['victim', 'V'],
]

/** What a token says. */
export interface Replay {
  readonly choices: readonly Choice[]
  readonly hash: string
}

export function tokenOf(run: Run): string {
  const turns: { turn: string; count: number }[] = []
  for (const { choice } of run.steps) {
    const turn = turnOf(choice)
    const last = turns.at(-1)
    if (last?.turn === turn) last.count++
    else turns.push({ turn, count: 1 })
  }
  return `r1.${turns.map(({ turn, count }) => `${turn}${count}`).join('')}.${hashOf(run)}`
}

/** Changes whenever a statement, its place or its flow does. */
export function hashOf(run: Run): string {
  const text = run.steps.map(({ flow, lane }, index) => [flow, lane, fingerprintOf(run, index)])
  return createHash('sha256').update(JSON.stringify(text)).digest('hex').slice(0, 8)
}

/** Reads a token; throws if it is none. */
export function readToken(token: string): Replay {
  const [, turns, hash] = /^r1\.((?:[a-z](?:L\d+)?[XAV]?\d+)*)\.([0-9a-f]{8})$/.exec(token) ?? []
  if (turns === undefined || hash === undefined)
    throw new Error('not a replay token: it looks like r1.a4b2a2.7f3c01ab')
  const choices = [...turns.matchAll(/([a-z])(?:L(\d+))?([XAV])?(\d+)/g)].flatMap(
    ([, flow = 'a', lane = '0', action, count]) => {
      const choice: Choice = {
        flow: flow.charCodeAt(0) - 'a'.charCodeAt(0),
        lane: Number(lane),
        action: actions.find(([, letter]) => letter === action)?.[0] ?? 'go',
      }
      return Array<Choice>(Number(count)).fill(choice)
    },
  )
  return { choices, hash }
}

function turnOf({ flow, lane, action }: Choice): string {
  const letter = String.fromCharCode('a'.charCodeAt(0) + flow)
  const mark = actions.find(([name]) => name === action)?.[1] ?? ''
  return `${letter}${lane === 0 ? '' : `L${lane}`}${mark}`
}
