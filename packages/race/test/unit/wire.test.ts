import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readErrorFields, writeError } from '../../src/wire/backend.ts'
import { createFrameReader, createStartupReader, type Frame } from '../../src/wire/frame-reader.ts'
import { readBind, readParse, readQuery, writeExtended } from '../../src/wire/frontend.ts'
import { readOpening, sslRequestMessage, writeStart } from '../../src/wire/startup.ts'
import { valueText } from '../../src/wire/value-text.ts'
import { writeFrame, zeroTerminated } from '../../src/wire/write-frame.ts'

const frames = fc.array(
  fc.record({
    type: fc.constantFrom('Q', 'P', 'B', 'D', 'E', 'C', 'S', 'H', 'd', 'T', 'Z'),
    body: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
  }),
  { minLength: 1, maxLength: 12 },
)

/** Cuts the bytes at the given places. */
function split(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length]
  places.sort((a, b) => a - b)
  return places.slice(1).map((end, index) => bytes.subarray(places[index], end))
}

const shape = (frame: Frame): unknown => [frame.type, frame.body.toString('hex')]

describe('frames', () => {
  test('are the same however the bytes are cut into chunks', () => {
    fc.assert(
      fc.property(frames, fc.array(fc.nat(), { maxLength: 20 }), (sent, cuts) => {
        const bytes = Buffer.concat(sent.map(({ type, body }) => writeFrame(type, body)))
        const reader = createFrameReader()
        const received = split(bytes, cuts).flatMap((chunk) => reader.push(Buffer.from(chunk)))
        expect(received.map(shape)).toEqual(
          sent.map(({ type, body }) => [type, body.toString('hex')]),
        )
        expect(Buffer.concat(received.map((frame) => frame.bytes))).toEqual(bytes)
      }),
    )
  })

  test('byte by byte', () => {
    const bytes = Buffer.concat([writeFrame('Q', zeroTerminated('SELECT 1')), writeFrame('S')])
    const reader = createFrameReader()
    const received = [...bytes].flatMap((byte) => reader.push(Buffer.from([byte])))
    expect(received.map((frame) => frame.type)).toEqual(['Q', 'S'])
  })

  test('of another protocol are refused instead of waited for', () => {
    expect(() => createFrameReader().push(Buffer.from('GET / HTTP/1.1\r\n'))).toThrow(/PostgreSQL/)
  })
})

describe('messages', () => {
  const only = (bytes: Buffer): Frame => {
    const [frame] = createFrameReader().push(bytes)
    if (!frame) throw new Error('no frame')
    return frame
  }

  test('a start-up message comes back as it was written', () => {
    const parameters = new Map([
      ['user', 'ann'],
      ['options', '-c a=b'],
    ])
    const [frame] = createStartupReader().push(writeStart(196_608, parameters))
    expect(frame && readOpening(frame)).toEqual({ kind: 'start', version: 196_608, parameters })
    const [ssl] = createStartupReader().push(sslRequestMessage)
    expect(ssl && readOpening(ssl)).toEqual({ kind: 'encryption' })
  })

  test('a simple query becomes Parse, Bind, Describe, Execute', () => {
    const written = createFrameReader().push(writeExtended('SELECT 1'))
    expect(written.map((frame) => frame.type).join('')).toBe('PBDE')
    expect(written[0] && readParse(written[0])).toEqual({ name: '', text: 'SELECT 1', types: [] })
    expect(written[1] && readBind(written[1]).values).toEqual([])
    expect(readQuery(only(writeFrame('Q', zeroTerminated('äö'))))).toBe('äö')
  })

  test('an error keeps its fields', () => {
    const fields = new Map([
      ['S', 'ERROR'],
      ['C', '40P01'],
      ['M', 'deadlock detected'],
    ])
    expect(readErrorFields(only(writeError(fields)))).toEqual(fields)
  })
})

describe('binary values', () => {
  const numeric = (weight: number, scale: number, sign: number, ...digits: number[]): Buffer => {
    const bytes = Buffer.alloc(8 + digits.length * 2)
    bytes.writeInt16BE(digits.length, 0)
    bytes.writeInt16BE(weight, 2)
    bytes.writeUInt16BE(sign, 4)
    bytes.writeInt16BE(scale, 6)
    digits.forEach((digit, index) => bytes.writeInt16BE(digit, 8 + index * 2))
    return bytes
  }

  test.each([
    ['42', 23, Buffer.from([0, 0, 0, 42])],
    ['t', 16, Buffer.from([1])],
    ['12345.67', 1700, numeric(1, 2, 0, 1, 2345, 6700)],
    ['-0.0012', 1700, numeric(-1, 4, 0x4000, 12)],
    ['100000000', 1700, numeric(2, 0, 0, 1)],
    ['{"a":1}', 3802, Buffer.from('\u0001{"a":1}')],
    [
      '00000000-0000-4000-8000-000000000001',
      2950,
      Buffer.from(`${'0'.repeat(12)}40008000${'0'.repeat(11)}1`, 'hex'),
    ],
    ['2000-01-02', 1082, Buffer.from([0, 0, 0, 1])],
    ['\\x00ff', 99_999, Buffer.from([0, 255])],
    ['\\x01', 23, Buffer.from([1])],
  ])('%s', (text, type, bytes) => {
    expect(valueText(bytes, type, 1)).toBe(text)
  })
})
