import type { Driver } from '../../../core/driver.ts'
import { holdfastError } from '../../../core/errors.ts'
import { dialectIn, type ServerFacts } from '../server.ts'

const which = { text: 'SELECT VERSION() AS version, @@performance_schema AS shown', values: [] }

const known = /* @__PURE__ */ new WeakMap<object, ServerFacts['dialect']>()

/**
 * Which product it is. MySQL tells nothing where it was started without its performance schema.
 *
 * @throws OBSERVE_NOT_SHOWN
 */
export async function dialectOf<Tx>({ alone }: Driver<Tx>): Promise<ServerFacts['dialect']> {
  const before = known.get(alone)
  if (before !== undefined) return before
  const [row] = await alone.query(which)
  const dialect = dialectIn(String(row?.['version']))
  if (dialect === 'mysql' && Number(row?.['shown']) !== 1) {
    const subject = 'performance_schema is off'
    throw holdfastError('OBSERVE_NOT_SHOWN', { details: { subject } })
  }
  known.set(alone, dialect)
  return dialect
}
