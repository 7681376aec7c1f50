import pg from 'pg'
import { afterAll, beforeAll } from 'vitest'
import { fromPg } from '../../../../holdfast/src/drivers/pg.ts'
import { createHoldfast, type Holdfast } from '../../../../holdfast/src/index.ts'
import type { BookDeclaration } from '../../../../holdfast/src/ledger/index.ts'
import { migrateFiles } from '../../../../holdfast/src/schema/migrate.ts'
import { ownFiles, type SchemaFiles } from '../../../../holdfast/src/schema/schema-files.ts'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import { brokenInvariants } from '../../../../holdfast/test/support/ledger-invariants.ts'
import { asSuperuser } from '../../../../holdfast/test/support/ledger-past.ts'
import type { Report } from '../../../src/core/model.ts'
import { explore, type ExploreOptions } from '../../../src/explore.ts'
import { budget } from './expectations.ts'

export type Tx = pg.PoolClient
export type OwnHoldfast = Holdfast<Tx>

/** What happened before the flows begin. */
export interface Past {
  /** Through the library. */
  readonly before?: (hf: OwnHoldfast) => Promise<unknown>
  /** Afterwards, past every trigger: what only time can do. */
  readonly later?: string
}

export interface Explored extends Omit<ExploreOptions, 'url' | 'seed'>, Past {}

/** A ledger in a database of its own, brought back to the same state before every schedule. */
export interface LedgerStage {
  explore(options: Explored): Promise<Report>
}

/** How such a ledger is installed, if not as we ship it. */
export interface Weakened {
  readonly files: SchemaFiles
  /** Run after it. */
  readonly later?: string
}

/** Every plan over the movements looks at all months; this one and the next are enough here. */
const fewMonths = `
  DO $$
  DECLARE
    month text;
  BEGIN
    FOR month IN
      SELECT relname FROM pg_class JOIN pg_inherits ON inhrelid = pg_class.oid
      WHERE inhparent = 'holdfast.movement'::regclass AND relname ~ '_\\d{6}$'
      ORDER BY relname OFFSET 2
    LOOP
      EXECUTE format('DROP TABLE holdfast.%I', month);
    END LOOP;
  END $$`

const books: Readonly<Record<string, BookDeclaration>> = {
  ever: { as: 'quota', per: 'lifetime' },
  month: { as: 'quota', per: 'month' },
  calls: { as: 'quota', per: 'lifetime' },
  credits: { as: 'credits' },
  stock: { as: 'stock' },
}

const tables = ['account', 'balance', 'movement', 'operation', 'hold', 'credit_grant', 'allocation']
const emptying = tables.map((table) => `DELETE FROM holdfast.${table}`).join('; ')

/**
 * Every run is judged thrice: it must have ended as some serial order does, in tables and answers;
 * the ledger's invariants must hold; and what the test itself asks for.
 *
 * A call of our SQL functions is one step, and Sync-hold makes an autocommit call two: it is executed,
 * and later committed. So others find its row locks, and what it has not committed, at any place of
 * theirs; they wait inside their own calls and go on from there. What happens between two statements
 * *inside* one function while nobody holds a lock is not cut further.
 */
export function ledgerStage(weakened?: () => Weakened): LedgerStage {
  let url = ''
  let observer: pg.Pool
  beforeAll(async () => {
    url = (await testDatabase()).directUrl
    observer = new pg.Pool({ connectionString: url, max: 2 })
    const { files, later = '' } = weakened?.() ?? { files: ownFiles() }
    await migrateFiles(fromPg(observer), files)
    await observer.query(fewMonths)
    if (later !== '') await observer.query(later)
    // What a book is, is written down at its first use, and every flow is a process that asks for it.
    const { ledger } = createHoldfast(fromPg(observer))
    for (const [book, declaration] of Object.entries(books)) {
      await ledger.redeclare(book, declaration)
    }
  })
  afterAll(async () => {
    await observer.end()
  })
  return {
    async explore({ before, later, ...options }) {
      await asSuperuser(observer, emptying)
      await before?.(createHoldfast(fromPg(observer)))
      if (later !== undefined) await asSuperuser(observer, later)
      const state = await restoring(observer)
      return await explore({
        budget,
        // A remembered refusal repeats the moment of the answer.
        oracle: {
          tables: tables.map((table) => `holdfast.${table}`),
          ignore: ['operation.refusal'],
        },
        // Its answers are promised, refusals included.
        outcome: (end) => ('answer' in end ? 'accepted' : undefined),
        onProgress: () => undefined,
        // Others could act inside; see above.
        functions: 'atomic',
        ...options,
        url,
        seed: ({ query }) => query(state),
        async invariant(context) {
          const broken = await brokenInvariants(observer)
          if (broken.length > 0) throw new Error(broken.join('; '))
          await options.invariant?.(context)
        },
      })
    },
  }
}

/** One text that makes the ledger what it is now. */
async function restoring(observer: pg.Pool): Promise<string> {
  const inserts: string[] = []
  for (const table of tables) {
    const name = `holdfast.${table}`
    const { rows } = await observer.query<{ columns: string; all: string | null }>(
      `SELECT (SELECT jsonb_agg(t)::text FROM ${name} t) AS all, string_agg(attname, ', ') AS columns
       FROM pg_attribute
       WHERE attrelid = '${name}'::regclass AND attnum > 0 AND attgenerated = ''`,
    )
    const [row] = rows
    if (!row?.all) continue
    inserts.push(
      `INSERT INTO ${name} (${row.columns}) SELECT ${row.columns}
       FROM jsonb_populate_recordset(NULL::${name}, ${pg.escapeLiteral(row.all)})`,
    )
  }
  const begin = 'BEGIN; SET LOCAL session_replication_role = replica'
  return [begin, emptying, ...inserts, 'COMMIT'].join('; ')
}
