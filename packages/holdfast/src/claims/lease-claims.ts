import { randomUUID } from 'node:crypto'
import type { Scope } from '../core/bucket.ts'
import type { Driver, Executor, Row, Transaction } from '../core/driver.ts'
import { errorText } from '../core/errors/error-text.ts'
import { holdfastError } from '../core/errors.ts'
import type { ClaimsLostEvent } from '../core/events/event-map.ts'
import { channels, publish } from '../core/events.ts'
import { assertNotNested, runTransaction } from '../tx/run.ts'
import { type Claim, claimsOf, type FailOutcome, type HeldClaim } from './claim.ts'
import type {
  ClaimsEngine,
  Finished,
  FinishItem,
  FinishState,
  FinishVerb,
  LeasedRows,
  LeaseSettings,
  Recovered,
} from './engine.ts'
import { Gathering } from './gathering.ts'
import { isLimited, positive } from './layout.ts'
import type { KnownOptions } from '../core/options/known-options.ts'

/** How claims fail. */
export interface FailOptions {
  /** Written into `columns.error`. An `Error` is written with its message. */
  readonly error?: unknown
  /** Milliseconds until it may be tried again. @defaultValue by the number of the attempt */
  readonly retryInMs?: number
}

export const failOptions: KnownOptions<FailOptions> = {
  error: 'checked',
  retryInMs: 'checked',
}

export const recoverOptions: KnownOptions<{ readonly limit?: number }> = {
  limit: 'checked',
}

/** The same, with what went wrong on some of several primaries. */
export type RecoveredSome = Recovered & { readonly failure?: Error }

/** Rows that callers share a statement for; who asks for more gets a statement alone. */
const rowsTogether = 200

/** What the worker and the public face are made of. */
export interface LeaseVerbs<Tx, R>
  extends Pick<
    LeaseClaims<Tx, R>,
    | 'settings'
    | 'claim'
    | 'finishIn'
    | 'wasJoined'
    | 'unjoin'
    | 'finish'
    | 'recover'
    | 'tellLost'
    | 'placeOf'
    | 'lineOf'
  > {}

/** The verbs over one table. */
export class LeaseClaims<Tx, R> {
  readonly settings: LeaseSettings
  readonly #engine: ClaimsEngine
  readonly #driver: Driver<Tx>
  readonly #rows: LeasedRows<Tx>
  readonly #holder: string
  readonly #read: (row: Row) => R
  readonly #claiming: Gathering<number, HeldClaim<R>[]>
  readonly #finishing: Readonly<
    Record<FinishVerb, Gathering<readonly FinishItem[], readonly FinishState[]>>
  >
  /** Finished in a transaction of the caller's: nobody has to do it again. */
  readonly #joined = new WeakSet<Claim<R>>()

  constructor(
    engine: ClaimsEngine,
    driver: Driver<Tx>,
    settings: LeaseSettings,
    holder: string,
    read: (row: Row) => R,
  ) {
    this.#engine = engine
    this.#driver = driver
    this.#rows = engine.leased(driver, settings)
    this.#read = read
    this.settings = settings
    this.#holder = holder
    const isAnswer = (error: unknown): boolean => driver.engine.codeOf(error) !== undefined
    this.#claiming = new Gathering((limits) => this.#claimFor(limits), {
      lanes: 4,
      most: rowsTogether,
      sizeOf: (limit) => limit,
      isAnswer,
    })
    const finishing = (
      verb: FinishVerb,
    ): Gathering<readonly FinishItem[], readonly FinishState[]> =>
      new Gathering((calls) => this.#finishFor(verb, calls), {
        lanes: 4,
        most: rowsTogether,
        sizeOf: (items) => items.length,
        isAnswer,
      })
    this.#finishing = {
      complete: finishing('complete'),
      fail: finishing('fail'),
      release: finishing('release'),
      heartbeat: finishing('heartbeat'),
    }
  }

  async claim(tx: Tx | undefined, limit: number): Promise<HeldClaim<R>[]> {
    positive(limit, 'limit')
    if (tx === undefined) {
      assertNotNested(this.#driver)
      return await this.#claiming.add(limit)
    }
    const transaction = await this.#engine.joined(this.#driver, tx)
    return await this.#overTable(this.#claimOn(transaction, limit, true), transaction.beside)
  }

  /** Claims for several callers at once; the oldest rows go to who asked first. */
  async #claimFor(limits: readonly number[]): Promise<HeldClaim<R>[][]> {
    const limit = limits.reduce((sum, each) => sum + each, 0)
    const claims = await this.#overTable(this.#claimAlone(limit))
    return limits.map((each) => claims.splice(0, each))
  }

  async #claimAlone(limit: number): Promise<HeldClaim<R>[]> {
    if (!isLimited(this.settings.perKey)) return await this.#claimOn(undefined, limit, false)
    // The keys' locks are held from the first statement to the commit of the second, which counts.
    return await runTransaction(
      this.#driver,
      async (transaction) => await this.#claimOn(transaction, limit, false),
      { isolation: 'read committed' },
      undefined,
      'claims',
    )
  }

  async #claimOn(
    transaction: Transaction<Tx> | undefined,
    limit: number,
    joined: boolean,
  ): Promise<HeldClaim<R>[]> {
    const { layout, leaseMs } = this.settings
    const began = performance.now()
    const token = randomUUID()
    const request = { limit, joined, token, holder: this.#holder }
    const { rows, sentMs } = await this.#rows.claim(transaction, request)
    const claims = claimsOf(rows, { token, deadline: sentMs + leaseMs }, this.#read)
    tellClaimed(layout.table.table, limit, claims.length, began, joined)
    return claims
  }

  #overTable<T>(asking: Promise<T>, beside: Executor = this.#driver.alone): Promise<T> {
    return this.#engine.overTable(this.settings, beside, asking)
  }

  /** Rejects if some are lost: what the transaction did for them must not be committed. */
  async finishIn(
    tx: Tx,
    verb: FinishVerb,
    given: readonly Claim<R>[],
    options: FailOptions = {},
  ): Promise<FailOutcome<R>> {
    const claims = [...new Set(given)]
    if (claims.length === 0) return { kept: [], lost: [], dead: [] }
    const transaction = await this.#engine.joined(this.#driver, tx)
    const items = claims.map((claim) => this.#itemOf(claim, verb, options))
    const finishing = this.#finish(transaction, verb, items, 0)
    const { states } = await this.#overTable(finishing, transaction.beside)
    const outcome = outcomeOf(claims, states)
    this.tellLost(outcome.lost, verb)
    if (outcome.lost.length > 0) {
      throw holdfastError('CLAIM_LOST', { details: { lost: outcome.lost.map(({ key }) => key) } })
    }
    for (const claim of claims) this.#joined.add(claim)
    return outcome
  }

  /** Where a transaction that finishes it has to be opened. */
  placeOf(_claim: Claim<R>): { readonly driver: Driver<Tx>; readonly scopes: readonly Scope[] } {
    return { driver: this.#driver, scopes: [] }
  }

  /** What its heartbeats wait in line with. */
  lineOf(_claim: Claim<R>): unknown {
    return undefined
  }

  /** Whether the caller has finished it in a transaction. */
  wasJoined(claim: Claim<R>): boolean {
    return this.#joined.has(claim)
  }

  /** The transaction in which it was finished was rolled back. */
  unjoin(claim: Claim<R>): void {
    this.#joined.delete(claim)
  }

  async finish(
    verb: FinishVerb,
    given: readonly Claim<R>[],
    options: FailOptions = {},
  ): Promise<FailOutcome<R>> {
    assertNotNested(this.#driver)
    const claims = [...new Set(given)]
    if (claims.length === 0) return { kept: [], lost: [], dead: [] }
    const sent = performance.now()
    const states = await this.#finishing[verb].add(
      claims.map((claim) => this.#itemOf(claim, verb, options)),
    )
    const outcome = outcomeOf(claims, states)
    if (verb === 'heartbeat') {
      // A row that was locked did not get a longer lease; its old one is what counts.
      claims.forEach((claim, at) => {
        if (states[at] === 'kept') {
          ;(claim as HeldClaim<R>).deadline = sent + this.settings.leaseMs
        }
      })
    }
    return outcome
  }

  /** Finishes for several callers at once, and gives each its part of the answer. */
  async #finishFor(
    verb: FinishVerb,
    calls: readonly (readonly FinishItem[])[],
  ): Promise<(readonly FinishState[])[]> {
    // The next heartbeat comes by itself.
    const forMs = verb === 'heartbeat' ? 0 : this.settings.forMs
    const finishing = this.#finish(undefined, verb, calls.flat(), forMs)
    const { states, doubted } = await this.#overTable(finishing)
    // A row that is gone or free again does not tell whether that was the first call or somebody else.
    const { done = null } = this.settings.layout
    const tells = verb === 'heartbeat' || (verb === 'complete' && done !== null)
    if (doubted && !tells && states.includes('lost')) throw holdfastError('COMMIT_UNKNOWN')
    let from = 0
    return calls.map(({ length }) => states.slice(from, (from += length)))
  }

  async #finish(
    transaction: Transaction<Tx> | undefined,
    verb: FinishVerb,
    items: readonly FinishItem[],
    forMs: number,
  ): Promise<Finished> {
    const began = performance.now()
    const finished = await this.#rows.finish(transaction, verb, items, forMs)
    if (channels.claimsFinished.hasSubscribers) {
      const { table } = this.settings.layout.table
      const joined = transaction !== undefined
      const durationMs = performance.now() - began
      const counts = countsIn(finished.states)
      channels.claimsFinished.publish({ table, verb, ...counts, durationMs, joined })
    }
    return finished
  }

  #itemOf(claim: Claim<R>, verb: FinishVerb, { error, retryInMs }: FailOptions): FinishItem {
    const { key, token, attempt = 1 } = claim
    if (verb !== 'fail') return { key, token }
    return {
      key,
      token,
      delayMs: retryInMs ?? this.#backoffMs(attempt),
      ...(error === undefined ? {} : { error: errorText(error, errorTextMost) }),
    }
  }

  /** Doubles with each attempt; half of it is left to chance, so that a crowd does not come back at once. */
  #backoffMs(attempt: number): number {
    const { firstMs, mostMs } = this.settings.backoff
    const full = Math.min(mostMs, firstMs * 2 ** Math.min(attempt - 1, 40))
    return full * (0.5 + Math.random() / 2)
  }

  async recover(limit: number): Promise<RecoveredSome> {
    positive(limit, 'limit')
    assertNotNested(this.#driver)
    const recovered = await this.#overTable(this.#rows.recover(limit))
    if (recovered.freed > 0) {
      publish(channels.claimsRecovered, { table: this.settings.layout.table.table, ...recovered })
    }
    return recovered
  }

  /** Publishes that claims were lost. */
  tellLost(lost: readonly Claim<R>[], verb: ClaimsLostEvent['verb']): void {
    if (lost.length === 0) return
    const event: ClaimsLostEvent = {
      table: this.settings.layout.table.table,
      count: lost.length,
      verb,
    }
    publish(channels.claimsLost, event)
  }
}

/** Told of claims for the length of a transaction as well. */
export function tellClaimed(
  table: string,
  asked: number,
  count: number,
  began: number,
  joined: boolean,
): void {
  const { claimsClaimed } = channels
  if (!claimsClaimed.hasSubscribers) return
  claimsClaimed.publish({ table, asked, count, durationMs: performance.now() - began, joined })
}

function countsIn(states: readonly FinishState[]): { kept: number; lost: number; dead: number } {
  const count = (state: FinishState): number => states.filter((each) => each === state).length
  const lost = count('lost')
  return { kept: states.length - lost, lost, dead: count('dead') }
}

function outcomeOf<R>(claims: readonly Claim<R>[], states: readonly FinishState[]): FailOutcome<R> {
  // Nearly always all of them.
  if (states.every((each) => each === 'kept')) return { kept: claims, lost: [], dead: [] }
  return {
    kept: claims.filter((_, at) => states[at] !== 'lost'),
    lost: claims.filter((_, at) => states[at] === 'lost'),
    dead: claims.filter((_, at) => states[at] === 'dead'),
  }
}

const errorTextMost = 4_000
