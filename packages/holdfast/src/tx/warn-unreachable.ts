import { socketCodeOf } from '../core/sql-state.ts'

/** From when on somebody may ask why nothing happens. */
const silentMs = 1_000
/** Many wait for the same server; one of them says so. */
const againMs = 60_000

/** When it was last said of a reason. */
const saidAt = new Map<string, number>()

/** Says, as a process warning, that a database cannot be reached and is waited for. */
export function warnUnreachable(error: unknown, waitedMs: number, forMs: number): void {
  if (waitedMs < silentMs) return
  const code = socketCodeOf(error)
  const now = performance.now()
  if (now - (saidAt.get(code ?? '') ?? -Infinity) < againMs) return
  saidAt.set(code ?? '', now)
  const why = code === undefined ? '' : ` (${code})`
  process.emitWarning(
    `The database cannot be reached${why}. Holdfast tries again for up to ${Math.round(forMs / 100) / 10} s. Check host and port of the database URL, and that the server is running.`,
    { code: 'HOLDFAST_DATABASE_UNREACHABLE' },
  )
}
