import type { Pool } from 'pg'
import { assertTimeZone } from '../../packages/holdfast/src/ledger/calendar.ts'
import {
  aheadUs,
  offsetsOf,
  windowAt,
} from '../../packages/holdfast/test/support/ledger-calendar.ts'
import { randomFor } from '../harness/random.ts'
import type { Unit } from '../../packages/holdfast/test/support/ledger-command.ts'

export interface Zones {
  /** Names that the library and the server accept, and that mean the same to both. */
  readonly names: readonly string[]
  /** Accepted by both, but their time-zone data differs: nothing to judge here. */
  readonly differing: readonly string[]
}

/** All names of the server's time-zone data that the library accepts, or a few of them. */
export async function knownZones(
  pool: Pool,
  few?: { readonly seed: number; readonly count: number },
): Promise<Zones> {
  const { rows } = await pool.query<{ name: string }>(
    'SELECT name FROM pg_timezone_names ORDER BY name',
  )
  const all = rows.map(({ name }) => name).filter(isAccepted)
  const accepted = few === undefined ? all : randomFor(few.seed, 0).sample(all, few.count)
  const moments = Array.from({ length: 61 }, (_, month) => Date.UTC(2024, month, 15, 12) / 1_000)
  const { rows: offsets } = await pool.query<{ name: string; ahead: string[] }>(
    `SELECT z.name, array_agg(extract(epoch FROM (to_timestamp(m.at) AT TIME ZONE z.name)
        - (to_timestamp(m.at) AT TIME ZONE 'UTC'))::bigint::text ORDER BY m.at) AS ahead
     FROM unnest($1::text[]) AS z(name), unnest($2::float8[]) AS m(at) GROUP BY z.name ORDER BY z.name`,
    [accepted, moments],
  )
  const isSame = ({ name, ahead }: (typeof offsets)[number]): boolean =>
    moments.every((at, nth) => aheadUs(name, at * 1e6) === Number(ahead[nth]) * 1e6)
  return {
    names: offsets.filter(isSame).map(({ name }) => name),
    differing: offsets.filter((one) => !isSame(one)).map(({ name }) => name),
  }
}

function isAccepted(name: string): boolean {
  try {
    assertTimeZone(name)
    return true
  } catch {
    return false
  }
}

const units: readonly Unit[] = ['minute', 'hour', 'day', 'week', 'month']
const minuteUs = 60_000_000
/** Around every change of the clocks, and around the days before and after it. */
const around = [-1_500, -1_441, -1_439, -61, -59, -31, -1, 0, 1, 29, 59, 61, 119, 1_439, 1_500]

/** Windows around every change of every zone from 2024 to 2028: what the server says against the model. */
export async function checkWindows(
  pool: Pool,
  schema: string,
  zones: readonly string[],
): Promise<{ readonly moments: number; readonly differences: readonly string[] }> {
  const [from, to] = [Date.UTC(2024, 0) * 1_000, Date.UTC(2029, 0) * 1_000]
  const differences: string[] = []
  let moments = 0
  for (const zone of zones) {
    const changes = offsetsOf(zone).filter(({ sinceUs }) => sinceUs >= from && sinceUs < to)
    if (changes.length === 0) continue
    const at = changes.flatMap(({ sinceUs }) => around.map((by) => sinceUs + by * minuteUs))
    const { rows } = await pool.query<{ unit: Unit; at: string; since: string; until: string }>({
      name: `windows_${schema}`,
      text: `SELECT u.unit, m.at, ${schema}.micros(${schema}.window_start(u.unit, $1, m.moment)) AS since,
          ${schema}.micros(${schema}.window_end(u.unit, $1, m.moment)) AS until
        FROM unnest($2::text[]) AS u(unit),
          (SELECT x.at, timestamptz 'epoch' + x.at * interval '1 microsecond' AS moment
           FROM unnest($3::bigint[]) AS x(at)) m`,
      values: [zone, units, at],
    })
    moments += rows.length
    for (const { unit, at: us, since, until } of rows) {
      const { start, end } = windowAt(unit, zone, Number(us))
      if (start === Number(since) && end === Number(until)) continue
      differences.push(`${unit} of ${zone} at ${us}: ${since} to ${until}, not ${start} to ${end}`)
    }
  }
  return { moments, differences }
}
