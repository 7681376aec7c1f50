import { readFileSync } from 'node:fs'
import type pg from 'pg'
import { bucketOf } from '../../packages/holdfast/src/core/bucket.ts'
import { auditOf } from '../ledger/audit-of.ts'
import { type AppLine, seatsOfKey } from './shards-model.ts'
import { ownersOf } from './shards-cluster.ts'

/** What is in the tables of the server that has a bucket. */
interface Kept {
  readonly movements: ReadonlyMap<string, number>
  readonly effects: ReadonlyMap<string, number>
}

/** Servers that buckets are on, by their names. */
export interface Primaries {
  readonly urls: Readonly<Record<string, string>>
  readonly pools: Readonly<Record<string, pg.Pool>>
}

/** What should not be, given what applications were told; one sentence each. */
export async function checkHistories(
  cluster: Primaries,
  keys: readonly string[],
  files: readonly string[],
): Promise<{ readonly violations: string[]; readonly operations: number }> {
  const violations: string[] = []
  const names = Object.keys(cluster.pools)
  const lines = files.flatMap(linesOf)
  const begun = new Map(lines.map((line) => [line.id, line]))
  const ended = new Map(
    lines.filter(({ outcome }) => outcome !== 'begun').map((line) => [line.id, line]),
  )
  for (const key of keys) {
    const bucket = bucketOf(key)
    const owners = await ownersOf(cluster, bucket)
    const [owner] = owners
    if (owner === undefined || owners.length !== 1) {
      violations.push(`bucket ${bucket} is at ${owners.length} servers`)
      continue
    }
    for (const other of names.filter((name) => name !== owner)) {
      const left = await keptOf(cluster, other, bucket)
      if (left.movements.size + left.effects.size > 0) {
        violations.push(`bucket ${bucket} left rows at ${other}`)
      }
    }
    const kept = await keptOf(cluster, owner, bucket)
    violations.push(...judge(key, kept, begun, ended))
  }
  for (const name of names) {
    const { found, problems } = await auditOf(cluster.urls[name] as string)
    if (found > 0)
      violations.push(`audit of ${name}: ${found} problems, ${problems[0]?.what ?? ''}`)
  }
  return { violations, operations: ended.size }
}

function judge(
  key: string,
  { movements, effects }: Kept,
  begun: ReadonlyMap<string, AppLine>,
  ended: ReadonlyMap<string, AppLine>,
): string[] {
  const wrong: string[] = []
  let seats = 0
  for (const line of begun.values()) {
    if (line.key !== key) continue
    const outcome = ended.get(line.id)?.outcome
    const times = (line.kind === 'once' ? effects : movements).get(line.id) ?? 0
    // A hold and what settles it have the same id.
    const full = line.kind === 'hold' ? 2 : 1
    if (outcome === 'ok' && times < full) wrong.push(`${line.kind} ${line.id} was lost`)
    if (outcome === 'no' && times > 0)
      wrong.push(`${line.kind} ${line.id} was refused and is there`)
    if (times > full) wrong.push(`${line.kind} ${line.id} is there ${times} times`)
    if (line.kind === 'seat') seats += times
  }
  if (seats > seatsOfKey) wrong.push(`${seats} of ${seatsOfKey} seats of ${key} were given out`)
  for (const id of [...movements.keys(), ...effects.keys()]) {
    if (!begun.has(id)) wrong.push(`${id} is there and nobody began it`)
  }
  return wrong
}

async function keptOf(cluster: Primaries, name: string, bucket: number): Promise<Kept> {
  const counted = async (sql: string): Promise<ReadonlyMap<string, number>> => {
    const { rows } = await (cluster.pools[name] as pg.Pool).query<{ id: string; times: number }>(
      sql,
      [bucket],
    )
    return new Map(rows.map(({ id, times }) => [id, times]))
  }
  return {
    movements: await counted(
      `SELECT operation_id AS id, count(*)::int AS times FROM holdfast.movement
       WHERE bucket = $1 GROUP BY 1`,
    ),
    effects: await counted(
      'SELECT id::text AS id, count(*)::int AS times FROM effect WHERE bucket = $1 GROUP BY 1',
    ),
  }
}

/** A process that was killed may have written half a line. */
function linesOf(file: string): AppLine[] {
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line.endsWith('}'))
    .map((line) => JSON.parse(line) as AppLine)
}
