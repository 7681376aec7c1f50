/** A fix as a change of one statement, where nothing else of the code has to change. */
import type { Place } from '../../core/model.ts'
import type { Moment } from '../anomaly/history.ts'

/** What is to stand in the place of what the code sends now. */
export interface StatementEdit {
  readonly place: Place
  readonly before: string
  /** What is added to it, at `at`. */
  readonly added: string
  readonly at: number
  /** What has to be done besides, if the words of the fix do not say it. */
  readonly told?: string
}

const combined = /\b(?:UNION|INTERSECT|EXCEPT|DISTINCT|GROUP\s+BY|HAVING|WINDOW|FOR)\b/i

/** The read takes a lock of what it finds: `FOR UPDATE` at its end. */
export function lockingEdit(read: Moment, lock: string): StatementEdit | undefined {
  const { verb, aggregate } = read.statement
  const sent = onlyStatement(read)
  if (sent === undefined || verb !== 'SELECT' || aggregate !== undefined) return undefined
  if (combined.test(sent.before)) return undefined
  return { ...sent, added: ` ${lock}`, at: endOf(sent.before) }
}

/** The write has one more condition, which names columns and what stands in the statement already. */
export function conditionEdit(write: Moment, condition: string): StatementEdit | undefined {
  const sent = onlyStatement(write)
  const { whereTokens } = write.statement
  if (sent === undefined || whereTokens.length === 0) return undefined
  const { before } = sent
  if (whereTokens.some(({ upper }) => ['OR', 'SELECT'].includes(upper))) return undefined
  // A number that is not in the text came as a parameter, and is another one the next time.
  const numbers = condition.match(/(?<![\w.])\d+(?:\.\d+)?/g) ?? []
  if (numbers.some((one) => !new RegExp(`(?<![\\w.$])${one}(?![\\w.])`).test(before))) {
    return undefined
  }
  const returning = /\s+RETURNING\b/i.exec(before)
  return { ...sent, added: ` AND ${condition}`, at: returning?.index ?? endOf(before) }
}

/** The write passes over what a constraint keeps out; without the constraint the server refuses it. */
export function conflictEdit(
  write: Moment,
  { target, index }: { readonly target: string; readonly index: string },
): StatementEdit | undefined {
  const sent = onlyStatement(write)
  if (sent === undefined || write.statement.verb !== 'INSERT') return undefined
  const returning = /\s+RETURNING\b/i.exec(sent.before)
  return {
    ...sent,
    added: ` ON CONFLICT ${target} DO NOTHING`,
    at: returning?.index ?? endOf(sent.before),
    told: `Run ${index} first, and look at how many rows were inserted: 0 means that it was there.`,
  }
}

function onlyStatement({
  step: { statements, from },
}: Moment): { readonly place: Place; readonly before: string } | undefined {
  const [before, more] = statements
  if (before === undefined || more !== undefined || from === undefined) return undefined
  return { place: from, before }
}

/** Before a semicolon and blanks. */
function endOf(text: string): number {
  return text.replace(/[\s;]+$/, '').length
}
