import { withClient } from '@holdfast/testkit'
import type { Client } from 'pg'
import { auditOf } from '../ledger/audit-of.ts'
import { books, limitOf, opening } from './connections-work.ts'

/** What all callers were told, summed up: `quota ok|7` → 80. */
export type Told = Readonly<Record<string, number>>

/** Holds what callers were told against what is in the database. Gives what does not agree. */
export async function checkConnections(url: string, told: Told): Promise<string[]> {
  const wrong = await withClient(url, async (client) => [
    ...limits('quota', await debits(client, books.quota), told),
    ...limits('room', await sums(client, 'SELECT key, count(*) AS n FROM room GROUP BY key'), told),
    ...equal('holds used', await debits(client, books.holds), told),
    ...equal('stock issued', await debits(client, books.stock), told),
    ...(await none(
      client,
      'accounts with something still put aside, or with more than there is',
      `SELECT FROM holdfast.balances
       WHERE held <> 0 OR debited > credited + allowance OR (book = $1 AND credited <> $2)`,
      [books.stock, opening],
    )),
    ...(await onceAnswers(client, told)),
    ...equal(
      'claims done',
      await sums(client, `SELECT 'all' AS key, count(*) AS n FROM sent`),
      told,
    ),
    ...(await none(
      client,
      'tasks sent twice',
      'SELECT task FROM sent GROUP BY task HAVING count(*) > 1',
    )),
    ...(await none(
      client,
      'tasks whose status does not agree with what was sent',
      `SELECT id FROM task FULL JOIN sent ON task = id
       WHERE (status = 'done') <> (task IS NOT NULL) OR status NOT IN ('pending', 'done')`,
    )),
    ...equal(
      'leases written',
      await sums(client, 'SELECT lease AS key, count(*) AS n FROM written GROUP BY lease'),
      told,
    ),
    ...(await none(
      client,
      'writes of a lease that do not come later with a higher token',
      `SELECT 1 FROM (SELECT token, lag(token) OVER (PARTITION BY lease ORDER BY seq) AS before FROM written) w
       WHERE token <= before`,
    )),
    ...equal(
      'ticks done',
      await sums(client, 'SELECT name AS key, count(*) AS n FROM ticked GROUP BY name'),
      told,
    ),
    ...(await none(
      client,
      'ticks that ran twice',
      'SELECT FROM ticked GROUP BY name, at HAVING count(*) > 1',
    )),
  ])
  const { problems } = await auditOf(url)
  return [...wrong, ...problems.map(({ check, key }) => `the audit found ${check} at ${key}`)]
}

type Sums = ReadonlyMap<string, number>

/** One unit each: who asks as often as the limit or more gets the limit, who asks less often gets all. */
function limits(workload: 'quota' | 'room', stored: Sums, told: Told): string[] {
  const asked = toldOf(`${workload} asked`, told)
  return [
    ...equal(`${workload} ok`, stored, told),
    ...[...asked].flatMap(([key, times]) => {
      const due = Math.min(times, limitOf(Number(key)))
      const has = stored.get(key) ?? 0
      return has === due ? [] : [`${workload} ${key} has ${has}, where ${due} was due`]
    }),
  ]
}

/** What callers were told, key by key, is what is there. */
function equal(what: string, stored: Sums, told: Told): string[] {
  const heard = toldOf(what, told)
  return [...new Set([...stored.keys(), ...heard.keys()])].flatMap((key) => {
    const [there, said] = [stored.get(key) ?? 0, heard.get(key) ?? 0]
    return there === said ? [] : [`${what} of ${key}: callers were told ${said}, there is ${there}`]
  })
}

function toldOf(what: string, told: Told): Sums {
  return new Map(
    Object.entries(told)
      .filter(([entry]) => entry.startsWith(`${what}|`))
      .map(([entry, count]) => [entry.slice(what.length + 1), count]),
  )
}

async function sums(client: Client, text: string, values: unknown[] = []): Promise<Sums> {
  const { rows } = await client.query<{ key: string | number; n: string }>(text, values)
  return new Map(rows.map(({ key, n }) => [String(key), Number(n)]))
}

async function debits(client: Client, book: string): Promise<Sums> {
  return await sums(client, 'SELECT key, debited AS n FROM holdfast.balances WHERE book = $1', [
    book,
  ])
}

async function onceAnswers(client: Client, told: Told): Promise<string[]> {
  const { rows } = await client.query<{ key: string; answer: string }>(
    'SELECT key, answer FROM hook',
  )
  const stored = new Map(rows.map(({ key, answer }) => [key, answer]))
  const different = Object.keys(told).filter((entry) => {
    const found = /^once ([^|]+)\|(.+)$/.exec(entry)
    return found !== null && stored.get(found[1] as string) !== found[2]
  })
  return [
    ...(rows.length === stored.size ? [] : ['a webhook was worked on more than once']),
    ...(different.length === 0 ? [] : [`${different.length} answers are not what was stored`]),
  ]
}

async function none(
  client: Client,
  what: string,
  text: string,
  values: unknown[] = [],
): Promise<string[]> {
  const { rowCount } = await client.query(text, values)
  return (rowCount ?? 0) === 0 ? [] : [`${rowCount} ${what}`]
}
