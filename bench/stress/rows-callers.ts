/** The program of one process that changes accounts; see rows.ts. */
import { randomUUID } from 'node:crypto'
import { isHoldfastError } from '../../packages/holdfast/src/core/errors.ts'
import { randomFor } from '../harness/random.ts'
import { joinTeam } from '../harness/team-member.ts'
import { openRowStore, type RowStore } from './rows-store.ts'
import type { RowOrder, RowReport, RowSetup, RowWay } from './rows.ts'

type Change = (store: RowStore<unknown>, account: number, id: string) => Promise<unknown>

/** Lets everybody else of this process go on. */
const others = (): Promise<void> => new Promise(setImmediate)

/** One more, and a line about it: by what was read under the lock, or by the version that was read. */
const ways: Readonly<Record<RowWay, Change>> = {
  lock: ({ hf, write, line }, account, id) =>
    hf.transaction(async (tx) => {
      const { rows } = await hf.rows.lock<{ v: number }>(tx, 'account', [account], { wait: '30 s' })
      await others()
      await write(tx, account, Number(rows[0]?.v) + 1)
      await line(tx, account, id)
    }),
  optimistic: ({ hf, read, line }, account, id) =>
    hf.rows.optimistic(
      async (tx) => {
        const { v, version } = await read(tx, account)
        await others()
        await hf.rows.updateVersioned(tx, 'account', account, { version, set: { v: v + 1 } })
        await line(tx, account, id)
      },
      { retry: { attempts: 50, budgetMs: 20_000 } },
    ),
  'version check': ({ hf, write, line }, account, id) =>
    hf.rows.withVersionCheck<{ v: number }, number>('account', account, {
      work: async ({ v }) => {
        await others()
        return Number(v) + 1
      },
      write: async (tx, _, v) => {
        await write(tx, account, v)
        await line(tx, account, id)
      },
    }),
  /** Controls: the lock comes after what is relied on was read; nobody looks at the version. */
  'read before lock': ({ hf, read, write, line }, account, id) =>
    hf.transaction(
      async (tx) => {
        const { v } = await read(tx, account)
        await others()
        await hf.rows.lock(tx, 'account', [account], { wait: '30 s' })
        await write(tx, account, v + 1)
        await line(tx, account, id)
      },
      { isolation: 'read committed' },
    ),
  'no version': ({ hf, read, write, line }, account, id) =>
    hf.transaction(
      async (tx) => {
        const { v } = await read(tx, account)
        await others()
        await write(tx, account, v + 1)
        await line(tx, account, id)
      },
      { isolation: 'read committed' },
    ),
}

joinTeam<RowSetup, RowOrder, RowReport>(async ({ url, seed, callers, times, accounts }, index) => {
  // A connection for every caller: none waits for another's.
  const store = await openRowStore(url, callers)
  return {
    async ready({ round, way }) {
      const done: string[] = []
      const refused: string[] = []
      const troubles: string[] = []
      const caller = async (_: unknown, number: number): Promise<void> => {
        const random = randomFor(seed + round, index * callers + number)
        for (let at = 0; at < times; at += 1) {
          const id = randomUUID()
          try {
            await ways[way](store, random.integer(0, accounts - 1), id)
            done.push(id)
          } catch (error) {
            // It was told that it has lost, and has to begin again.
            if (isHoldfastError(error, 'ROWS_VERSION_CONFLICT')) refused.push(id)
            else troubles.push(String(error))
          }
        }
      }
      return async () => {
        await Promise.all(Array.from({ length: callers }, caller))
        return { done, refused, troubles }
      }
    },
    close: async () => await store[Symbol.asyncDispose](),
  }
})
