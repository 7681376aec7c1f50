/**
 * A zone has one meaning: whatever name is accepted, PostgreSQL reads it as JavaScript does, at all times of the year. And
 * it is not by chance that others are refused.
 */
import { expect, test } from 'vitest'
import { assertTimeZone } from '../../src/core/options/time-zone.ts'
import { onEveryVersion } from './support/on-every-version.ts'
import type { Session } from './support/session.ts'

/** Of a year whose laws every release of the time zone data knows: that of Node and that of a server differ in age. */
const moments = ['2021-01-15', '2021-03-20', '2021-07-15', '2021-10-28'].map((day) =>
  Date.parse(`${day}T12:34:56Z`),
)

/** Seconds that clocks in a zone are ahead of UTC; nothing if JavaScript does not know the name. */
function offsetAt(timeZone: string, moment: number): number | undefined {
  try {
    const numeric = 'numeric'
    const fields = {
      year: numeric,
      month: numeric,
      day: numeric,
      hour: numeric,
      minute: numeric,
      second: numeric,
    } as const
    const clock = new Intl.DateTimeFormat('en-US', { timeZone, hourCycle: 'h23', ...fields })
    const read = Object.fromEntries(
      clock.formatToParts(moment).map(({ type, value }) => [type, Number(value)]),
    )
    const { year, month, day, hour, minute, second } = read as Record<string, number> & {
      year: number
    }
    const shown = Date.UTC(year, (month as number) - 1, day, hour, minute, second)
    return (shown - moment) / 1_000
  } catch {
    return undefined
  }
}

function isAccepted(timeZone: string): boolean {
  try {
    assertTimeZone(timeZone)
    return true
  } catch {
    return false
  }
}

/** Every name that either of both knows: places, old names, abbreviations, and what PostgreSQL reads as POSIX does. */
async function names(session: Session): Promise<string[]> {
  const known = (await session.rows(
    `SELECT name FROM pg_timezone_names UNION SELECT abbrev FROM pg_timezone_abbrevs`,
  )) as { name: string }[]
  const posix = [
    'EST5EDT',
    'CST6CDT',
    'Etc/GMT+5',
    'Etc/GMT-14',
    'GMT+2',
    'UTC+3',
    '+02:00',
    '-05',
    'Z',
  ]
  const all = [...Intl.supportedValuesOf('timeZone'), ...known.map(({ name }) => name), ...posix]
  return [...new Set(all.flatMap((name) => [name, name.toLowerCase()]))]
}

/** Of each name that JavaScript knows: whether PostgreSQL reads it the same way. Nothing where it does not know it. */
async function sameness(session: Session): Promise<Map<string, boolean | undefined>> {
  const known = (await names(session)).filter(
    (name) => offsetAt(name, moments[0] as number) !== undefined,
  )
  await session.rows(`
    CREATE OR REPLACE FUNCTION pg_temp.offset_of(zone text, at double precision) RETURNS double precision LANGUAGE plpgsql AS $$
    BEGIN
      RETURN extract(epoch FROM (to_timestamp(at) AT TIME ZONE zone) AT TIME ZONE 'UTC') - at;
    EXCEPTION WHEN invalid_parameter_value THEN RETURN NULL;
    END $$`)
  const rows = (await session.rows(`
    SELECT zone, at, pg_temp.offset_of(zone, at / 1000.0) AS ahead
    FROM json_array_elements_text('${JSON.stringify(known).replaceAll("'", "''")}') AS zone,
      unnest('{${moments.join()}}'::double precision[]) AS at`)) as {
    zone: string
    at: number
    ahead: number | null
  }[]
  const same = new Map<string, boolean | undefined>()
  for (const { zone, at, ahead } of rows) {
    if (ahead === null) same.set(zone, undefined)
    else same.set(zone, same.get(zone) !== false && Math.round(ahead) === offsetAt(zone, at))
  }
  return same
}

onEveryVersion((place) => {
  test.each(['Default', 'Australia', 'India'])(
    'every name that is accepted means the same, with the abbreviations %s',
    async (abbreviations) => {
      await using session = await place.open()
      await session.rows(
        `SET timezone_abbreviations = '${abbreviations}'; SET TimeZone = 'Asia/Manila'`,
      )
      const same = await sameness(session)
      const accepted = [...same].filter(([zone]) => isAccepted(zone))
      expect(accepted.length).toBeGreaterThan(400)
      expect(accepted.filter(([, is]) => is === false).map(([zone]) => zone)).toEqual([])
      // Control: without the rule there were such names.
      const others = [...same].filter(([zone, is]) => is === false && !isAccepted(zone))
      expect(others.map(([zone]) => zone)).toEqual(expect.arrayContaining(['PST', 'BST']))
    },
  )

  test.each(['UTC', 'utc', 'GMT', 'Etc/GMT+5', 'Europe/Brussels', 'america/santiago'])(
    '%s is accepted',
    (zone) => expect(isAccepted(zone)).toBe(true),
  )
})
