import type { Answer } from '../core/model.ts'
import {
  type Column,
  readCommandTag,
  readDataRow,
  readErrorFields,
  readRowDescription,
} from '../wire/backend.ts'
import type { Frame } from '../wire/frame-reader.ts'
import { formatOf } from '../wire/frontend.ts'
import { valueText } from '../wire/value-text.ts'
import type { Reply } from './piece.ts'

/** How many rows, and how much of a value, a person wants to see. */
const rowLimit = 5
const textLimit = 200

/** Watches an answer go by and keeps what a person wants to see of it. */
export interface AnswerRecorder {
  /** `reply` is what the server owed when it sent this. */
  see(frame: Frame, reply: Reply | undefined): void
  answer(): Answer
}

export function createAnswerRecorder(): AnswerRecorder {
  let columns: readonly Column[] | undefined
  let formats: readonly number[] | undefined
  let rows: (string | null)[][] = []
  let rowCount = 0
  let tag: string | undefined
  let error: Answer['error']

  function see(frame: Frame, reply: Reply | undefined): void {
    switch (frame.type) {
      case 'T':
        columns = readRowDescription(frame)
        rows = []
        rowCount = 0
        if (reply?.kind === 'describe' && reply.prepared) reply.prepared.columns = columns
        break
      case 'D':
        if (reply?.kind === 'execute') {
          columns ??= reply.prepared?.columns
          formats = reply.formats
        }
        if (rows.length < rowLimit) rows.push(readDataRow(frame).map(cell))
        rowCount += 1
        break
      case 'C':
        tag = readCommandTag(frame)
        break
      case 'E': {
        const fields = readErrorFields(frame)
        error = { sqlstate: fields.get('C') ?? '', message: fields.get('M') ?? '' }
        break
      }
      default:
        break
    }
  }

  function cell(bytes: Buffer | null, index: number): string | null {
    if (bytes === null) return null
    const column = columns?.[index]
    const format = formats ? formatOf(formats, index) : (column?.format ?? 0)
    const text = valueText(bytes.subarray(0, textLimit * 4), column?.type ?? 0, format)
    return text.length > textLimit ? `${text.slice(0, textLimit)}…` : text
  }

  function answer(): Answer {
    return {
      ...(tag !== undefined && { tag }),
      ...(columns && { columns: columns.map((column) => column.name), rows }),
      rowCount: rowCount > 0 ? rowCount : affected(tag),
      ...(error && { error }),
    }
  }

  return { see, answer }
}

/** `UPDATE 3` says 3, `INSERT 0 1` says 1, `BEGIN` says nothing. */
function affected(tag: string | undefined): number {
  const count = tag?.split(' ').at(-1)
  return count !== undefined && /^\d+$/.test(count) ? Number(count) : 0
}
