/** Which of the three can be broken, in every order of their statements. DATABASE_URL: a database that may be emptied. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { assertRaceFree, explore, formatReport, instrument, type Report } from '@holdfast/race'
import pg from 'pg'
import type { NewBooking } from '../src/booking.ts'

instrument(pg) // before the code opens a connection
const { book: unguarded } = await import('../src/book-unguarded.ts')
const { book: byConstraint } = await import('../src/book-by-constraint.ts')
const { book: guarded } = await import('../src/book-guarded.ts')

const [schema, noOverlap] = ['schema', 'no-overlap'].map((name) =>
  readFileSync(new URL(`../prisma/${name}.sql`, import.meta.url), 'utf8'),
) as [string, string]

type Book = (booking: NewBooking) => Promise<boolean>

const at = (time: string): Date => new Date(`2030-05-07T${time}:00Z`)
const booking = (desk: string, guest: string, from: string, until: string): NewBooking => ({
  desk,
  guest,
  from: at(from),
  until: at(until),
})
const ann = booking('blue', 'ann', '09:00', '11:00')
/** The same desk at the same time. */
const bob = booking('blue', 'bob', '10:00', '12:00')
/** Another desk, for the same guest, who has one booking in this week already. */
const second = booking('red', 'ann', '15:00', '16:00')

async function twoOf(
  book: Book,
  one: NewBooking,
  other: NewBooking,
  constraint = '',
): Promise<Report> {
  return await explore({
    url: process.env['DATABASE_URL'],
    seed: async ({ query }) => {
      await query(`DROP TABLE IF EXISTS booking; ${schema} ${constraint}`)
      await query(`INSERT INTO booking (desk, guest, starts_at, ends_at)
        VALUES ('green', 'ann', '2030-05-06 09:00Z', '2030-05-06 10:00Z')`)
    },
    flows: { one: () => book(one), other: () => book(other) },
  })
}

function assertRace(report: Report): void {
  assert.throws(() => assertRaceFree(report), /check-then-insert/, formatReport(report))
}

void test('check, then insert: both rules can be broken', async () => {
  assertRace(await twoOf(unguarded, ann, bob))
  assertRace(await twoOf(unguarded, ann, second))
})

void test('EXCLUDE keeps the desk, and not the limit of a guest', async () => {
  assertRaceFree(await twoOf(byConstraint, ann, bob, noOverlap))
  assertRace(await twoOf(byConstraint, ann, second, noOverlap))
})

void test('a guard keeps both', async () => {
  assertRaceFree(await twoOf(guarded, ann, bob))
  assertRaceFree(await twoOf(guarded, ann, second))
})
