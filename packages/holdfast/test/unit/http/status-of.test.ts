import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { statusTable, withStatusTable } from '../../../../../scripts/http-status-table.ts'
import { holdfastError } from '../../../src/core/errors.ts'
import { type ErrorCode, errorCodes, isHoldfastError } from '../../../src/errors.ts'
import { httpAnswerOf, refusalAnswerOf, statusOf } from '../../../src/http/index.ts'

const codes = Object.keys(errorCodes) as ErrorCode[]

test('docs/http.md has the table that the sources make', () => {
  const page = readFileSync(new URL('../../../../../docs/http.md', import.meta.url), 'utf8')
  expect(withStatusTable(page)).toBe(page)
  // Every code is in it once.
  const listed = [...statusTable().matchAll(/`([A-Z][A-Z_]+)`/g)].map(([, code]) => code as string)
  expect(listed.toSorted()).toEqual(codes.toSorted())
})

describe('every code', () => {
  test.each(codes)('%s: an answer that tells nothing but what it may', (code) => {
    const secrets = { subject: 'secret', names: ['secret'], option: 'secret' }
    const blockers = [{ pid: 7_777, name: 'secret', ageMs: 1, state: 'secret', query: 'secret' }]
    const error = holdfastError(code, {
      details: secrets as never,
      blockers,
      cause: new Error('secret'),
    })
    const { status, headers = {}, body } = httpAnswerOf(error) ?? { status: 0 }
    expect([409, 423, 500, 503]).toContain(status)
    expect(Object.keys(headers).toSorted()).toEqual(
      ['content-type', ...(statusOf(code).again ? ['retry-after'] : [])].toSorted(),
    )
    expect(JSON.stringify(body)).not.toMatch(/secret|7777/)
    expect(JSON.stringify(body).includes(code)).toBe(status < 500)
  })

  test('that may have happened never says "try again"', () => {
    const unknown = codes.filter((code) => errorCodes[code].class === 'UnknownOutcomeError')
    expect(unknown.length).toBeGreaterThan(2)
    for (const code of unknown) {
      const answer = httpAnswerOf(holdfastError(code))
      expect(answer).toMatchObject({ status: 500, body: { outcome: 'unknown' } })
      expect(answer?.headers).not.toHaveProperty('retry-after')
    }
  })

  test('with "try again" is safe to try again', () => {
    const again = codes.filter((code) => statusOf(code).again && !errorCodes[code].retryable)
    // Both say that nothing goes on in this process; what was under way is told as such.
    expect(again).toEqual(['HOLDFAST_CLOSED', 'LEDGER_HOLD_EXPIRING'])
  })
})

test.each([
  ['committed', { outcome: 'unknown' }],
  ['unknown', { outcome: 'unknown' }],
  ['rolled back', {}],
  ['refused', {}],
] as const)('of a body that ended its transaction, %s: %j', (ended, more) => {
  const error = holdfastError('TX_ENDED_INSIDE', { details: { subject: '', ended } })
  expect(httpAnswerOf(error)?.body).toEqual({ status: 500, title: expect.any(String), ...more })
})

test('of a circuit that is open, the caller is told when it closes', () => {
  const error = holdfastError('CIRCUIT_OPEN', { details: { retryInMs: 4_001 } })
  expect(httpAnswerOf(error)?.headers).toMatchObject({ 'retry-after': '5' })
})

test('errors of others are not answered', () => {
  for (const error of [new Error('mine'), undefined, null, 'text', { code: 'LOCK_BUSY' }])
    expect(httpAnswerOf(error)).toBeUndefined()
})

test('a code of a later version, in the same process, is a failure inside', () => {
  const later = Object.assign(Object.create(holdfastError('LOCK_BUSY')), { code: 'TOMORROW' })
  expect(isHoldfastError(later)).toBe(true)
  expect(httpAnswerOf(later)).toMatchObject({ status: 500 })
})

test.each([200, 99, 600, 4.5, '409'])('the status %j is refused', (status) => {
  const statuses = { LOCK_BUSY: status as number }
  expect(() => httpAnswerOf(holdfastError('LOCK_BUSY'), { statuses })).toThrow(/OPTION_INVALID/)
  const verdict = { ok: false, reason: 'ended', retryAt: undefined } as const
  expect(() => refusalAnswerOf(verdict, { statuses: { ended: status as number } })).toThrow(
    /OPTION_INVALID/,
  )
})

test.each<readonly [string, object, string]>([
  ['a reason that there is not', { statuses: { insufficent: 402 } }, 'statuses.insufficent'],
  ['a status that is none, of another reason', { statuses: { ended: 200 } }, 'statuses'],
  ['an option that there is not', { status: { insufficient: 402 } }, 'status'],
  ['no options', 402 as never, 'options'],
])('of a refusal, %s is refused', (_, options, option) => {
  const verdict = { ok: false, reason: 'insufficient', retryAt: undefined } as const
  expect(() => refusalAnswerOf(verdict, options)).toThrow(
    expect.objectContaining({
      code: 'OPTION_INVALID',
      details: expect.objectContaining({ option }),
    }),
  )
})

test('settings are looked at with every error, also of others', () => {
  for (const options of [
    { statuses: { LOCK_BUSSY: 404 } },
    { statuses: { LOCK_BUSY: 99 } },
    { x: 1 },
  ])
    for (const error of [new Error('mine'), holdfastError('TX_DEADLOCK')])
      expect(() => httpAnswerOf(error, options as never)).toThrow(/OPTION_INVALID/)
})

test('a status that is undefined is that of the table', () => {
  const statuses = { LOCK_BUSY: undefined, insufficient: undefined } as never
  const verdict = { ok: false, reason: 'insufficient', retryAt: undefined } as const
  const { LOCK_BUSY, insufficient } = statuses
  expect(httpAnswerOf(holdfastError('LOCK_BUSY'), { statuses: { LOCK_BUSY } })?.status).toBe(423)
  expect(refusalAnswerOf(verdict, { statuses: { insufficient } }).status).toBe(409)
})

test.each([[new Date(Number.NaN)], ['2030-01-01T00:00:00.000Z'], [null]])(
  'a retryAt that is no moment is refused: %s',
  (retryAt) => {
    const verdict = { ok: false, reason: 'insufficient', retryAt: retryAt as Date } as const
    expect(() => refusalAnswerOf(verdict)).toThrow(/OPTION_INVALID \(retryAt must be/)
  },
)

test('what comes back by itself is 429, at the time it does', () => {
  const retryAt = new Date(Date.now() + 90_500)
  const answer = refusalAnswerOf({ ok: false, reason: 'insufficient', retryAt })
  expect(answer.status).toBe(429)
  expect(Number(answer.headers?.['retry-after'])).toBeGreaterThan(85)
  const past = refusalAnswerOf({ ok: false, reason: 'insufficient', retryAt: new Date(0) })
  expect(past.headers).toMatchObject({ 'retry-after': '1' })
})

test.each<readonly [string, unknown]>([
  ['that accepted', { ok: true, available: 5n }],
  ['without an answer', { reason: 'insufficient' }],
  ['that is none', undefined],
])('a verdict %s is refused: the caller would be told that nothing was done', (_, verdict) => {
  expect(() => refusalAnswerOf(verdict as never)).toThrow(
    expect.objectContaining({ code: 'OPTION_INVALID' }),
  )
})
