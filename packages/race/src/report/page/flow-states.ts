import type { History } from '../anomaly/history.ts'
import { sawOf } from '../saw.ts'
import { list } from '../words.ts'

/** What each flow is doing after a step, for the reader who goes through them one by one. */
export function flowStates(history: History, after: number): string[] {
  return history.flows.map((_, flow) => stateOf(history, flow, after))
}

function stateOf({ moments, transactions, flows }: History, flow: number, after: number): string {
  const own = moments.filter(({ step }) => step.flow === flow)
  const done = own.filter(({ step }) => step.index <= after)
  const last = done.at(-1)
  if (last === undefined) return 'has not begun'
  if (last.kind === 'crash' || last.kind === 'lost-answer') return 'is dead'
  const waiting = done.find(
    ({ step }) =>
      step.waitedFor.length > 0 && (step.resumedAfter ?? Number.POSITIVE_INFINITY) > after,
  )
  if (waiting !== undefined) {
    const others = waiting.step.waitedFor.map((other) => flows[other] ?? '?')
    return `waits for ${list(others)} since (${waiting.number})`
  }
  const open = transactions.find(
    (one) =>
      one.flow === flow && one.first <= after && (one.last ?? Number.POSITIVE_INFINITY) > after,
  )
  const read = done.findLast(({ kind }) => kind === 'read')
  const saw = read === undefined ? undefined : sawOf(read.step)
  const knows = saw === undefined ? '' : `, last read ${saw} at (${read?.number})`
  if (open !== undefined) return `in a transaction since (${open.first + 1})${knows}`
  return own.at(-1) === last ? 'is done' : `between transactions${knows}`
}
