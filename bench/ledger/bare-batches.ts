import { withClient } from '@holdfast/testkit'
import type { Side } from '../harness/compare.ts'
import { pgbench } from '../harness/pgbench.ts'
import { book, limit } from './open-ledger.ts'

/** Which batches pgbench sends. */
export interface BareBatches {
  readonly url: string
  /** Lines in a call. */
  readonly size: number
  /** Calls under way at once. */
  readonly clients: number
  /** Keys `key-<first>` to `key-<last>`, evenly. */
  readonly first: number
  readonly last: number
  readonly name: string
}

/** Different batches, so that the keys are hit evenly. */
const linesPrepared = 200_000
/** Operation ids made ready for a second of pgbench, to begin with. */
const idsPerSecond = 50_000

/**
 * `apply_plain` driven by pgbench, without a client that builds requests or reads answers. Everything is
 * made beforehand and lies in tables: the lines, and before each slice the operation ids, which must
 * be new ones.
 */
export async function bareSide(binary: string, batches: BareBatches): Promise<Side> {
  const { url, size, clients, first, last, name } = batches
  const count = first === last ? 1 : Math.ceil(linesPrepared / size)
  await withClient(url, async (client) => {
    await client.query('SET search_path = holdfast')
    await client.query(`CREATE TABLE public.${name} (
      id int PRIMARY KEY, buckets smallint[], accounts uuid[], kinds smallint[], amounts bigint[],
      allowances bigint[], flags integer[])`)
    await client.query(`CREATE TABLE public.${name}_ids (id int PRIMARY KEY, ids uuid[])`)
    await client.query(`CREATE SEQUENCE public.${name}_next`)
    // Reading them is not to cost decompression.
    const plain = ['buckets', 'accounts', 'kinds', 'amounts', 'allowances', 'flags']
    for (const column of plain) {
      await client.query(`ALTER TABLE public.${name} ALTER ${column} SET STORAGE EXTERNAL`)
    }
    await client.query(`ALTER TABLE public.${name}_ids ALTER ids SET STORAGE EXTERNAL`)
    await client.query(
      `INSERT INTO public.${name}
       SELECT batch, array_agg(bucket_of(key) ORDER BY line),
         array_agg(key_account(key, $5, key) ORDER BY line), array_agg(2::smallint),
         array_agg(1::bigint), array_agg($6::bigint), array_agg(0)
       FROM (
         SELECT batch, line, 'key-' || floor($3::int + random() * ($4::int - $3::int + 1))::int AS key
         FROM generate_series(1, $1::int) AS batch, generate_series(1, $2::int) AS line
       ) x
       GROUP BY batch`,
      [count, size, first, last, book, limit],
    )
    await client.query(`VACUUM (ANALYZE) public.${name}`)
  })
  const script = scriptFor(name, count)
  let perSecond = Math.ceil(idsPerSecond / size)
  return {
    label: `apply_plain() alone, ${size} lines a call, by pgbench on ${clients} connection${clients > 1 ? 's' : ''}`,
    async measure(sliceMs) {
      const seconds = Math.max(1, Math.round(sliceMs / 1_000))
      for (;;) {
        const ready = perSecond * seconds
        await makeIds(url, name, ready, size)
        const rate = await pgbench(binary, { url, script, clients, seconds })
        if ((await taken(url, name)) <= ready) return rate * size
        // Whatever ran without ids was no call at all.
        perSecond *= 2
      }
    },
  }
}

async function makeIds(url: string, name: string, batches: number, size: number): Promise<void> {
  await withClient(url, async (client) => {
    await client.query(`TRUNCATE public.${name}_ids`)
    await client.query(
      `INSERT INTO public.${name}_ids
       SELECT batch, array_agg(id)
       FROM (
         SELECT batch, gen_random_uuid() AS id
         FROM generate_series(1, $1::int) AS batch, generate_series(1, $2::int) AS line
       ) x
       GROUP BY batch`,
      [batches, size],
    )
    await client.query(`VACUUM (ANALYZE) public.${name}_ids`)
    await client.query(`SELECT setval('public.${name}_next', 1, false)`)
  })
}

/** The number of the last batch of ids that was asked for. */
async function taken(url: string, name: string): Promise<number> {
  return await withClient(url, async (client) => {
    const { rows } = await client.query<{ last: string }>(
      `SELECT last_value AS last FROM public.${name}_next`,
    )
    return Number(rows[0]?.last)
  })
}

function scriptFor(name: string, count: number): string {
  // Statements of a pgbench script may span lines; the semicolon ends them.
  return `\\set batch random(1, ${count})
SELECT holdfast.apply_plain(
  buckets => b.buckets, bases => b.accounts, owners => NULL, ids => f.ids, operation_ids => NULL,
  kinds => b.kinds, amounts => b.amounts, allowances => b.allowances, flags => b.flags,
  notes => NULL, units => NULL, zones => NULL, ttls_ms => NULL, refs => NULL)
FROM public.${name} b, public.${name}_ids f
WHERE b.id = :batch AND f.id = (SELECT nextval('public.${name}_next'));
`
}
