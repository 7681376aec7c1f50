/** The zoo's own words: what an entry is, and what its flows are given. */
import { sqlstateOf } from '../../packages/race/src/run/answer/error-layers.ts'

export type Row = Record<string, unknown>

/** One statement; what it returns are its rows, on every client. */
export type Ask = (text: string, ...values: readonly unknown[]) => Promise<Row[]>

export type Isolation = 'READ COMMITTED' | 'REPEATABLE READ' | 'SERIALIZABLE'

/** What every client can do. Flows are written against this, so that each of them runs on all clients. */
export interface Db {
  /** In autocommit. */
  readonly ask: Ask
  transaction<T>(body: InTransaction<T>, isolation?: Isolation): Promise<T>
}

/** `rowByRow` gets its rows from a cursor, one at a time, where the client has cursors. */
export type InTransaction<T> = (ask: Ask, rowByRow: Ask) => Promise<T>

/** What one flow is given in one run. */
export interface Kit extends Db {
  /** The flow's name: `a`, `b`, … */
  readonly who: string
  /** Something outside of the database, as long and of the kind that the variant says. */
  wait(): Promise<unknown>
  /** Inserts a row with a key and a moment as the variant draws them; the answer will carry both. */
  record(ask: Ask, table: string, columns: Row): Promise<void>
  /** What the flow returns: a status, and what comes of chance beside it. */
  answer(status: number, more?: Row): Row
}

export type Play = (kit: Kit) => Promise<unknown>

/** A flow or several, whose answer is known. */
export interface Entry {
  readonly name: string
  readonly racy: boolean
  /** Why the known answer is right. */
  readonly why: string
  /** Once before the exploration. Tables are named plainly; the variant puts them into a schema. */
  readonly tables: readonly string[]
  /** Before every run, after all tables were emptied. */
  readonly rows: readonly string[]
  /** By name; a single function is played by `a` and `b`. */
  readonly flows: Play | Readonly<Record<string, Play>>
  /** `fail`: a deadlock is what is looked for. */
  readonly deadlocks?: 'fail'
}

/** Prisma has a word of its own for a serialization failure or a deadlock, which carries no code of the server. */
function codeOf(error: unknown): string | undefined {
  const own: unknown = (error as { code?: unknown } | null)?.code
  return sqlstateOf(error) ?? (own === 'P2034' ? '40001' : undefined)
}

/** Runs the body; if it ends with one of these codes, the answer is a refusal. */
export async function orRefuse(
  kit: Kit,
  codes: readonly string[],
  body: () => Promise<unknown>,
): Promise<unknown> {
  try {
    return await body()
  } catch (error) {
    if (codes.includes(codeOf(error) ?? '')) return kit.answer(409)
    throw error
  }
}

/** Runs the body again as long as the server says that it should be. */
export async function withRetry(body: () => Promise<unknown>): Promise<unknown> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await body()
    } catch (error) {
      if (!['40001', '40P01'].includes(codeOf(error) ?? '') || attempt === 5) throw error
    }
  }
}

/** A column of the first row as a number. */
export async function numberOf(rows: Promise<Row[]>, column = 'n'): Promise<number> {
  return Number((await rows)[0]?.[column])
}
