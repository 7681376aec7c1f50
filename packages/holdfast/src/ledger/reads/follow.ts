import type { Driver } from '../../core/driver.ts'
import { type Duration, durationMs } from '../../core/options/duration.ts'
import { holdfastError } from '../../core/errors.ts'
import type { FollowedEvent } from '../../core/events/event-map.ts'
import { channels, publish } from '../../core/events.ts'
import { sqlStateOf } from '../../core/sql-state.ts'
import {
  type Follower,
  followAccounts,
  noteFollowed,
  readFollowers,
  type StoredAccountId,
  startFollowing,
  stopFollowing,
  unreadAccounts,
} from '../../engines/postgres/ledger/follow.ts'
import { askAll } from '../../tx/ask-each.ts'
import { schemaMissing } from '../../engines/postgres/sql/call-function.ts'
import { assertNotNested, runTransaction } from '../../tx/run.ts'
import { type AmountKind, type AmountOf, amountReader, amounts } from '../book.ts'
import { countOf, invalid } from '../calendar.ts'
import type { Kernel } from '../kernel.ts'
import { nameText } from '../operation.ts'
import type { Movement } from './reading.ts'
import { movementOf, type StoredMovement } from './reads.ts'
import { type Rounds, startRoundsOnEach } from '../upkeep/rounds.ts'
import { balanceOf, jsonAnswer, momentOf, type StoredBalance, textAnswer } from '../stored-text.ts'
import type { AmountReader, Balance } from '../verdict.ts'
import { assertFunction } from '../../core/options/given.ts'
import { type KnownOptions, optionsGiven } from '../../core/options/known-options.ts'

/** A movement, with whose it is and what it found. */
export interface FollowedMovement<A> extends Movement<A> {
  /** Of this movement alone: whoever outside has seen it once can tell that it comes again. */
  readonly id: string
  readonly book: string
  readonly key: string
  readonly scope: string
  /** What the account stood at before. */
  readonly before: Balance<A>
}

/** Options of `follow`. */
export interface FollowOptions<K extends AmountKind = 'number'> {
  /** Who follows: each name has a place of its own, whatever process reads for it. */
  readonly name: string
  /** Only the movements of this book. @defaultValue those of all books */
  readonly book?: string
  /**
   * Where a new name begins: at the oldest movement that is kept, or with those to come. A name that is known goes on
   * where it was. @defaultValue 'beginning'
   */
  readonly from?: 'beginning' | 'now'
  /** How many the handler gets at once, 1 to 1000. @defaultValue 100 */
  readonly batch?: number
  /** @defaultValue 'number' */
  readonly amounts?: K
}

/** Options of `startFollower`. */
export interface FollowerOptions<K extends AmountKind = 'number'> extends FollowOptions<K> {
  /** Pause between two looks at what is new. @defaultValue '1 s' */
  readonly every?: Duration
  /**
   * How often all accounts are looked at, and not only those with an operation of late: that finds what fell due by
   * itself, and transactions that took longer than a minute. @defaultValue '5 min'
   */
  readonly thorough?: Duration
}

const followOptions: KnownOptions<FollowOptions<AmountKind>> = {
  name: 'checked',
  book: 'checked',
  from: 'checked',
  batch: 'checked',
  amounts: amounts,
}

const followerOptions: KnownOptions<FollowerOptions<AmountKind>> = {
  ...followOptions,
  every: 'checked',
  thorough: 'checked',
}

/** Gets movements in a transaction of its own: what it writes there is written once for each movement. */
export type FollowHandler<Tx, A> = (
  tx: Tx,
  movements: readonly FollowedMovement<A>[],
) => Promise<unknown>

/** What `follow` did. */
export interface Followed {
  /** What the handler got, in transactions that were committed. */
  readonly movements: number
  /** Somebody else reads for this name right now, and the rest is left to them. */
  readonly busy: boolean
}

/** Somebody who follows, as the database has it. */
export interface KnownFollower {
  readonly name: string
  readonly book: string | undefined
  readonly since: Date
  /** What was committed by then was read; nothing newer is dropped by `maintain`. Undefined: nothing yet. */
  readonly readUpTo: Date | undefined
}

/** Movements as they come, for exports, reports, and what is to happen when a limit is reached. */
export interface LedgerFollowing<Tx> {
  /**
   * Hands every movement that this name has not read to the handler, and ends when there is none. The place is kept in
   * the transaction of the handler: a movement is neither skipped nor handed over twice, whenever a process is killed.
   * Movements of one account come in their order. The handler may run again after a conflict: what it does outside of
   * the database it does by `movement.id`. Of several primaries all are read at the same time, so that the handler may
   * run for several at once.
   *
   * @example
   * await hf.ledger.follow({ name: 'invoices', book: 'credits' }, async (tx, movements) => {
   *   for (const { id, key, debit } of movements) await addToInvoice(tx, { id, key, debit })
   * })
   * @throws OPTION_INVALID, LEDGER_NAME_INVALID, LEDGER_MOVEMENTS_GONE, SCHEMA_MISSING, TX_NESTED, SHARD_PRIMARY_FAILED
   */
  follow<K extends AmountKind = 'number'>(
    options: FollowOptions<K>,
    handler: FollowHandler<Tx, AmountOf<K>>,
  ): Promise<Followed>
  /**
   * Does so every so often until stopped. May be started in any number of processes: one of them reads at a time. What
   * goes wrong is told by the event `ledger.followed`, and tried again. Does not keep the process alive.
   *
   * @throws OPTION_INVALID, LEDGER_NAME_INVALID
   */
  startFollower<K extends AmountKind = 'number'>(
    options: FollowerOptions<K>,
    handler: FollowHandler<Tx, AmountOf<K>>,
  ): Rounds
  /** Who follows. Of several primaries, those of each. @throws SCHEMA_MISSING, TX_NESTED */
  followers(): Promise<readonly KnownFollower[]>
  /**
   * Forgets a follower, so that movements it has not read may be dropped. Says whether there was one.
   *
   * @throws LEDGER_NAME_INVALID, SCHEMA_MISSING, TX_NESTED
   */
  unfollow(name: string): Promise<boolean>
}

interface StoredFollowed extends StoredMovement {
  readonly bucket: number
  readonly account: string
  readonly book: string
  readonly key: string
  readonly scope: string
  readonly before: StoredBalance
}

interface StoredFollower {
  readonly name: string
  readonly book: string | null
  readonly since: string
  readonly readUpTo: string | null
}

/** Operations that were committed so much later than they were made are found by a thorough look. */
const lateMs = 60_000
/** The state with which `follow` refuses to skip. */
const movementsGone = 'HF007'

export function createFollowing<Tx>(kernel: Kernel<Tx>): LedgerFollowing<Tx> {
  return {
    async follow(options, handler) {
      assertNotNested(kernel.driver)
      const reader = new Reader(kernel, options, handler as FollowHandler<Tx, never>)
      const followed = await askAll(kernel.driver, (primary) =>
        reader.read(primary, undefined, () => false),
      )
      return {
        movements: followed.reduce((sum, each) => sum + each.movements, 0),
        busy: followed.some(({ busy }) => busy),
      }
    },
    startFollower(given, handler) {
      const {
        every = '1 s',
        thorough = '5 min',
        ...options
      } = optionsGiven(given, followerOptions as KnownOptions<typeof given>)
      const reader = new Reader(kernel, options, handler as FollowHandler<Tx, never>)
      const thoroughMs = durationMs(thorough, 'thorough')
      return startRoundsOnEach(kernel, durationMs(every, 'every'), (at) => {
        let lookedAt = -Infinity
        let thoroughAt = -Infinity
        return async (isStopped) => {
          const began = performance.now()
          const isThorough = began - thoroughAt >= thoroughMs
          const recentMs = isThorough ? undefined : Math.ceil(began - lookedAt) + lateMs
          const told = { name: options.name, primary: at.name }
          try {
            const { movements, busy } = await at.answered(() =>
              reader.read(at.primary, recentMs, isStopped),
            )
            if (!busy && isThorough) thoroughAt = began
            if (!busy) lookedAt = began
            if (movements > 0) tell({ ...told, movements }, began)
          } catch (error) {
            tell({ ...told, movements: 0, error }, began)
          }
        }
      })
    },
    async followers() {
      const answers = await kernel.readEach(readFollowers)
      return answers
        .flatMap((rows) => jsonAnswer(rows) as StoredFollower[])
        .map(({ name, book, since, readUpTo }) => ({
          name,
          book: book ?? undefined,
          since: momentOf(since) as Date,
          readUpTo: momentOf(readUpTo),
        }))
    },
    async unfollow(name) {
      const text = nameText(name, 'follower')
      const answers = await kernel.readEach((schema) => stopFollowing(schema, text))
      return answers.some((rows) => textAnswer(rows) !== null)
    },
  }
}

function tell(
  event: Omit<FollowedEvent, 'durationMs' | 'error'> & { readonly error?: unknown },
  began: number,
): void {
  const durationMs = performance.now() - began
  publish(channels.ledgerFollowed, { error: undefined, ...event, durationMs })
}

async function named<T>(reading: Promise<T>): Promise<T> {
  try {
    return await reading
  } catch (error) {
    if (sqlStateOf(error) === movementsGone) {
      throw holdfastError('LEDGER_MOVEMENTS_GONE', { cause: error })
    }
    throw schemaMissing(error) ?? error
  }
}

class Reader<Tx> {
  readonly #kernel: Kernel<Tx>
  readonly #name: string
  readonly #book: string | undefined
  readonly #fromNow: boolean
  readonly #most: number
  readonly #amounts: AmountReader<AmountOf<AmountKind>>
  readonly #handler: FollowHandler<Tx, never>
  /** Primaries that know this follower. */
  readonly #known = new Set<Driver<Tx>>()

  constructor(
    kernel: Kernel<Tx>,
    options: FollowOptions<AmountKind>,
    handler: FollowHandler<Tx, never>,
  ) {
    const given = optionsGiven(options, followOptions)
    const { name, book, from = 'beginning', batch = 100, amounts = 'number' } = given
    this.#kernel = kernel
    this.#name = nameText(name, 'follower')
    this.#book = book === undefined ? undefined : nameText(book, 'book')
    if (from !== 'beginning' && from !== 'now') {
      throw invalid('from', "from must be 'beginning' or 'now'")
    }
    this.#fromNow = from === 'now'
    this.#most = countOf(batch, 'batch')
    this.#amounts = amountReader(amounts)
    assertFunction(handler, 'handler')
    this.#handler = handler
  }

  /** Everything that is new on a primary. `recentMs`: where there was an operation within so long. */
  async read(
    primary: Driver<Tx>,
    recentMs: number | undefined,
    isStopped: () => boolean,
  ): Promise<Followed> {
    return await named(this.#read(primary, recentMs, isStopped))
  }

  async #read(
    primary: Driver<Tx>,
    recentMs: number | undefined,
    isStopped: () => boolean,
  ): Promise<Followed> {
    if (!this.#known.has(primary)) await this.#enter(primary)
    const followed = { movements: 0, busy: false }
    for await (const movements of this.#readOn(primary, recentMs, isStopped)) {
      if (movements === undefined) followed.busy = true
      else followed.movements += movements
    }
    return followed
  }

  get #follower(): Follower {
    return { name: this.#name, book: this.#book }
  }

  async #enter(primary: Driver<Tx>): Promise<void> {
    const rows = await primary.alone.query(
      startFollowing(this.#kernel.schema, this.#name, this.#book, this.#fromNow),
    )
    if ((textAnswer(rows) ?? undefined) !== this.#book) {
      throw invalid('book', 'this name follows another book; take another name')
    }
    this.#known.add(primary)
  }

  /** How many were read in each transaction; undefined if somebody else reads. */
  async *#readOn(
    primary: Driver<Tx>,
    recentMs: number | undefined,
    isStopped: () => boolean,
  ): AsyncGenerator<number | undefined> {
    const { schema } = this.#kernel
    const began = performance.now()
    let after: StoredAccountId | undefined
    for (;;) {
      const rows = await primary.alone.query(
        unreadAccounts(schema, this.#follower, recentMs, after),
      )
      let accounts = jsonAnswer(rows) as StoredAccountId[]
      after = accounts.at(-1)
      if (after === undefined) break
      while (accounts.length > 0) {
        if (isStopped()) return
        const page = await this.#handOver(primary, accounts)
        yield page?.length
        if (page === undefined) return
        // A full page ended in the middle of an account, perhaps.
        const last = page.at(-1)
        accounts =
          page.length < this.#most
            ? []
            : accounts.slice(accounts.findIndex(([, account]) => account === last?.account))
      }
    }
    if (recentMs === undefined) {
      await primary.alone.query(
        noteFollowed(schema, this.#name, Math.ceil(performance.now() - began)),
      )
    }
  }

  async #handOver(
    primary: Driver<Tx>,
    accounts: readonly StoredAccountId[],
  ): Promise<readonly StoredFollowed[] | undefined> {
    const { schema } = this.#kernel
    return await runTransaction(
      primary,
      async (transaction) => {
        const rows = await transaction.query(
          followAccounts(schema, this.#follower, accounts, this.#most),
        )
        const page = jsonAnswer(rows) as readonly StoredFollowed[] | 'gone' | undefined
        if (page === 'gone') throw invalid('name', 'this name was forgotten by unfollow')
        if (page !== undefined && page.length > 0) {
          await this.#handler(
            transaction.native,
            page.map((stored) => followedOf(stored, this.#amounts)) as never,
          )
        }
        return page
      },
      { isolation: 'read committed' },
      undefined,
      'ledger',
    )
  }
}

function followedOf<A>(stored: StoredFollowed, amounts: AmountReader<A>): FollowedMovement<A> {
  const { account, seq, at, book, key, scope, before } = stored
  return {
    ...movementOf(stored, amounts),
    // With the time: an account that was forgotten and is used again counts anew.
    id: `${account}-${seq}-${at}`,
    book,
    key,
    scope,
    before: balanceOf(before, amounts),
  }
}
