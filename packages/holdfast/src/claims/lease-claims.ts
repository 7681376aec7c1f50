import { randomUUID } from 'node:crypto'
import type { Scope } from '../core/bucket.ts'
import type { Driver, Executor, Row, Statement } from '../core/driver.ts'
import { errorText } from '../core/error-text.ts'
import { holdfastError } from '../core/errors.ts'
import type { ClaimsLostEvent } from '../core/event-map.ts'
import { channels, publish } from '../core/events.ts'
import { lockMemoryOf } from '../core/lock-memory.ts'
import {
  type ClaimRequest,
  claimedPerKey,
  claimedRows,
  claimRows,
  type RateLimit,
  seesLatest,
  type Turns,
} from '../engines/postgres/claims/claims.ts'
import {
  type FinishItem,
  type FinishLayout,
  type FinishVerb,
  finishAnswers,
  finishRows,
  recoverRows,
} from '../engines/postgres/claims/finish.ts'
import { lockTurns, nextTurns, noteClaims, turnsOf } from '../engines/postgres/claims/turns.ts'
import { withOperators } from '../engines/postgres/sql/own-operators.ts'
import { assertNotNested, runTransaction } from '../tx/run.ts'
import { type Claim, claimsOf, type FailOutcome, type HeldClaim } from './claim.ts'
import { Gathering } from './gathering.ts'
import { isLimited, type LeaseSettings, positive } from './layout.ts'
import { aloneOn, joinedTo, sendAgain } from './sending.ts'
import { overTable } from './table-failure.ts'

/** How claims fail. */
export interface FailOptions {
  /** Written into `columns.error`. An `Error` is written with its message. */
  readonly error?: unknown
  /** Milliseconds until it may be tried again. @defaultValue by the number of the attempt */
  readonly retryInMs?: number
}

/** What a sweep did. */
export interface Recovered {
  /** Rows whose lease was over, all together. */
  readonly freed: number
  /** Those of them that had their last attempt. */
  readonly dead: number
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
  readonly #driver: Driver<Tx>
  readonly #holder: string
  readonly #read: (row: Row) => R
  readonly #claiming: Gathering<number, HeldClaim<R>[]>
  readonly #finishing: Readonly<Record<FinishVerb, Gathering<readonly FinishItem[], string>>>
  /** Finished in a transaction of the caller's: nobody has to do it again. */
  readonly #joined = new WeakSet<Claim<R>>()
  /** Whose turn it was last. */
  #lastTurn: string | undefined

  constructor(driver: Driver<Tx>, settings: LeaseSettings, holder: string, read: (row: Row) => R) {
    this.#driver = driver
    this.#read = read
    this.settings = settings
    this.#holder = holder
    this.#claiming = new Gathering((limits) => this.#claimFor(limits), {
      lanes: 4,
      most: rowsTogether,
      sizeOf: (limit) => limit,
    })
    const finishing = (verb: FinishVerb): Gathering<readonly FinishItem[], string> =>
      new Gathering((calls) => this.#finishFor(verb, calls), {
        lanes: 4,
        most: rowsTogether,
        sizeOf: (items) => items.length,
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
    const transaction = await joinedTo(this.#driver, tx)
    return await this.#overTable(this.#claimOn(transaction, limit, true), transaction.beside)
  }

  /** Claims for several callers at once; the oldest rows go to who asked first. */
  async #claimFor(limits: readonly number[]): Promise<HeldClaim<R>[][]> {
    const limit = limits.reduce((sum, each) => sum + each, 0)
    const claims = await this.#overTable(this.#claimAlone(limit))
    return limits.map((each) => claims.splice(0, each))
  }

  async #claimAlone(limit: number): Promise<HeldClaim<R>[]> {
    const { perKey } = this.settings
    if (isLimited(perKey)) {
      // The keys' locks are held from the first statement to the commit of the second, which counts.
      return await runTransaction(
        this.#driver,
        async (transaction) => await this.#claimOn(transaction, limit, false),
        { isolation: 'read committed' },
        undefined,
        'claims',
      )
    }
    return await this.#claimOn(aloneOn(this.#driver), limit, false)
  }

  async #claimOn(on: Executor, limit: number, joined: boolean): Promise<HeldClaim<R>[]> {
    const { leaseMs } = this.settings
    const began = performance.now()
    const layout = await this.#layout(on)
    const turns = await this.#turns(on, layout, limit)
    if (turns === 'none') {
      tellClaimed(layout.table.table, limit, 0, began, joined)
      return []
    }
    const request: ClaimRequest = { limit, joined, turns }
    const lease = { token: randomUUID(), ms: leaseMs, holder: this.#holder }
    const sent = performance.now()
    const rows = await on.query(claimRows(layout, request, lease))
    if (joined && !seesLatest(rows)) throw holdfastError('CLAIM_STALE_SNAPSHOT')
    if (turns?.rate !== undefined) await this.#note(on, turns.rate, claimedPerKey(rows))
    const held = { token: lease.token, deadline: sent + leaseMs }
    const claims = claimsOf(claimedRows(layout, rows), held, this.#read)
    tellClaimed(layout.table.table, limit, claims.length, began, joined)
    return claims
  }

  /** @throws CLAIM_TABLE_UNFIT */
  async #overTable<T>(asking: Promise<T>, beside?: Executor): Promise<T> {
    return await overTable(this.settings, beside ?? this.#driver.alone, asking)
  }

  /** With the operators of its columns' types. */
  async #layout(on: Executor): Promise<FinishLayout> {
    return await withOperators(this.#driver, on, this.settings.layout)
  }

  /** Under the locks of the keys, which are held until this is committed. */
  async #note(
    on: Executor,
    rate: RateLimit,
    claimed: Readonly<Record<string, number>>,
  ): Promise<void> {
    if (Object.keys(claimed).length > 0) await on.query(noteClaims(rate, claimed))
  }

  /** Whose turn it is, if there are turns at all; `none` if nobody has anything to do. */
  async #turns(
    on: Executor,
    layout: FinishLayout,
    limit: number,
  ): Promise<Turns | 'none' | undefined> {
    const { perKey } = this.settings
    if (perKey === undefined) return undefined
    const request = { column: perKey.column, most: limit, after: this.#lastTurn }
    const limited = isLimited(perKey)
    const asking = limited ? lockTurns(layout, request, perKey) : nextTurns(layout, request)
    const found = await on.query(asking)
    const keys = found.map((row) => String(row['#key']))
    if (keys.length === 0) return 'none'
    if (limited) this.#noteLocks(found)
    this.#lastTurn = keys.at(-1)
    return turnsOf(perKey.column, keys, limit, perKey)
  }

  /** For whoever looks at locks: they are hashed by the server, and show no name. */
  #noteLocks(turns: readonly Row[]): void {
    const memory = lockMemoryOf(this.#driver)
    const namespace = 'holdfast-turn'
    for (const row of turns) {
      const name = `${namespace}:${this.settings.layout.table.table}:${String(row['#key'])}`
      memory.note({ name, namespace, lock: { kind: 'bigint', id: BigInt(String(row['#lock'])) } })
    }
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
    const transaction = await joinedTo(this.#driver, tx)
    const items = claims.map((claim) => this.#itemOf(claim, verb, options))
    const finishing = this.#finish(verb, items, (statement) => transaction.query(statement), true)
    const outcome = outcomeOf(claims, await this.#overTable(finishing, transaction.beside))
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
    const answers = await this.#finishing[verb].add(
      claims.map((claim) => this.#itemOf(claim, verb, options)),
    )
    const outcome = outcomeOf(claims, answers)
    if (verb === 'heartbeat') {
      // A row that was locked did not get a longer lease; its old one is what counts.
      claims.forEach((claim, at) => {
        if (answers[at] === finishAnswers.kept) {
          ;(claim as HeldClaim<R>).deadline = sent + this.settings.leaseMs
        }
      })
    }
    return outcome
  }

  /** Finishes for several callers at once, and gives each its part of the answer. */
  async #finishFor(verb: FinishVerb, calls: readonly (readonly FinishItem[])[]): Promise<string[]> {
    // The next heartbeat comes by itself.
    const forMs = verb === 'heartbeat' ? 0 : this.settings.forMs
    let inDoubt = false
    const send = async (statement: Statement): Promise<readonly Row[]> => {
      const sent = await sendAgain(this.#driver.alone, statement, forMs)
      inDoubt = sent.doubted
      return sent.rows
    }
    const answer = await this.#overTable(this.#finish(verb, calls.flat(), send, false))
    // A row that is gone or free again does not tell whether that was the first call or somebody else.
    const { done = null } = this.settings.layout
    const tells = verb === 'heartbeat' || (verb === 'complete' && done !== null)
    if (inDoubt && !tells && countsIn(answer, calls.flat().length).lost > 0) {
      throw holdfastError('COMMIT_UNKNOWN')
    }
    let from = 0
    return calls.map(({ length }) => answer.slice(from, (from += length)))
  }

  async #finish(
    verb: FinishVerb,
    items: readonly FinishItem[],
    send: Executor['query'],
    joined: boolean,
  ): Promise<string> {
    const { leaseMs } = this.settings
    const began = performance.now()
    const layout = await this.#layout({ query: send })
    const [row] = await send(finishRows(layout, verb, items, leaseMs))
    const answer = row?.['answer']
    const text = typeof answer === 'string' ? answer : ''
    if (channels.claimsFinished.hasSubscribers) {
      const { table } = layout.table
      const durationMs = performance.now() - began
      const counts = countsIn(text, items.length)
      channels.claimsFinished.publish({ table, verb, ...counts, durationMs, joined })
    }
    return text
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
    const [row] = await this.#overTable(this.#recoverOn(aloneOn(this.#driver), limit))
    const recovered = { freed: Number(row?.['freed']), dead: Number(row?.['dead']) }
    if (recovered.freed > 0) {
      publish(channels.claimsRecovered, { table: this.settings.layout.table.table, ...recovered })
    }
    return recovered
  }

  async #recoverOn(on: Executor, limit: number): Promise<readonly Row[]> {
    return await on.query(recoverRows(await this.#layout(on), limit))
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

function countsIn(answer: string, items: number): { kept: number; lost: number; dead: number } {
  let [lost, dead] = [items - answer.length, 0]
  for (const each of answer) {
    if (each === finishAnswers.lost) lost += 1
    else if (each === finishAnswers.dead) dead += 1
  }
  return { kept: items - lost, lost, dead }
}

function outcomeOf<R>(claims: readonly Claim<R>[], answer: string): FailOutcome<R> {
  const { lost, dead } = finishAnswers
  // Nearly always all of them.
  if (answer === finishAnswers.kept.repeat(claims.length))
    return { kept: claims, lost: [], dead: [] }
  const isLost = (at: number): boolean => (answer[at] ?? lost) === lost
  return {
    kept: claims.filter((_, at) => !isLost(at)),
    lost: claims.filter((_, at) => isLost(at)),
    dead: claims.filter((_, at) => answer[at] === dead),
  }
}

const errorTextMost = 4_000
