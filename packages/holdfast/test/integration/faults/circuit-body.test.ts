import { describe, expect, test } from 'vitest'
import { holdfastError } from '../../../src/core/errors.ts'
import { withCircuit } from '../../../src/drivers/circuit.ts'
import { createHoldfast } from '../../../src/index.ts'
import { testDatabase } from '../../support/database.ts'
import { everyClient } from '../../support/every-client.ts'

/** Everything by which some client says that a connection is gone, thrown by somebody else's body. */
const codes = [
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOTFOUND',
  'ETIMEDOUT',
  'CONNECTION_CLOSED',
  'CONNECT_TIMEOUT',
  'P1001',
  'P1017',
  '57P01',
  '57P03',
  '08006',
  '53300',
]
const messages = [
  'fetch failed',
  'Connection terminated unexpectedly',
  'timeout exceeded when trying to connect',
  'query_wait_timeout',
  'Query read timeout',
]
const kinds = ['DatabaseNotReachable', 'ConnectionClosed']

function* shapes(): Generator<unknown> {
  for (const code of codes) {
    yield Object.assign(new Error('theirs'), { code })
    yield { code, syscall: 'connect' }
    yield new Error('theirs', { cause: Object.assign(new Error('inner'), { code }) })
    yield new AggregateError([Object.assign(new Error('inner'), { code })], 'theirs')
  }
  for (const message of messages) yield new Error(message)
  for (const kind of kinds) yield new Error('theirs', { cause: { kind } })
  for (const code of ['CONNECTION_LOST', 'CONNECTION_UNAVAILABLE', 'COMMIT_UNKNOWN'] as const) {
    yield holdfastError(code, { cause: new Error('of another database') })
  }
  yield* ['a text', 7, null, undefined]
}

/** All of them on the client that says most itself, some on the others. */
const some = [...shapes()].filter((_, at) => at % 7 === 0)

describe('T2: an error of the body never opens the circuit', () => {
  test.each(Object.entries(everyClient))('%s', async (name, open) => {
    const { url } = await testDatabase()
    const { driver, end } = await open(url)
    try {
      const hf = createHoldfast(withCircuit(driver, { failures: 1, openFor: '1 h' }))
      const once = { retry: false } as const
      await hf.transaction(() => fetch('http://127.0.0.1:9/'), once).catch(() => undefined)
      expect(await hf.transaction(async () => 'ran', once)).toBe('ran')
      for (const error of name === 'pg' ? shapes() : some) {
        // oxlint-disable-next-line prefer-promise-reject-errors -- a body may throw anything
        await hf.transaction(() => Promise.reject(error), once).catch(() => undefined)
        const after = await hf.transaction(async () => 'ran', once).catch((e: unknown) => e)
        expect([after, error]).toEqual(['ran', error])
      }
    } finally {
      await end()
    }
  })
})
