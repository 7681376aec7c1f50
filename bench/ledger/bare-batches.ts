import { withClient } from '@holdfast/testkit'
import type { Side } from '../harness/compare.ts'
import { openPool } from '../harness/open-pool.ts'
import { book, limit } from './open-ledger.ts'

/** Which batches are sent. */
export interface BareBatches {
  readonly url: string
  /** The function that applies them. */
  readonly calls: BareCalls
  /** Lines in a call. */
  readonly size: number
  /** Calls under way at once. */
  readonly clients: number
  /** Keys `key-<first>` to `key-<last>`, evenly. */
  readonly first: number
  readonly last: number
  readonly name: string
}

/** A function of ours, and how it is called with what lies ready. */
export interface BareCalls {
  readonly name: string
  /** `b` are the lines of a batch, `f` its operation ids. */
  readonly text: string
}

/** The function as it is called for lines of any plain kind. */
export const plainCalls: BareCalls = {
  name: 'apply_plain()',
  text: `holdfast.apply_plain(
    buckets => b.buckets, bases => b.accounts, owners => NULL, ids => f.ids, operation_ids => NULL,
    kinds => b.kinds, amounts => b.amounts, allowances => b.allowances, flags => b.flags,
    notes => NULL, units => NULL, zones => NULL, ttls_ms => NULL, refs => NULL)`,
}

/**
 * The function as it is called for lines whose ids are new, with what is the same in all of them sent once: as we do.
 * One key is one account.
 */
export function newCalls(hot: boolean): BareCalls {
  const first = (column: string): string => `b.${column}[1:1]`
  return {
    name: 'apply_new()',
    text: `holdfast.apply_new(
      buckets => ${hot ? first('buckets') : 'b.buckets'}, bases => ${hot ? first('accounts') : 'b.accounts'},
      ids => f.ids, kinds => ${first('kinds')}, amounts => ${first('amounts')}, allowances => ${first('allowances')},
      owners => NULL, operation_ids => NULL)`,
  }
}

/** Different batches, so that the keys are hit evenly. */
const linesPrepared = 200_000
/** Operation ids made ready for a slice, to begin with. */
const fewestIds = 60_000

/**
 * Batches without a client that builds requests or reads answers. Everything is made beforehand and lies in tables: the
 * lines, and before each slice the operation ids, which must be new ones. What is left to send is the number of a batch,
 * on connections that stay open, to a statement that is prepared.
 */
export async function bareSide(batches: BareBatches): Promise<Side & AsyncDisposable> {
  const { url, calls, size, clients, first, last, name } = batches
  const count = first === last ? 1 : Math.ceil(linesPrepared / size)
  await withClient(url, async (client) => {
    await client.query('SET search_path = holdfast')
    await client.query(`CREATE TABLE public.${name} (
      id int PRIMARY KEY, buckets smallint[], accounts uuid[], kinds smallint[], amounts bigint[],
      allowances bigint[], flags integer[])`)
    await client.query(`CREATE TABLE public.${name}_ids (id int PRIMARY KEY, ids uuid[])`)
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
  const pool = await openPool(url, clients)
  const text = `SELECT ${calls.text} IS NOT NULL AS done FROM public.${name} b, public.${name}_ids f
    WHERE b.id = $1 AND f.id = $2`
  const call = async (batch: number): Promise<void> => {
    const values = [1 + Math.floor(Math.random() * count), batch]
    const { rowCount } = await pool.query({ name, text, values })
    if (rowCount !== 1) throw new Error('there is no such batch')
  }
  const fewest = Math.ceil(fewestIds / size)
  let [ready, used] = [0, 0]
  return {
    label: `${calls.name} alone, ${size} lines a call, on ${clients} connection${clients > 1 ? 's' : ''}`,
    async scene() {
      const enough = used === ready ? used * 3 : Math.ceil(used * 1.5)
      ready = Math.max(fewest, enough)
      used = 0
      await makeIds(url, name, ready, size)
      return async () => {}
    },
    async measure(sliceMs) {
      const began = performance.now()
      const until = began + sliceMs
      const worker = async (): Promise<void> => {
        // Whatever ran without ids would be no call at all.
        while (performance.now() < until && used < ready) await call((used += 1))
      }
      await Promise.all(Array.from({ length: clients }, worker))
      return (used * size * 1_000) / (performance.now() - began)
    },
    [Symbol.asyncDispose]: async () => await pool.end(),
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
  })
}
