/** What `retry.on` and `retry.onlyOn` can name: a code that nobody throws would be retried by nobody, without a word. */
import { describe, expect, test } from 'vitest'
import { errorCodes } from '../../../src/core/error-codes.ts'
import { retrying, retryTerms } from '../../../src/tx/retry.ts'

const options = ['on', 'onlyOn'] as const

describe.each(options)('retry.%s', (option) => {
  test('takes every code of Holdfast', () => {
    const codes = Object.keys(errorCodes)
    expect(retryTerms({ [option]: codes }).on).toEqual(expect.arrayContaining(codes))
  })

  test.each(['40001', '40P01', '23505', 'XX000', 'HV00N', 'P0001', '57P03', 'P2034', 'P2002'])(
    'takes %s, a SQLSTATE or a code of Prisma',
    (code) => {
      expect(retryTerms({ [option]: [code] }).on).toContain(code)
    },
  )

  test.each<readonly [code: string, meant: string | undefined]>([
    ['LOCK_TIMEOT', 'LOCK_TIMEOUT'],
    ['LOCK_TIME_OUT', 'LOCK_TIMEOUT'],
    ['lock_timeout', 'LOCK_TIMEOUT'],
    ['CONECTION_LOST', 'CONNECTION_LOST'],
    ['COMMIT_UNKNWON', 'COMMIT_UNKNOWN'],
    ['40p01', '40P01'],
    ['NO_SUCH_CODE', undefined],
    ['4001', '40001'],
    ['400011', '40001'],
    ['ECONNRESET', undefined],
    ['DEADLOCK', undefined],
    ['serialization_failure', undefined],
    ['', undefined],
  ])('refuses %j, which no error has', (code, meant) => {
    let told: unknown
    try {
      retryTerms({ [option]: ['40001', code] })
    } catch (error) {
      told = error
    }
    const subject =
      meant === undefined ? expect.any(String) : expect.stringContaining(`did you mean '${meant}'?`)
    expect(told).toMatchObject({
      code: 'OPTION_INVALID',
      details: { option: `retry.${option}`, subject, ...(meant && { didYouMean: meant }) },
    })
    expect((told as Error).message.includes('did you mean')).toBe(meant !== undefined)
  })

  test('does not repeat what is no code: it may be a value that got here by mistake', () => {
    expect(() => retryTerms({ [option]: ['postgres://me:secret@host/db'] })).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining('secret') }),
    )
  })

  test('a code of Prisma counts, also where the server has sent one of its own', async () => {
    const unique = Object.assign(new Error('from Prisma'), {
      code: 'P2002',
      meta: { driverAdapterError: { cause: { originalCode: '23505' } } },
    })
    const conflict = Object.assign(new Error('from Prisma'), { code: 'P2034' })
    for (const [error, code] of [
      [unique, 'P2002'],
      [unique, '23505'],
      [conflict, 'P2034'],
      [conflict, '40001'],
    ] as const) {
      let runs = 0
      const policy = { ...retryTerms({ [option]: [code] }), baseMs: 1, capMs: 1 }
      const patient = { codes: [], forMs: 0 }
      const result = await retrying(
        async () => {
          runs += 1
          if (runs === 1) throw error
          return 'done'
        },
        { policy, patient, signal: undefined, onRetry: undefined },
      )
      expect([code, result, runs]).toEqual([code, 'done', 2])
    }
  })
})

test('on and onlyOn exclude each other: one of them would be passed over', () => {
  expect(() => retryTerms({ on: ['55P03'], onlyOn: ['40P01'] })).toThrow(
    expect.objectContaining({ code: 'OPTION_INVALID' }),
  )
  expect(retryTerms({ on: ['55P03'], onlyOn: undefined } as never).on).toContain('55P03')
})
