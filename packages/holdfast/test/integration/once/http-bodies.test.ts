/** Which bodies of requests are the same under one `Idempotency-Key`, after somebody has parsed them. */
import { expect, test } from 'vitest'
import { idempotentAnswer, idempotentExpress } from '../../../src/entries/once.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'

const fixture = ledgerFixture()

/** Sends parsed bodies under one key to Express, and gives the status of the answer or the error. */
function parsedBodies(): (body: unknown) => Promise<unknown> {
  const pays = idempotentExpress(fixture.hf.once, () => Promise.resolve({ status: 201 }), {
    scope: () => 'parsed',
  })
  const key = fresh()
  return async (body) => {
    const get = (name: string): string | undefined => (name === 'Idempotency-Key' ? key : undefined)
    const seen: unknown[] = []
    const response = {
      status: (code: number) => (seen.push(code), response),
      set: () => response,
      end: () => undefined,
    }
    await pays({ method: 'POST', originalUrl: '/', get, body }, response, (error) =>
      seen.push(error),
    )
    return seen[0]
  }
}

test('bytes inside of a parsed body are told apart too', async () => {
  const statusOf = parsedBodies()
  const file = (...bytes: number[]): object => ({ file: Uint8Array.from(bytes).buffer })
  expect(await statusOf(file(1, 2))).toBe(201)
  expect(await statusOf(file(1, 2))).toBe(201)
  expect(await statusOf(file(9, 9))).toBe(422)
})

/** What parsers make of bodies; some have the same characters, and are not the same. */
const kindsOfBody: readonly unknown[] = [
  undefined,
  null,
  'null',
  '',
  '""',
  {},
  '{}',
  [],
  '[]',
  1,
  '1',
  true,
  'true',
  { a: 1 },
  '{"a":1}',
  Buffer.from('1'),
  'MQ==',
  ' base64\nMQ==',
  ' text\n1',
  { type: 'Buffer', data: [49] },
]

test.each(kindsOfBody.map((body, at) => [body, at] as const))(
  'a parsed body of one kind is not one of another: %j',
  async (body, at) => {
    const statusOf = parsedBodies()
    expect(await statusOf(body)).toBe(201)
    const seen = []
    for (const other of kindsOfBody) seen.push(await statusOf(other))
    expect(seen).toEqual(kindsOfBody.map((_, other) => (other === at ? 201 : 422)))
  },
)

test('bytes are the same whatever they are in', async () => {
  const statusOf = parsedBodies()
  const { buffer } = new Uint8Array([49])
  for (const body of [Buffer.from('1'), new Uint8Array(buffer), buffer, new DataView(buffer)])
    expect(await statusOf(body)).toBe(201)
  expect(await statusOf({ type: 'Buffer', data: [49] })).toBe(422)
})

test('objects, lists and bytes are compared with what older versions have stored', async () => {
  const payloadOf = async (body: unknown): Promise<unknown> => {
    let payload: unknown
    const once = ((_key: string, _work: unknown, options: { payload: string }) => {
      payload = options.payload
      return Promise.resolve({ ok: true, result: { status: 201 }, replayed: false })
    }) as never
    const request = { method: 'POST', url: '/pay', headers: { 'idempotency-key': 'a' }, body }
    const work = (): never => {
      throw new Error('not asked for')
    }
    await idempotentAnswer(once, request, work, { scope: () => 'ann' })
    return payload
  }
  expect(await payloadOf({ b: 1, a: [2] })).toBe('POST /pay\n{"b":1,"a":[2]}')
  expect(await payloadOf([1])).toBe('POST /pay\n[1]')
  expect(await payloadOf(Buffer.from('1'))).toBe('POST /pay\n base64\nMQ==')
  expect(await payloadOf(undefined)).toBe('POST /pay\n')
})
