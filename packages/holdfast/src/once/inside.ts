import { AsyncLocalStorage } from 'node:async_hooks'
import type { Driver } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { processWide } from '../core/process-wide.ts'
import type { OnceNames } from './engine.ts'

/** A body that is at work, for its key. */
interface Working {
  readonly driver: object
  readonly names: OnceNames
  readonly outer: Working | undefined
  over: boolean
}

const working = /* @__PURE__ */ processWide('once/1', () => new AsyncLocalStorage<Working>())

/**
 * A key inside of its own body can neither be waited for nor be done: the server would tell of a conflict, which no
 * repetition ends.
 *
 * @throws OPTION_INVALID
 */
export function assertNotInside<Tx>(driver: Driver<Tx>, { key, scope }: OnceNames): void {
  for (let each = working.getStore(); each !== undefined; each = each.outer) {
    const { names, over } = each
    if (over || each.driver !== driver || names.key !== key || names.scope !== scope) continue
    const subject =
      'once was called inside of its own body with the same key: the inner work needs a key of its own'
    throw holdfastError('OPTION_INVALID', { details: { option: 'key', subject } })
  }
}

/** Runs the body of a key, until whose end the key is at work. */
export async function insideOf<Tx, T>(
  driver: Driver<Tx>,
  names: OnceNames,
  body: () => T,
): Promise<Awaited<T>> {
  const here: Working = { driver, names, outer: working.getStore(), over: false }
  try {
    return await working.run(here, body)
  } finally {
    here.over = true
  }
}
