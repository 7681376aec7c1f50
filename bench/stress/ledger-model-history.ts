import { isDeepStrictEqual } from 'node:util'
import {
  type Command,
  type KeyTerms,
  type Single,
  wordsOf,
} from '../../packages/holdfast/test/support/ledger-command.ts'

/** How commands reach the ledger. */
export type Step =
  /** One call in a transaction of its own: `apply_one` or `apply`. */
  | { readonly path: 'alone'; readonly commands: readonly [Command | Single] }
  /** One after the other in a transaction of the caller's. */
  | {
      readonly path: 'joined'
      readonly commands: readonly (Command | Single)[]
      readonly commits: boolean
    }
  /** All in one call of `apply`. */
  | { readonly path: 'together'; readonly commands: readonly Command[] }
  /** What is plain in one call of `apply_plain`, the rest in one of `apply`. */
  | { readonly path: 'plain'; readonly commands: readonly Command[] }
  /** What is as plain as can be in one call of `apply_new`, unless an id is known; the rest in one of `apply`. */
  | { readonly path: 'new'; readonly commands: readonly Command[] }
  /** Several connections at once, each with commands of its own, or one that coalesces them. */
  | {
      readonly path: 'at once'
      readonly commands: readonly Command[]
      readonly workers: number
      readonly coalesced: boolean
    }

export interface History {
  /** What the clock shows at first. */
  readonly startUs: number
  readonly terms: Readonly<Record<string, KeyTerms>>
  readonly steps: readonly Step[]
}

export interface Difference {
  readonly sort: string
  /** How many steps were played, with the one that differs. */
  readonly steps: number
  readonly told: string
  readonly modelled: string
}

export function isSingle(command: Command | Single): command is Single {
  return ['limit', 'peek', 'balance', 'grants', 'sweep', 'clock'].includes(command.act)
}

/** Commands that count: the clock is none of the ledger's. */
export function countOf({ steps }: History): number {
  return steps
    .flatMap<Command | Single>(({ commands }) => commands)
    .filter((one) => one.act !== 'clock').length
}

/** For people, and to be played again. */
export function printHistory({ startUs, terms, steps }: History): string {
  const used = new Set(
    steps
      .flatMap<Command | Single>(({ commands }) => commands)
      .flatMap((one) => {
        if (one.act === 'move') return one.lines.map(({ key }) => key)
        return 'key' in one ? [one.key] : []
      }),
  )
  const keys = Object.entries(terms)
    .filter(([key]) => used.has(key))
    .map(([key, term]) => `  key ${key}: ${JSON.stringify(term)}`)
  const lines = steps.map((step) => {
    const words = step.commands.map(wordsOf).join('; ')
    if (step.path === 'joined') return `  ${step.commits ? 'commit' : 'rollback'} { ${words} }`
    if (step.path === 'at once') {
      const how = step.coalesced ? 'coalesced' : `by ${step.workers}`
      return `  at once, ${how} { ${words} }`
    }
    return step.commands.length === 1 ? `  ${words}` : `  ${step.path} { ${words} }`
  })
  return [...keys, `  ${wordsOf({ act: 'clock', us: startUs })}`, ...lines].join('\n')
}

export function same(told: unknown, modelled: unknown): boolean {
  return isDeepStrictEqual(plain(told), plain(modelled))
}

/** Without what is undefined, and in one order. */
export function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, one]) => one !== undefined)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, one]) => [name, plain(one)]),
  )
}
