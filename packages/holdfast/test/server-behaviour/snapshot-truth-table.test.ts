import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Isolation } from '../../src/core/driver.ts'
import { onEveryVersion, type Place } from './support/on-every-version.ts'
import { type Session, sqlStateFrom } from './support/session.ts'
import { type Form, forms, type Outcome } from './support/snapshot-forms.ts'
import { readersWrite, reset, schema, writerWork } from './support/snapshot-schema.ts'

const levels: readonly Isolation[] = ['read committed', 'repeatable read', 'serializable']

function begin(isolation: Isolation): string {
  return `BEGIN ISOLATION LEVEL ${isolation}`
}

interface Observed {
  readonly outcome: Outcome
  readonly waitedFor: string
}

/** The writer commits while the reader waits in its form, or, as the control, before it starts. */
async function observe(
  place: Place,
  form: Form,
  isolation: Isolation,
  commits: 'while the reader waits' | 'before the reader starts',
): Promise<Observed> {
  await using writer = await place.open()
  await using reader = await place.open()
  await using observer = await place.open()
  await writer.rows(`${begin(isolation)}; ${writerWork}`)
  if (commits === 'before the reader starts') await writer.rows('COMMIT')

  const reading = form.read(reader, begin(isolation), isolation)
  const waited = await Promise.race([
    observer.seesWaiting(reader),
    // Not to wait is one answer, to fail is another; the failure is looked at below.
    reading.then(
      () => undefined,
      () => undefined,
    ),
  ])
  if (commits === 'before the reader starts') {
    return { outcome: await outcomeOf(form, reader, reading), waitedFor: 'nothing' }
  }
  if (waited === undefined) {
    await reading
    const locks = await observer.advisoryLocksOf(reader)
    if (locks.length > 0) throw new Error(`got the locks ${locks.join()} without waiting`)
    return { outcome: 'not taken', waitedFor: 'nothing' }
  }
  await writer.rows('COMMIT')
  const waitedFor = waited.blockers.join() === String(writer.pid) ? waited.event : 'someone else'
  return { outcome: await outcomeOf(form, reader, reading), waitedFor }
}

async function outcomeOf(form: Form, reader: Session, reading: Promise<boolean>): Promise<Outcome> {
  let fresh: boolean
  try {
    fresh = await reading
  } catch (error) {
    if ((error as { code?: unknown }).code === '40001') return '40001'
    throw error
  }
  const state = form.ends ? undefined : await sqlStateFrom(writeAndCommit(reader))
  if (state === undefined) return fresh ? 'fresh' : 'stale'
  if (fresh || state !== '40001') throw new Error(`${state} at the write, fresh: ${fresh}`)
  return 'stale, then 40001'
}

async function writeAndCommit(session: Session): Promise<void> {
  await session.rows(readersWrite)
  await session.rows('COMMIT')
}

onEveryVersion((place) => {
  beforeAll(async () => {
    await using session = await place.open()
    await session.rows(schema)
  })
  beforeEach(async () => {
    await using session = await place.open()
    await session.rows(reset)
  })

  describe.each(forms)('$name', (form) => {
    test.each(levels)('at %s', async (isolation) => {
      const outcome = form.expected[isolation]
      const waitedFor = outcome === 'not taken' ? 'nothing' : form.waitsFor
      expect(await observe(place, form, isolation, 'while the reader waits')).toEqual({
        outcome,
        waitedFor,
      })
    })

    // Control: the form can tell. What it reads is fresh when there was nothing to wait for.
    test('reads what was committed before it started', async () => {
      const seen = await observe(place, form, 'read committed', 'before the reader starts')
      expect(seen.outcome).toBe('fresh')
    })
  })
})
