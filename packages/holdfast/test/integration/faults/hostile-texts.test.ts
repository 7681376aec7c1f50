import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast } from '../../../src/index.ts'
import { createInterventions } from '../../../src/observe/index.ts'
import { optionsFor, tableText } from '../../support/claims-fixture.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'

/** What a thing is declared with is refused there, with a code, and not by the server at its first use. */
const fixture = ledgerFixture(tableText('job'))

const hostile: Readonly<Record<string, string>> = {
  NUL: 'a\0b',
  'half a character': 'a\ud800',
  'more than an index holds': randomBytes(1_500).toString('hex'),
}

const declared: Readonly<Record<string, (text: string) => unknown>> = {
  'the queue of work': (queue) => fixture.hf.work({ queue }),
  'the holder of work': (holder) => fixture.hf.work({ queue: 'some', holder }),
  'the holder of claims': (holder) => fixture.hf.claims({ ...optionsFor('job'), holder }),
  'the key of claims': (key) => fixture.hf.claims({ ...optionsFor('job'), key }),
  'the name of a leader': (name) => fixture.hf.leader({ name }),
  'the name of a schedule': (name) =>
    fixture.hf.schedule({
      name,
      every: '1 h',
      guarantee: 'at-least-once',
      handler: () => undefined,
    }),
  'the name of a book': (name) => fixture.hf.quota({ name, limit: 1, per: 'day' }),
}

describe.each(Object.entries(hostile))('S22: %s', (_, text) => {
  test.each(Object.entries(declared))('as %s', (_where, declare) => {
    expect(() => declare(text)).toThrow(
      expect.objectContaining({
        code: expect.stringMatching(/^(OPTION_INVALID|LEASE_NAME_INVALID|LEDGER_NAME_INVALID)$/),
      }),
    )
  })
})

describe.each(Object.entries(hostile))('S22: who intervenes with %s', (_, text) => {
  const refused = {
    code: expect.stringMatching(/^(OPTION_INVALID|OBSERVE_NO_SUCH_(SCHEDULE|SESSION))$/) as string,
  }

  test('is told by a code', async () => {
    const by = createInterventions(fromPg(fixture.pool))
    await expect(by.pauseSchedule(text)).rejects.toMatchObject(refused)
    await expect(by.requestTick(text)).rejects.toMatchObject(refused)
    await expect(by.requestTick('some', text)).rejects.toMatchObject(refused)
    const seen = { startedAt: text, transactionStartedAt: text }
    await expect(by.cancel(1, seen)).rejects.toMatchObject(refused)
  })
})

test('S22: what is allowed at most fits into every index', async () => {
  const longest = (bytes: number): string => randomBytes(bytes / 2).toString('hex')
  const work = fixture.hf.work<{ text: string }>({ queue: longest(512), holder: longest(512) })
  const job = { payload: { text: '\\u0000' }, scope: longest(512), uniqueKey: longest(1_024) }
  const { added } = await work.enqueue(job)
  expect(added).toBe(true)
  const [claim] = await work.claim(1)
  expect(claim?.row.payload).toEqual(job.payload)
  const lease = await fixture.hf.leases.acquire(longest(512), {
    scope: longest(512),
    note: longest(4_096),
  })
  await lease.release()
})

test('S22: a queue of letters that take several bytes wakes its workers', async () => {
  const hf = createHoldfast(fromPg(fixture.pool))
  const work = hf.work({ queue: `${fresh()}${'ü'.repeat(60)}`, notify: true })
  expect(await work.enqueue({ payload: 1 })).toMatchObject({ added: true })
})
