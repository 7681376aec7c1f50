import type {
  ClaimedRow,
  FinishState,
  LeasedRows,
  LeaseSettings,
  OverTable,
} from '../../../claims/engine.ts'
import type { Driver, Executor, Transaction } from '../../../core/driver.ts'
import { holdfastError } from '../../../core/errors.ts'
import { sqliteDriverOf, sqliteOf } from '../driver.ts'
import { unfit } from '../file-fit.ts'
import { isBusy, isOldSnapshot, isReadOnly } from '../result-code.ts'
import { shortTransaction } from '../tx/short-call.ts'
import { writerTimeout } from '../tx/taking-writer.ts'
import { anyDue, claimShare } from './claims.ts'
import { finishRow, recoverRow, staleRows } from './finish.ts'
import { affectedBy } from '../driver.ts'
import { keyIn, type LeaseLayout, seeing, touch } from './layout.ts'
import { noteClaims, TurnOrder } from './turns.ts'

/** How long a caller's transaction waits for the right to write, unless it has it. */
const withinMs = 10_000

/**
 * Has a transaction take the right to write to the file, which is what keeps rows as they are read. A statement of it on
 * the caller's table does that, so that nothing of ours has to be there.
 *
 * @throws CLAIM_STALE_SNAPSHOT, LOCK_TIMEOUT, ENGINE_FILE_UNFIT
 */
export async function holdFile<Tx>(
  driver: Driver<Tx>,
  transaction: Transaction<Tx>,
  { layout }: Pick<OverTable, 'layout'>,
): Promise<void> {
  const { table } = layout.table
  const terms = { attempt: false, limitMs: withinMs, names: [table], by: touch(layout) }
  try {
    await sqliteOf(transaction).takeWriter(terms)
  } catch (error) {
    if (isOldSnapshot(error)) throw holdfastError('CLAIM_STALE_SNAPSHOT', { cause: error })
    if (isReadOnly(error)) throw unfit('the connection may only read', error)
    if (!isBusy(error)) throw error
    throw writerTimeout(table, error, sqliteDriverOf(driver).writer().holders())
  }
}

/** Each in a short transaction, or in the one that is given. */
export function leasedRows<Tx>(driver: Driver<Tx>, settings: LeaseSettings): LeasedRows<Tx> {
  const { layout: given, leaseMs, perKey } = settings
  const layoutOn = seeing(given)
  const turns = perKey === undefined ? undefined : new TurnOrder(perKey)
  /** A look that waits for nobody first: those who find nothing keep nobody from writing. */
  const within = async <T>(
    transaction: Transaction<Tx> | undefined,
    run: (on: Executor, layout: LeaseLayout) => Promise<T>,
  ): Promise<T> => {
    if (transaction === undefined)
      return await shortTransaction(driver, 0, async (on) => await run(on, await layoutOn(on)))
    await holdFile(driver, transaction, settings)
    return await run(transaction, await layoutOn(transaction))
  }
  return {
    async claim(transaction, request) {
      if (transaction === undefined) {
        const layout = await layoutOn(driver.alone)
        const [due] = await driver.alone.query(anyDue(layout))
        if (due === undefined) return { rows: [], sentMs: performance.now() }
      }
      return await within(transaction, async (on, layout) => {
        const sentMs = performance.now()
        const { limit } = request
        const shares = (await turns?.shares(on, layout, limit)) ?? [{ limit }]
        const rows: ClaimedRow[] = []
        for (const share of shares) {
          const claimed = await claimShare(on, layout, share, request, leaseMs)
          rows.push(...claimed)
          if (perKey?.rate !== undefined && share.turn !== undefined)
            await noteClaims(on, perKey.rate, share.turn.key, claimed.length)
        }
        return { rows, sentMs }
      })
    },
    async finish(transaction, verb, items) {
      return await within(transaction, async (on, layout) => {
        const states: FinishState[] = []
        for (const item of items) states.push(await finishRow(on, layout, verb, item, leaseMs))
        return { states, doubted: false }
      })
    },
    async recover(limit) {
      const layout = await layoutOn(driver.alone)
      const [stale] = await driver.alone.query(staleRows(layout, 1))
      if (stale === undefined) return { freed: 0, dead: 0 }
      return await within(undefined, async (on) => {
        let [freed, dead] = [0, 0]
        for (const found of await on.query(staleRows(layout, limit))) {
          const changed = await on.query(recoverRow(layout, keyIn(layout, found)))
          if (affectedBy(changed) === 0) continue
          freed += 1
          if (Number(found['spent']) > 0) dead += 1
        }
        return { freed, dead }
      })
    },
  }
}
