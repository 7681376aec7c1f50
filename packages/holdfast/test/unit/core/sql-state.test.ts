import { describe, expect, test } from 'vitest'
import {
  isConnectionLoss,
  sqlStateOf,
  wasNeverSent,
  isUnanswered,
} from '../../../src/core/sql-state.ts'

/** The shapes here are copies of what the conformance suite provokes on real clients. */
describe('sqlStateOf', () => {
  test.each([
    ['pg', { code: '40001' }],
    ['drizzle', { query: 'q', cause: { code: '40001' } }],
    ['typeorm', { driverError: { code: '40001' }, code: '40001' }],
    [
      'prisma raw query',
      { code: 'P2010', meta: { driverAdapterError: { cause: { originalCode: '40001' } } } },
    ],
    [
      'prisma model query',
      { code: 'P2034', meta: { driverAdapterError: { cause: { originalCode: '40001' } } } },
    ],
    [
      'prisma at COMMIT',
      {
        name: 'DriverAdapterError',
        cause: { kind: 'TransactionWriteConflict', originalCode: '40001' },
      },
    ],
    ['prisma without the code', { code: 'P2034' }],
    ["Bun's SQL client", { code: 'ERR_POSTGRES_SERVER_ERROR', errno: '40001' }],
    ['an aggregate', { errors: [{ message: 'x' }, { code: '40001' }] }],
    ['prisma 8', { code: 'RUNTIME.TRANSACTION_COMMIT_FAILED', cause: { sqlState: '40001' } }],
  ])('finds it in an error of %s', (_, error) => {
    expect(sqlStateOf(error)).toBe('40001')
  })

  test.each([
    ['P0001', 'P0001'],
    ['P2010', undefined],
    ['EPIPE', undefined],
    ['HF001', 'HF001'],
  ])('code %s is %s', (code, expected) => {
    expect(sqlStateOf({ code })).toBe(expected)
  })

  test('a socket error is no SQLSTATE, whatever it looks like', () => {
    expect(sqlStateOf({ code: 'E2BIG', syscall: 'write' })).toBeUndefined()
  })

  test('survives a cycle of causes and things that are no errors', () => {
    const cyclic: { cause?: unknown } = {}
    cyclic.cause = cyclic
    expect([cyclic, null, undefined, 'text', 7].map(sqlStateOf)).toEqual(Array(5).fill(undefined))
  })
})

describe('connection loss', () => {
  test.each([
    [{ code: '57P01' }, true],
    [{ code: '08006' }, true],
    [{ code: '08006', severity: 'FATAL' }, true],
    [{ code: '08006', severity: 'ERROR' }, false],
    [{ cause: { code: '57P01', severity: 'ERROR' } }, false],
    // In another language, which need not be a refusal; and of a pooler.
    [{ code: '57P01', severity: 'FEHLER' }, true],
    [{ code: '08P01', severity: 'ERROR' }, true],
    [{ code: 'CONNECTION_CLOSED' }, true],
    [{ message: 'Connection terminated unexpectedly' }, true],
    [{ code: 'ECONNRESET', syscall: 'read' }, true],
    [{ code: '40001' }, false],
    [{ message: 'the connection of thoughts' }, false],
  ])('%j', (error, isLoss) => {
    expect(isConnectionLoss(error)).toBe(isLoss)
  })

  test('words of the server are not taken for those of a client', () => {
    const words = ['the client was closed in May', 'query read timeout', 'Connection terminated']
    for (const message of words) {
      const error = { code: '23514', message }
      expect([wasNeverSent(error), isUnanswered(error), isConnectionLoss(error)]).toEqual([
        false,
        false,
        false,
      ])
    }
  })

  test('a statement the client refused to send had no effect', () => {
    expect(
      wasNeverSent({ message: 'Client has encountered a connection error and is not queryable' }),
    ).toBe(true)
    expect(wasNeverSent({ message: 'Connection terminated unexpectedly' })).toBe(false)
  })
})
