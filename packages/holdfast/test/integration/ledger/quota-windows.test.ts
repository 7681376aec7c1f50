import { beforeAll, describe, expect, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast } from '../../../src/index.ts'
import type { Period, Quota } from '../../../src/quota/index.ts'
import { isHostile } from '../../support/hostile-database.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'

const fixture = ledgerFixture()
const once = (): { operationId: string } => ({ operationId: fresh() })
// Here books are declared in two ways, which is otherwise refused.
beforeAll(async () => {
  await fixture.observer.query(
    `CREATE FUNCTION public.nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
     CREATE TRIGGER nothing BEFORE INSERT ON holdfast.book FOR EACH ROW EXECUTE FUNCTION public.nothing()`,
  )
})

interface WindowRow {
  readonly start: Date
  readonly end: Date
  readonly credited: string
  readonly debited: string
  readonly held: string
}

/** The windows of a key, in the order of their first use. */
async function windows(book: string, key: string): Promise<WindowRow[]> {
  const { rows } = await fixture.observer.query<WindowRow>(
    `SELECT a.window_start AS start, a.window_end AS end, b.credited, b.debited, b.held
     FROM holdfast.account a JOIN holdfast.balance b ON b.bucket = a.bucket AND b.account = a.id
     WHERE a.book = $1 AND a.key = $2 ORDER BY a.opened_at`,
    [book, key],
  )
  return rows
}

/**
 * One book in two time zones that are 26 hours apart: their calendar days are never the same. What
 * one declaration does happened on another day for the other one, without anybody waiting for it.
 */
function twoDays(
  name: string,
  limit = 5,
): { earlier: Quota<unknown, number>; later: Quota<unknown, number> } {
  const of = (timeZone: string): Quota<unknown, number> =>
    createHoldfast(fromPg(fixture.pool)).quota({ name, limit, per: 'day', timeZone }) as never
  return { earlier: of('Etc/GMT+12'), later: of('Pacific/Kiritimati') }
}

describe('calendar windows at fixed moments', () => {
  test.each([
    // The clocks go forward, and back.
    ['day', 'Europe/Berlin', '2026-03-29T10:00Z', '2026-03-28T23:00Z', '2026-03-29T22:00Z'],
    ['day', 'Europe/Berlin', '2026-10-25T10:00Z', '2026-10-24T22:00Z', '2026-10-25T23:00Z'],
    // There is no midnight that day; and an evening that comes twice.
    ['day', 'America/Santiago', '2026-09-06T12:00Z', '2026-09-06T04:00Z', '2026-09-07T03:00Z'],
    ['day', 'America/Santiago', '2026-04-05T03:59Z', '2026-04-04T03:00Z', '2026-04-05T04:00Z'],
    ['month', 'UTC', '2026-02-28T23:59:59.999Z', '2026-02-01T00:00Z', '2026-03-01T00:00Z'],
    ['month', 'UTC', '2028-02-29T23:59:59.999Z', '2028-02-01T00:00Z', '2028-03-01T00:00Z'],
    ['month', 'UTC', '2026-12-31T12:00Z', '2026-12-01T00:00Z', '2027-01-01T00:00Z'],
    ['month', 'America/Santiago', '2026-02-01T02:59Z', '2026-01-01T03:00Z', '2026-02-01T03:00Z'],
    ['month', 'America/Santiago', '2026-04-10T00:00Z', '2026-04-01T03:00Z', '2026-05-01T04:00Z'],
    // Weeks begin on Monday.
    ['week', 'Europe/Berlin', '2026-03-01T22:59Z', '2026-02-22T23:00Z', '2026-03-01T23:00Z'],
    ['week', 'Europe/Berlin', '2026-03-29T10:00Z', '2026-03-22T23:00Z', '2026-03-29T22:00Z'],
    // An hour that comes twice is two hours.
    ['hour', 'America/New_York', '2026-11-01T05:30Z', '2026-11-01T05:00Z', '2026-11-01T06:00Z'],
    ['hour', 'America/New_York', '2026-11-01T06:30Z', '2026-11-01T06:00Z', '2026-11-01T07:00Z'],
    ['hour', 'America/New_York', '2026-03-08T06:30Z', '2026-03-08T06:00Z', '2026-03-08T07:00Z'],
    ['hour', 'Asia/Kolkata', '2026-01-01T12:10Z', '2026-01-01T11:30Z', '2026-01-01T12:30Z'],
    [
      'minute',
      'Asia/Kathmandu',
      '2026-01-01T12:10:59.9Z',
      '2026-01-01T12:10Z',
      '2026-01-01T12:11Z',
    ],
  ])('%s in %s at %s', async (unit, zone, moment, start, end) => {
    const { rows } = await fixture.observer.query(
      `SELECT date_trunc($1::text, $3::timestamptz, $2::text) AS start,
         holdfast.window_end($1, $2, $3::timestamptz) AS end`,
      [unit, zone, moment],
    )
    expect(rows).toEqual([{ start: new Date(start), end: new Date(end) }])
  })

  // In a hostile database every operator of this statement is a slow function.
  test.skipIf(isHostile)(
    'they leave no gap and do not overlap, every half hour of a year',
    async () => {
      const { rows } = await fixture.observer.query(
        `SELECT zone, unit, moment
       FROM unnest($1::text[]) AS zone, unnest($2::text[]) AS unit,
         generate_series('2026-01-01Z'::timestamptz, '2027-01-01Z', '30 min') AS moment,
         LATERAL (SELECT date_trunc(unit, moment, zone) AS start,
           holdfast.window_end(unit, zone, moment) AS till) AS w
       WHERE NOT (w.start <= moment AND moment < w.till
         AND date_trunc(unit, w.till, zone) = w.till
         AND date_trunc(unit, w.till - interval '1 microsecond', zone) = w.start)
       LIMIT 3`,
        [
          ['UTC', 'Europe/Berlin', 'America/Santiago', 'America/New_York', 'Asia/Kolkata'],
          ['hour', 'day', 'week', 'month'],
        ],
      )
      expect(rows).toEqual([])
    },
  )

  test('a midnight that comes twice belongs to the day that begins', async () => {
    const { rows } = await fixture.observer.query(
      `SELECT count(DISTINCT date_trunc('day', moment, 'America/Havana'))::int AS days
       FROM generate_series('2026-11-01T04:00Z'::timestamptz, '2026-11-02T04:59Z', '1 min') AS moment`,
    )
    expect(rows).toEqual([{ days: 1 }])
  })
})

describe('calendar windows now', () => {
  test.each(['minute', 'hour', 'day', 'week', 'month'] satisfies Period[])(
    '%s: the window is the one of the server’s clock, and retryAt is its end',
    async (per) => {
      const timeZone = 'America/Santiago'
      const quota = fixture.hf.quota({ name: `now-${per}`, limit: 2, per, timeZone })
      const key = fresh()
      const bounds = async (): Promise<unknown> =>
        (
          await fixture.observer.query(
            `SELECT date_trunc($1, clock_timestamp(), $2) AS start,
               holdfast.window_end($1, $2, clock_timestamp()) AS end`,
            [per, timeZone],
          )
        ).rows[0]
      const before = await bounds()
      await quota.consume(key, 2, once())
      const refused = await quota.consume(key, 1, once())
      const after = await bounds()
      const [window] = await windows(quota.name, key)
      // An edge may have passed in between; then it is one of the two.
      expect([before, after]).toContainEqual({ start: window?.start, end: window?.end })
      if (!refused.ok) {
        expect([before, after]).toContainEqual(expect.objectContaining({ end: refused.retryAt }))
      }
    },
  )

  test('lifetime: one window without end, and nothing to wait for', async () => {
    const quota = fixture.hf.quota({ name: 'now-lifetime', limit: 2, per: 'lifetime' })
    const key = fresh()
    await quota.consume(key, 2, once())
    expect(await quota.consume(key, 1, once())).toMatchObject({ ok: false, retryAt: undefined })
    const { rows } = await fixture.observer.query(
      `SELECT window_start::text AS start, window_end::text AS end FROM holdfast.account
       WHERE book = 'now-lifetime' AND key = $1`,
      [key],
    )
    expect(rows).toEqual([{ start: '-infinity', end: 'infinity' }])
  })

  test.each(['+02:00', '-03', 'Mars/Olympus', '', '2'])('refuses the time zone %j', (timeZone) => {
    expect(() => fixture.hf.quota({ name: 'zone', limit: 1, per: 'day', timeZone })).toThrow(
      expect.objectContaining({ code: 'OPTION_INVALID' }),
    )
  })

  test('refuses a period that is none', () => {
    const per = 'fortnight' as Period
    expect(() => fixture.hf.quota({ name: 'period', limit: 1, per })).toThrow(
      expect.objectContaining({ code: 'OPTION_INVALID' }),
    )
  })
})

describe('over the edge of a window', () => {
  test('a new window begins with the whole limit; the old one stays as it was', async () => {
    const { earlier, later } = twoDays('edge-fresh')
    const key = fresh()
    expect(await earlier.consume(key, 5, once())).toMatchObject({ ok: true, available: 0 })
    expect(await earlier.consume(key, 1, once())).toMatchObject({ ok: false })
    expect(await later.consume(key, 4, once())).toMatchObject({ ok: true, available: 1 })
    expect(await windows('edge-fresh', key)).toMatchObject([{ debited: '5' }, { debited: '4' }])
  })

  test('a retry is a replay, not a second charge', async () => {
    const { earlier, later } = twoDays('edge-retry')
    const [key, operation] = [fresh(), once()]
    const first = await earlier.consume(key, 2, operation)
    expect(await later.consume(key, 2, operation)).toEqual({ ...first, replayed: true })
    expect(await windows('edge-retry', key)).toMatchObject([{ debited: '2' }])
    // Also once the new window is in use.
    await later.consume(key, 1, once())
    expect(await later.consume(key, 2, operation)).toEqual({ ...first, replayed: true })
    expect(await later.consume(key, 3, operation)).toMatchObject({ ok: false, field: 'amount' })
    expect(await windows('edge-retry', key)).toMatchObject([{ debited: '2' }, { debited: '1' }])
  })

  test('a retry under several limits is a replay as well', async () => {
    const { earlier, later } = twoDays('edge-several')
    const month = fixture.hf.quota({ name: 'edge-several-life', limit: 9, per: 'lifetime' })
    const [key, operationId] = [fresh(), fresh()]
    const apply = async (day: Quota<unknown, number>): Promise<unknown> =>
      await fixture.hf.ledger.apply([await day.line(key, 2), await month.line(key, 2)], {
        operationId,
        scope: key,
      })
    const first = await apply(earlier)
    expect(first).toMatchObject({ ok: true, replayed: false })
    expect(await apply(later)).toEqual({ ...(first as object), replayed: true })
    expect(await windows('edge-several-life', key)).toMatchObject([{ debited: '2' }])
  })

  test('control: another operation id is charged in the new window', async () => {
    const { earlier, later } = twoDays('edge-control')
    const key = fresh()
    await earlier.consume(key, 2, once())
    await later.consume(key, 2, once())
    expect(await windows('edge-control', key)).toMatchObject([{ debited: '2' }, { debited: '2' }])
  })

  test('a refund goes back to the window that was charged', async () => {
    const { earlier, later } = twoDays('edge-refund')
    const [key, taken] = [fresh(), once()]
    await earlier.consume(key, 5, taken)
    await later.consume(key, 1, once())
    expect(await later.refund(key, 3, { ...once(), of: taken.operationId })).toMatchObject({
      ok: true,
      available: 3,
    })
    expect(await windows('edge-refund', key)).toMatchObject([
      { credited: '3', debited: '5' },
      { credited: '0', debited: '1' },
    ])
  })

  test.each(['settle', 'release'] as const)('a hold stays in its window: %s', async (end) => {
    const { earlier, later } = twoDays(`edge-hold-${end}`)
    const key = fresh()
    const held = await earlier.hold(key, 4, { ...once(), ttl: '1 min' })
    await later.consume(key, 1, once())
    const holdId = (held.ok && held.holdId) as string
    await (end === 'settle' ? later.settle(holdId, 3) : later.release(holdId))
    expect(await windows(`edge-hold-${end}`, key)).toMatchObject([
      { held: '0', debited: end === 'settle' ? '3' : '0' },
      { held: '0', debited: '1' },
    ])
  })

  test('a hold that expires leaves the other window alone', async () => {
    const { earlier, later } = twoDays('edge-expire')
    const key = fresh()
    const held = await earlier.hold(key, 4, { ...once(), ttl: '1 min' })
    await fixture.observer.query(
      `WITH h AS (UPDATE holdfast.hold SET expires_at = clock_timestamp() WHERE id = $1::uuid
         RETURNING bucket, account)
       UPDATE holdfast.balance b SET due_at = clock_timestamp() FROM h
       WHERE b.bucket = h.bucket AND b.account = h.account`,
      [((held.ok && held.holdId) as string).slice(4)],
    )
    expect(await later.consume(key, 5, once())).toMatchObject({ ok: true })
    expect(await earlier.consume(key, 5, once())).toMatchObject({ ok: true })
    expect(await windows('edge-expire', key)).toMatchObject([
      { held: '0', debited: '5' },
      { held: '0', debited: '5' },
    ])
  })
})
