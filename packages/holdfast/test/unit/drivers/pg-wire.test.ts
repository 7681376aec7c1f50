import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { pipelineMessage, simpleMessage } from '../../../src/drivers/pg/pg-wire.ts'

interface Message {
  type: string
  body: Buffer
}

/** Splits bytes into messages by their own lengths; leftovers are an error. */
function messages(bytes: Buffer): Message[] {
  const found: Message[] = []
  for (let at = 0; at < bytes.length; ) {
    const length = bytes.readInt32BE(at + 1)
    found.push({
      type: bytes.toString('latin1', at, at + 1),
      body: bytes.subarray(at + 5, at + 1 + length),
    })
    at += 1 + length
  }
  return found
}

function boundValues(body: Buffer): (string | null)[] {
  let at = body.indexOf(0) + 1
  at = body.indexOf(0, at) + 1
  expect(body.readInt16BE(at)).toBe(0)
  const count = body.readInt16BE(at + 2)
  at += 4
  const values = Array.from({ length: count }, () => {
    const length = body.readInt32BE(at)
    at += 4
    if (length === -1) return null
    at += length
    return body.toString('utf8', at - length, at)
  })
  expect(body.readInt16BE(at)).toBe(0)
  expect(at + 2).toBe(body.length)
  return values
}

describe('pipelineMessage', () => {
  test('closes and parses what is not known, binds and executes all, and syncs once', () => {
    const bytes = pipelineMessage(
      { name: 'a', text: 'BEGIN', values: [], known: false },
      { name: '', text: 'SELECT $1', values: ['x'], known: false },
      { name: 'b', text: 'SELECT 2', values: [], known: true },
    )
    expect(
      messages(bytes)
        .map(({ type }) => type)
        .join(''),
    ).toBe('CPBEPBEBES')
    expect(messages(bytes)[0]?.body.toString()).toBe('Sa\0')
    expect(messages(bytes)[1]?.body.toString()).toBe('a\0BEGIN\0\0\0')
  })

  test('values of any length and script arrive as they were', () => {
    const value = fc.option(fc.string({ unit: 'grapheme', maxLength: 3_000 }), { nil: null })
    fc.assert(
      fc.property(fc.array(value, { maxLength: 8 }), (values) => {
        const bytes = pipelineMessage({ name: 'n', text: 'SELECT', values, known: true })
        const [bind] = messages(bytes)
        expect(boundValues(bind?.body as Buffer)).toEqual(values)
      }),
    )
  })

  test('numbers and booleans are sent as text', () => {
    const bytes = pipelineMessage({ name: '', text: '', values: [1, true, null], known: true })
    expect(boundValues(messages(bytes)[0]?.body as Buffer)).toEqual(['1', 'true', null])
  })
})

test('simpleMessage is one Query', () => {
  const [query, ...rest] = messages(simpleMessage('COMMIT'))
  expect(rest).toEqual([])
  expect(query?.type).toBe('Q')
  expect(query?.body.toString()).toBe('COMMIT\0')
})

test('texts of any length fit, wherever the buffer ends', () => {
  for (let length = 400; length < 1_200; length += 1) {
    const text = 'x'.repeat(length)
    const message = simpleMessage(text)
    expect(message.length).toBe(length + 6)
    expect(message.readInt32BE(1)).toBe(length + 5)
    expect(message.toString('latin1', 5)).toBe(`${text}\0`)
  }
})
