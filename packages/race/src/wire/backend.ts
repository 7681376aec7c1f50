import { createBodyReader } from './body-reader.ts'
import type { Frame } from './frame-reader.ts'
import { writeFrame, zeroTerminated } from './write-frame.ts'

/** What the server sends, as far as a gate has to understand it. */
export interface Column {
  readonly name: string
  /** Object id of its type. */
  readonly type: number
  /** 0 text, 1 binary; known only once the statement is bound. */
  readonly format: number
}

export function readRowDescription(frame: Frame): Column[] {
  const body = createBodyReader(frame.body)
  return Array.from({ length: body.int16() }, () => {
    const name = body.text()
    body.bytes(6)
    const type = body.int32()
    body.bytes(6)
    return { name, type, format: body.int16() }
  })
}

export function readDataRow(frame: Frame): (Buffer | null)[] {
  const body = createBodyReader(frame.body)
  return Array.from({ length: body.int16() }, () => {
    const length = body.int32()
    return length === -1 ? null : body.bytes(length)
  })
}

/** The command tag, `INSERT 0 1`. */
export function readCommandTag(frame: Frame): string {
  return createBodyReader(frame.body).text()
}

/** `I`, `T` or `E`. */
export function readTransactionState(frame: Frame): 'I' | 'T' | 'E' {
  const state = String.fromCharCode(frame.body.readUInt8(0))
  if (state !== 'I' && state !== 'T' && state !== 'E') throw new Error(`no state ${state}`)
  return state
}

export function readBackendPid(frame: Frame): number {
  return frame.body.readInt32BE(0)
}

/** Fields of an error or a notice by their letter: `C` is the SQLSTATE, `M` the message. */
export function readErrorFields(frame: Frame): Map<string, string> {
  const body = createBodyReader(frame.body)
  const fields = new Map<string, string>()
  for (let type = body.int8(); type !== 0; type = body.int8()) {
    fields.set(String.fromCharCode(type), body.text())
  }
  return fields
}

/** Ready for the next query, no transaction open. */
export const readyMessage: Buffer = writeFrame('Z', Buffer.from('I'))

export function writeError(fields: ReadonlyMap<string, string>): Buffer {
  const parts = [...fields].flatMap(([type, text]) => [Buffer.from(type), zeroTerminated(text)])
  return writeFrame('E', ...parts, Buffer.from([0]))
}

/** The value that a ParameterStatus tells, if it is about this parameter. */
export function readParameter(frame: Frame, name: string): string | undefined {
  const body = createBodyReader(frame.body)
  return body.text() === name ? body.text() : undefined
}
