import { randomFor } from '../harness/random.ts'

/** What a caller does next. To settle, release, extend or refund needs something done before. */
export type Step =
  | { readonly kind: 'consume'; readonly amount: number }
  | { readonly kind: 'credit' | 'hold'; readonly amount: number; readonly ttlMs: number }
  | { readonly kind: 'settle'; readonly amount: number }
  | { readonly kind: 'release' | 'extend' }
  | { readonly kind: 'refund'; readonly amount: number }

/** How a call is sent: with others, by itself, or in a transaction of the caller's. */
export type Route = 'combined' | 'direct' | 'joined'

export interface Choice {
  readonly step: Step
  /** Which of the accounts. */
  readonly account: number
  readonly route: Route
  /** Only of a joined one: the caller thinks better of it. */
  readonly rollback: boolean
  /** How often the same is sent: one after the other, or a second time at the same moment. */
  readonly again: 'never' | 'after' | 'meanwhile'
}

/** Even ones are quotas, odd ones hold credits. */
export interface Accounts {
  readonly first: number
  readonly last: number
}

export function holdsCredits(account: number): boolean {
  return account % 2 === 1
}

/** A transaction of a caller holds the account over round trips, so few of them slow down many others. */
const routes: readonly Route[] = [...Array<Route>(6).fill('combined'), 'direct', 'joined']

/**
 * The choice for operation `number`. Amounts are of the size of the limit and supply is less than
 * demand, so that balances stay where the bound is.
 */
export function choose(seed: number, number: number, accounts: Accounts): Choice {
  const random = randomFor(seed, number)
  const percent = random.integer(0, 99)
  const amount = random.integer(1, 9)
  const dice = random.integer(0, 99)
  return {
    step: stepFor(percent, amount, dice),
    account: random.integer(accounts.first, accounts.last),
    route: routes[random.integer(0, routes.length - 1)] ?? 'direct',
    rollback: random.integer(0, 9) === 0,
    again: dice < 10 ? 'after' : dice < 20 ? 'meanwhile' : 'never',
  }
}

function stepFor(percent: number, amount: number, dice: number): Step {
  if (percent < 35) return { kind: 'consume', amount }
  // A few expire while the round goes on.
  const ttlMs = dice < 85 ? 600_000 : 30
  if (percent < 50) return { kind: 'credit', amount, ttlMs }
  if (percent < 65) return { kind: 'hold', amount, ttlMs }
  if (percent < 78) return { kind: 'settle', amount }
  if (percent < 86) return { kind: 'release' }
  if (percent < 90) return { kind: 'extend' }
  return { kind: 'refund', amount: Math.ceil(amount / 3) }
}
