import type pg from 'pg'
import type { Holdfast } from '../../src/index.ts'
import type { Verdict } from '../../src/ledger/verdict.ts'

/** One operation with everything that names it, so that another process can do the same again. */
export interface Work {
  readonly what: 'consume' | 'hold' | 'settle' | 'release' | 'extend' | 'refund' | 'several'
  readonly key: string
  readonly operationId: string
  /** The hold that is ended or extended. */
  readonly holdId?: string
  /** The operation that is refunded. */
  readonly of?: string
}

export const works: readonly Work['what'][] = [
  'consume',
  'hold',
  'settle',
  'release',
  'extend',
  'refund',
  'several',
]

/** What the caller writes beside it, in the same transaction. */
export const callersTable = 'CREATE TABLE done (operation text PRIMARY KEY)'

/** Compares the books of a process with the database, which it otherwise does when it uses them first. */
export async function knowBooks(hf: Holdfast<pg.PoolClient>): Promise<void> {
  for (const name of ['work', 'other work']) {
    await hf.quota({ name, limit: 100, per: 'lifetime' }).peek('anybody')
  }
}

/** Does it once: alone, or in a transaction of the caller's. */
export async function doWork(
  hf: Holdfast<pg.PoolClient>,
  work: Work,
  tx?: pg.PoolClient,
): Promise<Verdict<number>> {
  const { what, key, operationId, holdId = '', of = '' } = work
  const quota = hf.quota({ name: 'work', limit: 100, per: 'lifetime' })
  const other = hf.quota({ name: 'other work', limit: 100, per: 'lifetime' })
  const joined = tx === undefined ? [] : [tx]
  const call = async (method: string, ...args: unknown[]): Promise<Verdict<number>> =>
    (await (quota as unknown as Record<string, (...all: unknown[]) => Promise<Verdict<number>>>)[
      method
    ]?.(...joined, ...args)) as Verdict<number>
  if (what === 'consume') return await call('consume', key, 5, { operationId })
  if (what === 'hold') return await call('hold', key, 5, { operationId, ttl: '1 h' })
  if (what === 'settle') return await call('settle', holdId, 3)
  if (what === 'release') return await call('release', holdId)
  if (what === 'extend') return await call('extend', holdId, '3 h')
  if (what === 'refund') return await call('refund', key, 2, { operationId, of })
  const lines = [await quota.line(key, 5), await other.line(key, 7)]
  const options = { operationId, scope: key }
  return tx === undefined
    ? await hf.ledger.apply(lines, options)
    : await hf.ledger.apply(tx, lines, options)
}

/** The caller's transaction: its own row and the operation together, each once. */
export async function doTogether(
  hf: Holdfast<pg.PoolClient>,
  work: Work,
): Promise<Verdict<number>> {
  return await hf.transaction(async (tx) => {
    const verdict = await doWork(hf, work, tx)
    await tx.query('INSERT INTO done VALUES ($1) ON CONFLICT DO NOTHING', [work.operationId])
    return verdict
  })
}
