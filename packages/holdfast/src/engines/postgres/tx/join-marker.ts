import type { Statement } from '../../../core/driver.ts'
import { eq } from '../sql/operators.ts'

/**
 * For clients that cannot tell whether they are in a transaction. The setting lasts as long as one:
 * in autocommit it is gone before the next statement.
 */
export const joinMarker: Statement = {
  text: "SELECT pg_catalog.set_config('holdfast.joined', 'yes', true) AS joined",
  values: [],
}

/** Whether `joinMarker` came before, in the same transaction; not true, or null, otherwise. */
export const isMarked: string = `pg_catalog.current_setting('holdfast.joined', true) ${eq} 'yes'`
