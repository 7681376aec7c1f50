import type {
  Claimed,
  ClaimedRow,
  ClaimRequest,
  FinishItem,
  FinishState,
  FinishVerb,
  LeasedRows,
  LeaseSettings,
  Recovered,
} from '../../../claims/engine.ts'
import type { Driver, Executor, Transaction } from '../../../core/driver.ts'
import { holdfastError } from '../../../core/errors.ts'
import type { ClaimTable } from './claim-table.ts'
import { claimedRow, keyOf, leaseRows, pickRows, readClaimed } from './claims.ts'
import {
  changeClaims,
  freeRows,
  lookUp,
  pickStale,
  type RowState,
  statesOf,
  type Wanted,
  wantedRows,
} from './finish.ts'
import { inBatches, inLevels } from './in-levels.ts'
import { KnownTable } from './known-table.ts'
import { onlyOnce, shortly } from './sending.ts'

/** Some of the rows are locked by others, and have to be waited for in the order in which all are locked. */
class MustWait extends Error {
  readonly places: ReadonlySet<number>

  constructor(places: ReadonlySet<number>) {
    super()
    this.places = places
  }
}

class LeasedTable<Tx> implements LeasedRows<Tx> {
  readonly #driver: Driver<Tx>
  readonly #settings: LeaseSettings
  readonly #known: KnownTable<Tx>

  constructor(driver: Driver<Tx>, settings: LeaseSettings) {
    this.#driver = driver
    this.#settings = settings
    this.#known = new KnownTable(driver, settings)
  }

  async claim(transaction: Transaction<Tx> | undefined, request: ClaimRequest): Promise<Claimed> {
    return await this.#known.use(async (tableOn) => {
      const claim = async (on: Transaction<Tx>): Promise<Claimed> =>
        await this.#claimOn(on, await tableOn(on), request)
      return transaction === undefined
        ? await shortly(this.#driver, onlyOnce, claim)
        : await claim(transaction)
    })
  }

  async #claimOn(on: Executor, table: ClaimTable, request: ClaimRequest): Promise<Claimed> {
    const { layout, leaseMs } = this.#settings
    const picked = await inLevels(on, table, layout, request.limit, (level, limit) =>
      pickRows(table, layout, level, limit),
    )
    const keys = picked.map((row) => keyOf(layout, row))
    // The rows are ours: what is written now waits for nobody, so the lease begins after this.
    const sentMs = performance.now()
    const lease = { token: request.token, ms: leaseMs, holder: request.holder }
    const found = new Map<string, ClaimedRow>()
    for (const some of inBatches(keys)) {
      await on.query(leaseRows(table, layout, some, lease))
      for (const row of await on.query(readClaimed(table, layout, some, request.token))) {
        const claimed = claimedRow(layout, row)
        found.set(JSON.stringify(claimed.key), claimed)
      }
    }
    const rows = keys.map((key) => found.get(JSON.stringify(key)))
    return { rows: rows.filter((row) => row !== undefined), sentMs }
  }

  async finish(
    transaction: Transaction<Tx> | undefined,
    verb: FinishVerb,
    items: readonly FinishItem[],
    forMs: number,
  ): ReturnType<LeasedRows<Tx>['finish']> {
    return await this.#known.use(async (tableOn) => {
      if (transaction !== undefined) {
        const table = await tableOn(transaction)
        const how = verb === 'heartbeat' ? 'skip' : 'wait'
        // Others' locks are waited for at once: at REPEATABLE READ a look without a lock would show old rows.
        const states = await this.#finishOn(transaction, table, verb, items, how)
        return { states, doubted: false }
      }
      let doubted = false
      const onDoubt = (): void => {
        doubted = true
      }
      const send = async (waited?: ReadonlySet<number>): Promise<readonly FinishState[]> =>
        await shortly(this.#driver, { forMs, onDoubt }, async (on) => {
          const table = await tableOn(on)
          const how = waited === undefined ? 'skip' : 'wait'
          return await this.#finishOn(on, table, verb, items, how, waited)
        })
      try {
        return { states: await send(), doubted }
      } catch (error) {
        if (!(error instanceof MustWait)) throw error
        return { states: await send(error.places), doubted }
      }
    })
  }

  /** With `waited` only those are looked at: the others are lost. */
  async #finishOn(
    on: Executor,
    table: ClaimTable,
    verb: FinishVerb,
    items: readonly FinishItem[],
    how: 'wait' | 'skip',
    waited?: ReadonlySet<number>,
  ): Promise<readonly FinishState[]> {
    const { layout, leaseMs } = this.#settings
    const all = wantedRows(table, items)
    const wanted = waited === undefined ? all : all.filter(({ at }) => waited.has(at))
    const found = new Map<number, RowState>()
    const look = async (those: readonly Wanted[], by: 'wait' | 'skip' | 'plain'): Promise<void> => {
      for (const some of inBatches(those)) {
        const rows = await on.query(lookUp(table, layout, some, by))
        for (const [at, state] of statesOf(some, rows)) found.set(at, state)
      }
    }
    await look(wanted, how)
    const busy = new Set<number>()
    const passedOver = wanted.filter(({ at }) => !found.has(at))
    if (how === 'skip' && passedOver.length > 0) {
      await look(passedOver, 'plain')
      for (const { at } of passedOver) if (isOurs(found.get(at))) busy.add(at)
      // A heartbeat waits for nobody. What is done already needs no lock.
      if (verb !== 'heartbeat' && busy.size > 0) {
        const notLost = wanted.filter(({ at }) => (found.get(at) ?? 'lost') !== 'lost')
        throw new MustWait(new Set(notLost.map(({ at }) => at)))
      }
    }
    const ours = wanted.filter(({ at }) => isOurs(found.get(at)) && !busy.has(at))
    for (const some of inBatches(ours)) {
      const changing = some.map(({ at }) => items[at] as FinishItem)
      for (const statement of changeClaims(table, layout, verb, changing, leaseMs)) {
        await on.query(statement)
      }
    }
    return items.map((_, at) => (busy.has(at) ? 'busy' : endOf(verb, found.get(at))))
  }

  async recover(limit: number): Promise<Recovered> {
    const { layout } = this.#settings
    return await this.#known.use(
      async (tableOn) =>
        await shortly(this.#driver, onlyOnce, async (on) => {
          const table = await tableOn(on)
          const stale = await on.query(pickStale(table, layout, limit))
          for (const some of inBatches(stale.map((row) => keyOf(layout, row)))) {
            await on.query(freeRows(table, layout, some))
          }
          const dead = stale.filter(({ '#dead': isDead }) => Number(isDead) === 1).length
          return { freed: stale.length, dead }
        }),
    )
  }
}

function isOurs(state: RowState | undefined): boolean {
  return state === 'ours' || state === 'spent'
}

function endOf(verb: FinishVerb, state: RowState | undefined): FinishState {
  if (state === 'done') return verb === 'complete' ? 'kept' : 'lost'
  if (!isOurs(state)) return 'lost'
  return verb === 'fail' && state === 'spent' ? 'dead' : 'kept'
}

/** Each in a short transaction, or in that of the caller. */
export function leasedRows<Tx>(driver: Driver<Tx>, settings: LeaseSettings): LeasedRows<Tx> {
  if (settings.perKey !== undefined) throw notOffered('perKey')
  if (settings.bucket !== undefined) throw notOffered('bucket')
  return new LeasedTable(driver, settings)
}

export function notOffered(subject: string): Error {
  return holdfastError('ENGINE_NOT_OFFERED', { details: { subject } })
}
