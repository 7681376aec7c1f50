/** Hunts in flows of the table: a suite that calls each of them once, and nothing says which two race. */
import pg from 'pg'
import { explore } from '../../packages/race/src/explore.ts'
import {
  call,
  type HuntedPair,
  type HuntProgress,
  type HuntReport,
} from '../../packages/race/src/hunt.ts'
import { type HuntParts, wholeHunt } from '../../packages/race/src/hunt/hunt-calls.ts'
import { runHunt } from '../../packages/race/src/hunt/run-hunt.ts'
import { record } from '../../packages/race/src/record.ts'
import type { Attack } from './attack.ts'
import { cartAttacks } from './cart.ts'
import { stockAttacks } from './stock.ts'
import { voucherAttacks } from './voucher.ts'

export const attacks: readonly Attack[] = [...stockAttacks, ...voucherAttacks, ...cartAttacks]

interface Hunting {
  readonly among?: readonly Attack[]
  /** In place of the whole hunt: a lesser one. */
  readonly parts?: Partial<HuntParts>
  readonly onProgress?: (progress: HuntProgress) => void
}

/** In an empty database. `instrument(pg)` was called before. */
export async function huntAttacks(
  url: string,
  { among = attacks, parts, onProgress }: Hunting = {},
): Promise<HuntReport> {
  const pool = new pg.Pool({ connectionString: url })
  try {
    for (const { tables } of among) await pool.query(tables)
    return await runHunt(
      { ...wholeHunt({ explore, record }), ...parts },
      {
        url,
        suite: async () => {
          for (const { name, run, values } of among.flatMap(({ calls }) => calls)) {
            await call(name, (...sent: unknown[]) => run(pool, ...sent), ...values)
          }
        },
        budget: { ms: 1_800_000, pairMs: 30_000 },
        ...(onProgress && { onProgress }),
      },
    )
  } finally {
    await pool.end()
  }
}

/** What became of its pair; undefined if it was not proposed. */
export function pairOf({ pairs }: HuntReport, { pair }: Attack): HuntedPair | undefined {
  return pairs.find(({ calls }) => calls.toSorted().join() === pair.toSorted().join())
}
