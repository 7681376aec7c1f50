import { callersOf, linesOf } from '../locks/call-site.ts'
import { isHoldfastError } from '../errors.ts'
import { processWide } from '../process-wide.ts'

/** Errors whose stack begins with a caller: the one that asked for what failed, and not one further out. */
const placed = /* @__PURE__ */ processWide('placed-errors/1', () => new WeakSet<object>())

/**
 * The same promise, for a caller: if it fails, the stack of the error begins where it was asked for. Nothing is looked
 * at until then: after an `await` V8 knows who awaits this.
 */
export async function toldAtCaller<T>(result: Promise<T>): Promise<T> {
  try {
    return await result
  } catch (error) {
    if (isHoldfastError(error) && !placed.has(error)) {
      placed.add(error)
      place(error)
    }
    throw error
  }
}

/**
 * A failure for a promise that is not awaited here: resolve it with this. When it fails, V8 knows who awaits that one,
 * as above.
 */
export async function failedAtCaller(error: unknown): Promise<never> {
  return await toldAtCaller(failing(error))
}

/** Not before whoever is resolved with it waits for it. */
async function failing(error: unknown): Promise<never> {
  for (let turn = 0; turn < 3; turn += 1) await Promise.resolve()
  throw error
}

/** Our own lines come last: they are for us. */
function place(error: Error): void {
  const site: { readonly stack?: string } = {}
  Error.captureStackTrace(site, toldAtCaller)
  const caller = callersOf(site)
  // Whoever does not await it is not known.
  if (caller === '') return
  const [lines, own] = [linesOf(site.stack), linesOf(error.stack)]
  const asked = lines.slice(lines.indexOf(caller))
  const rest = own.filter((line) => !asked.includes(line))
  error.stack = [`${error.name}: ${error.message}`, ...asked, ...rest].join('\n')
}
