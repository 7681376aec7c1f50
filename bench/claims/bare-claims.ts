import { replaceThere } from '@holdfast/testkit'
import { leaseSettings } from '../../packages/holdfast/src/claims/layout.ts'
import { claimRows } from '../../packages/holdfast/src/engines/postgres/claims/claims.ts'
import { finishRows } from '../../packages/holdfast/src/engines/postgres/claims/finish.ts'
import type { Side } from '../harness/compare.ts'
import { pgbench } from '../harness/pgbench.ts'
import { doneIn, refill, tasksOptions } from './claims-ground.ts'

/** The very statements of the room, sent by pgbench, prepared; the answer of one is the next one's input. */
function scriptFor(table: string, batch: number): string {
  const { layout, leaseMs } = leaseSettings(tasksOptions(table), undefined)
  const token = `('00000000-0000-4000-8000-' || lpad(:number::text, 12, '0'))`
  const claim = claimRows(
    layout,
    { limit: batch, joined: false, turns: undefined },
    { token: '', ms: leaseMs, holder: '' },
  )
  // pgbench can keep one row, so the keys come as the JSON that completing takes, the rows as a text.
  const answer = replaceThere(
    'a claim',
    claim.text,
    /SELECT \* FROM "#claimed" ORDER BY "#at"::[\w.]+$/,
    `SELECT coalesce(jsonb_agg(jsonb_build_object('id', "#key0", '#token', ${token})), '[]')::text AS items, string_agg("#claimed"::text, '') AS rows FROM "#claimed"`,
  )
  const claiming = [String(batch), token, String(leaseMs)].reduce(
    (text, value, place) =>
      replaceThere(
        'a claim',
        text,
        new RegExp(`\\$${place + 1}::(pg_catalog\\.)?text`, 'g'),
        value,
      ),
    answer,
  )
  const items = Array.from({ length: batch }, () => ({ key: ['0'], token: '' }))
  const completing = finishRows(layout, 'complete', items, leaseMs).text.replaceAll('$1', ':items')
  return `\\set number random(1, 999999999999)\n${claiming}\n\\gset\n${completing};\n`
}

/** Claims and completes `batch` rows at a time, without us. */
export function bareClaims(
  binary: string,
  task: {
    readonly url: string
    readonly table: string
    readonly batch: number
    readonly clients: number
  },
): Side {
  const { url, table, batch, clients } = task
  const script = scriptFor(table, batch)
  let perSecond = 40_000
  return {
    label: `the same statements by pgbench, prepared, ${clients} clients, ${batch} rows a claim`,
    async measure(sliceMs) {
      const seconds = Math.max(1, Math.round(sliceMs / 1_000))
      for (;;) {
        const rows = perSecond * seconds
        await refill(url, table, rows)
        const rate = await pgbench(binary, { url, script, clients, seconds })
        // Whatever ran on an empty table was no claim.
        if ((await doneIn(url, table)) + clients * batch < rows) return rate
        perSecond *= 2
      }
    },
  }
}
