import { isNotPrepared } from '../../engines/innodb/errno.ts'
import { commitWhole } from '../../engines/innodb/tx/transaction.ts'

/** The part of a connection that this needs. */
interface Committing {
  readonly sole: object
  send(text: string): Promise<unknown>
  prepare?(text: string): Promise<() => Promise<unknown>>
}

/** What commits on a connection that was used before: by a statement that is prepared there, if it can be. */
const prepared = new WeakMap<object, (() => Promise<unknown>) | 'used'>()

/**
 * Gives what looks for the tripwire and commits. A block of statements is dear to read each time, so it is prepared, but
 * not for a connection that is used only once; and before BEGIN, so that an answer that is lost at the end is one to COMMIT.
 */
export async function committing(connection: Committing): Promise<() => Promise<unknown>> {
  const { sole, send, prepare } = connection
  const plainly = (): Promise<unknown> => send(commitWhole)
  const known = prepared.get(sole)
  if (known === undefined) prepared.set(sole, 'used')
  if (known === undefined || prepare === undefined) return plainly
  const run = known === 'used' ? await prepare(commitWhole).catch(() => undefined) : known
  // Whatever is wrong, BEGIN will say it; or the server has no room for another prepared statement.
  if (run === undefined) return plainly
  prepared.set(sole, run)
  return async () => {
    try {
      return await run()
    } catch (error) {
      if (!isNotPrepared(error)) throw error
      // The session was reset, and gives no number twice. Nothing was run.
      prepared.delete(sole)
      return await plainly()
    }
  }
}
