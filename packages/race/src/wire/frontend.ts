import { createBodyReader } from './body-reader.ts'
import type { Frame } from './frame-reader.ts'
import { int16, int32, writeFrame, zeroTerminated } from './write-frame.ts'

/** What clients send, as far as a gate has to understand it. */
export interface ParseMessage {
  readonly name: string
  readonly text: string
  /** Type of each parameter, 0 where the server is to find out. */
  readonly types: readonly number[]
}

export interface BindMessage {
  readonly portal: string
  readonly statement: string
  /** Value and format (0 text, 1 binary) of each parameter. */
  readonly values: readonly { readonly bytes: Buffer | null; readonly format: number }[]
  /** Formats of the answer: none means text, one is for all columns. */
  readonly resultFormats: readonly number[]
}

export function readQuery(frame: Frame): string {
  return createBodyReader(frame.body).text()
}

export function readParse(frame: Frame): ParseMessage {
  const body = createBodyReader(frame.body)
  return {
    name: body.text(),
    text: body.text(),
    types: Array.from({ length: body.int16() }, () => body.int32()),
  }
}

export function readBind(frame: Frame): BindMessage {
  const body = createBodyReader(frame.body)
  const portal = body.text()
  const statement = body.text()
  const formats = Array.from({ length: body.int16() }, () => body.int16())
  const values = Array.from({ length: body.int16() & 0xffff }, (_, index) => {
    const length = body.int32()
    const bytes = length === -1 ? null : body.bytes(length)
    return { bytes, format: formatOf(formats, index) }
  })
  const resultFormats = Array.from({ length: body.int16() }, () => body.int16())
  return { portal, statement, values, resultFormats }
}

/** The format of the column or parameter at this place: one given format is for all of them. */
export function formatOf(formats: readonly number[], index: number): number {
  return (formats.length === 1 ? formats[0] : formats[index]) ?? 0
}

/** Describe and Close name a statement (`S`) or a portal (`P`). */
export function readDescribe(frame: Frame): { readonly what: 'S' | 'P'; readonly name: string } {
  const body = createBodyReader(frame.body)
  return { what: body.int8() === 0x53 ? 'S' : 'P', name: body.text() }
}

/** The portal that is to be executed. */
export function readExecute(frame: Frame): string {
  return createBodyReader(frame.body).text()
}

export const syncMessage: Buffer = writeFrame('S')
export const flushMessage: Buffer = writeFrame('H')
export const terminateMessage: Buffer = writeFrame('X')

export function writeQuery(text: string): Buffer {
  return writeFrame('Q', zeroTerminated(text))
}

export function writeParse(name: string, text: string, types: readonly number[]): Buffer {
  const fields = [zeroTerminated(name), zeroTerminated(text), int16(types.length)]
  return writeFrame('P', ...fields, ...types.map(int32))
}

/** What a simple query of one statement says, in the extended protocol and without its Sync. */
export function writeExtended(text: string): Buffer {
  const unnamed = zeroTerminated('')
  return Buffer.concat([
    writeFrame('P', unnamed, zeroTerminated(text), int16(0)),
    writeFrame('B', unnamed, unnamed, int16(0), int16(0), int16(0)),
    writeFrame('D', Buffer.from('P'), unnamed),
    writeFrame('E', unnamed, int32(0)),
  ])
}
