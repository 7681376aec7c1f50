import { holdfastError } from '../core/errors.ts'

const defaultSchema = 'holdfast'

/** The server cuts longer names off, and two schemas could become one. */
const maxBytes = 63

/**
 * A name under which a schema of our own can exist. `public` is everybody's: functions that run
 * with their owner's rights must not look for their tables where others may create some.
 */
export function schemaName(name: string = defaultSchema): string {
  const problem =
    name === '' || name.includes('\0')
      ? 'schema is empty or contains NUL'
      : Buffer.byteLength(name) > maxBytes
        ? `schema is longer than ${maxBytes} bytes`
        : name === 'public' || name === 'information_schema' || name.startsWith('pg_')
          ? 'schema must be one of its own, not public or a system schema'
          : undefined
  if (problem === undefined) return name
  throw holdfastError('OPTION_INVALID', { details: { option: 'schema', subject: problem } })
}
