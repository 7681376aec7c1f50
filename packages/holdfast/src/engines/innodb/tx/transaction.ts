import { randomBytes } from 'node:crypto'
import type { Isolation, Statement } from '../../../core/driver.ts'
import { apartFromLimit, Texts } from '../sql/text.ts'

export const isolations: readonly Isolation[] = [
  'read committed',
  'repeatable read',
  'serializable',
]

const levels: Readonly<Record<Isolation, string>> = {
  'read committed': 'READ-COMMITTED',
  'repeatable read': 'REPEATABLE-READ',
  serializable: 'SERIALIZABLE',
}

/** By this name, which each product has for the level of the next transaction alone. */
const level = '/*M! @@tx_isolation *//*!80000 @@transaction_isolation */'

/**
 * Begins a transaction on a connection of ours. Autocommit is off and not BEGIN sent: what a body sends after the server
 * has ended its transaction is then in another one, which can be rolled back, and not saved statement by statement. Fails
 * with 1568, and changes nothing, if a transaction was left open there. READ COMMITTED unless told otherwise: at the server's default
 * level gaps are locked, and plain reads see what was there at the first one. What autocommit was is kept in the session.
 */
export function beginText(isolation: Isolation = 'read committed'): string {
  return `SET ${was} = @@autocommit, autocommit = 0, ${level} = '${levels[isolation]}'`
}

/** Of the session, and not of this process: it knows only here what it was. */
const was = '@holdfast_autocommit'

/** For one statement on its own. */
export const uncommittedText: string = `SET ${level} = 'READ-UNCOMMITTED'`

export const rollbackText = 'ROLLBACK'
/** What was sent alone, in a session whose pool has autocommit off. */
export const commitAloneText = 'COMMIT'
/**
 * Commits what is open, by switching autocommit on, and fails as COMMIT does; and the session is as it was, also one that
 * its pool has set up without autocommit. After COMMIT that took another statement.
 */
export const commitText: string = `SET autocommit = 1, autocommit = ${was}`

/** Of this process, so that nobody sets or releases it by accident. */
const name = `holdfast_${randomBytes(6).toString('hex')}`

/**
 * The tripwire. A savepoint lives as long as its transaction: if it is gone in the end, the transaction that would be
 * committed is not the one that was begun, whatever has ended that: a deadlock, DDL, BEGIN, a procedure.
 */
export const wire: { readonly set: string; readonly release: string } = {
  set: `SAVEPOINT ${name}`,
  release: `RELEASE SAVEPOINT ${name}`,
}

/**
 * Statements as one, which only MariaDB has outside of procedures: one way there and back, and the first that fails ends
 * it. A limit counts for the whole, because one inside is passed over.
 */
function inOne(texts: readonly string[]): string {
  const parts = texts.map((text) => apartFromLimit(text))
  const limit = parts.map(([before]) => before).join('')
  return `${limit}BEGIN NOT ATOMIC ${parts.map(([, rest]) => rest).join('; ')}; END`
}

const openings = /* @__PURE__ */ new Texts()

/** Begins a transaction and sets its tripwire, and runs its first statement, as one. */
export function openInOne(isolation: Isolation | undefined, first?: Statement): Statement {
  const beginning = [beginText(isolation), wire.set]
  if (first === undefined) return plain(inOne(beginning))
  const { text, values } = first
  return { text: openings.of(text, isolation ?? '', () => inOne([...beginning, text])), values }
}

/** Looks whether the transaction is the one that was begun, and commits it. */
export const commitWhole: string = inOne([wire.release, commitText])

function plain(text: string): Statement {
  return { text, values: [] }
}

/** Answered with an OK packet, which says whether a transaction is open. */
export const nothing = 'DO 0'

/** Ends what a connection is running, and neither its transaction nor the connection. */
export function cancelText(connection: number): string {
  return `KILL QUERY ${Math.trunc(connection)}`
}
