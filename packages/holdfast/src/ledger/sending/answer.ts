import { holdfastError } from '../../core/errors.ts'

/** What the database answered about one line; see `sql/app/apply.sql`. */
export interface LineAnswer {
  readonly line: number
  readonly status: number
  readonly seq: string
  readonly credited: string
  readonly debited: string
  readonly held: string
  readonly allowance: string
  readonly at: string
  readonly extra: string | undefined
}

/** Statuses of `apply`. */
export const statuses = {
  accepted: 0,
  replayed: 1,
  short: 2,
  conflict: 3,
  unknown: 4,
  ended: 5,
  tooLarge: 6,
  overRefund: 7,
  twice: 8,
  otherLine: 9,
  refusedBefore: 10,
} as const

/** Splits the one text of an answer into its lines, grouped by request; none for one left out. */
export function answersOf(text: unknown, sizes: readonly number[]): LineAnswer[][] {
  if (typeof text !== 'string') throw holdfastError('LEDGER_ANSWER_UNREADABLE')
  const groups: LineAnswer[][] = sizes.map(() => [])
  const groupOf: number[] = []
  sizes.forEach((size, group) => {
    for (let at = 0; at < size; at += 1) groupOf.push(group)
  })
  if (text === '') return groups
  for (const row of text.split('\n')) {
    const answer = lineAnswer(row)
    const group = groups[groupOf[answer.line - 1] ?? -1]
    if (group === undefined) throw holdfastError('LEDGER_ANSWER_UNREADABLE')
    group.push(answer)
  }
  return groups
}

function lineAnswer(row: string): LineAnswer {
  const parts = row.split(',')
  const [line, status, seq, credited, debited, held, allowance, at] = parts
  if (
    seq === undefined ||
    credited === undefined ||
    debited === undefined ||
    held === undefined ||
    allowance === undefined ||
    at === undefined
  ) {
    throw holdfastError('LEDGER_ANSWER_UNREADABLE')
  }
  return {
    line: Number(line),
    status: Number(status),
    seq,
    credited,
    debited,
    held,
    allowance,
    at,
    extra: parts.length === 8 ? undefined : parts.slice(8).join(','),
  }
}
