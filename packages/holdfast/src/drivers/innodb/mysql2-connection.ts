import type { Row } from '../../core/driver.ts'
import type { InnodbConnection } from './innodb-connection.ts'

/** The part of a connection of `mysql2/promise` that we use. */
export interface Mysql2Connection {
  readonly threadId: number
  query(options: object): Promise<readonly [unknown, ...unknown[]]>
  execute(options: object): Promise<readonly [unknown, ...unknown[]]>
  prepare(options: never): Promise<{ execute(values: []): Promise<unknown> }>
  release(): void
  destroy(): void
}

/** What is beneath a connection with promises. */
interface Core {
  readonly config?: { readonly typeCast?: unknown }
}

/**
 * However the pool is set up, our rows are objects, and their values what mysql2 makes of them itself: a `typeCast` of the
 * pool may read the answers of prepared statements wrongly, and what it makes of our own columns is not for us. Whoever
 * converts by himself does it for whole numbers that are too large: as a text they lose nothing.
 */
export function asObjects(sql: string, core: object | undefined): object {
  const isCast = typeof (core as Core | undefined)?.config?.typeCast === 'function'
  return {
    sql,
    rowsAsArray: false,
    nestTables: false,
    namedPlaceholders: false,
    typeCast: (_field: unknown, next: () => unknown): unknown => next(),
    ...(isCast ? { supportBigNumbers: true } : {}),
  }
}

/** A connection of `mysql2/promise`; values are bound, never written into a text. */
export function mysql2Connection(native: Mysql2Connection): InnodbConnection {
  const { connection: core } = native as { readonly connection?: object }
  return {
    native,
    // The pool wraps it anew each time.
    sole: core ?? native,
    id: native.threadId,
    async send(sql, values = []) {
      const options = asObjects(sql, core)
      const [answer] = await withoutStack(() =>
        values.length === 0
          ? native.query(options)
          : native.execute({ ...options, values: [...values] }),
      )
      return rowsOf(answer)
    },
    async prepare(sql) {
      const statement = await native.prepare(asObjects(sql, core) as never)
      return () => withoutStack(() => statement.execute([]))
    },
    release: () => native.release(),
    destroy: () => native.destroy(),
  }
}

/**
 * mysql2 notes the stack of each statement, for an error that it may end with: a good part of what a statement costs in
 * this process. Of ours it would show where in here they were sent, which no caller wants to know.
 */
function withoutStack<T>(send: () => T): T {
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 0
  try {
    return send()
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
}

interface Header {
  readonly affectedRows?: number
  readonly serverStatus?: number
}

/** What a statement was answered with: rows, or one that says what it has done. */
export function rowsOf(answer: unknown): readonly Row[] {
  if (Array.isArray(answer)) return answer as Row[]
  const { affectedRows = 0, serverStatus = 0 } = answer as Header
  return [{ '#affected': affectedRows, '#open': (serverStatus & 1) === 1, '#status': serverStatus }]
}
