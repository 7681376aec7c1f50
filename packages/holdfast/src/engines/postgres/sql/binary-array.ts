import type { Words } from './uuid-words.ts'

/**
 * Arrays as PostgreSQL takes them in binary: nothing becomes text on its way, and a UUID costs the server a twentieth of
 * what it costs as text.
 */

/** What there is in front of the elements of an array, its own length included. */
export const headBytes = 24

/** Types of elements: their number, and how many bytes one takes with its length in front. */
export const elements = {
  int2: { type: 21, bytes: 6 },
  int8: { type: 20, bytes: 12 },
  uuid: { type: 2950, bytes: 20 },
} as const

interface Element {
  readonly type: number
  readonly bytes: number
}

export function arrayBytes({ bytes }: Element, count: number): number {
  return headBytes + count * bytes
}

/** A text takes no more than this. */
export function textBytes(text: string | undefined): number {
  return 4 + 3 * (text ?? '').length
}

/** Of texts, some of which may be null. */
export function writeTexts(to: Buffer, at: number, texts: readonly (string | undefined)[]): number {
  let end = writeHead(to, at, textElement, texts.length)
  writeWord(to, at + 8, texts.includes(undefined) ? 1 : 0)
  for (const text of texts) {
    const bytes = text === undefined ? -1 : to.write(text, end + 4)
    writeWord(to, end, bytes)
    end += 4 + Math.max(0, bytes)
  }
  writeWord(to, at, end - at - 4)
  return end
}

const textElement = { type: 25, bytes: 0 }

/** A value that is null. */
export function writeNull(to: Buffer, at: number): number {
  writeWord(to, at, -1)
  return at + 4
}

/** Length of the value, dimensions, no nulls, type of the elements, how many, first index. */
export function writeHead(to: Buffer, at: number, { type, bytes }: Element, count: number): number {
  writeWord(to, at, headBytes - 4 + count * bytes)
  writeWord(to, at + 4, 1)
  writeWord(to, at + 8, 0)
  writeWord(to, at + 12, type)
  writeWord(to, at + 16, count)
  writeWord(to, at + 20, 1)
  return at + headBytes
}

export function writeInt2(to: Buffer, at: number, value: number): number {
  writeWord(to, at, 2)
  to[at + 4] = value >>> 8
  to[at + 5] = value
  return at + 6
}

/** Of a safe integer that is not negative. */
export function writeInt8(to: Buffer, at: number, value: number): number {
  writeWord(to, at, 8)
  writeWord(to, at + 4, Math.floor(value / 0x1_0000_0000))
  writeWord(to, at + 8, value >>> 0)
  return at + 12
}

export function writeUuid(to: Buffer, at: number, { a, b, c, d }: Words): number {
  writeWord(to, at, 16)
  writeWord(to, at + 4, a)
  writeWord(to, at + 8, b)
  writeWord(to, at + 12, c)
  writeWord(to, at + 16, d)
  return at + 20
}

/** Faster than the methods of Buffer, which check what cannot be wrong here. */
function writeWord(to: Buffer, at: number, value: number): void {
  to[at] = value >>> 24
  to[at + 1] = value >>> 16
  to[at + 2] = value >>> 8
  to[at + 3] = value
}
