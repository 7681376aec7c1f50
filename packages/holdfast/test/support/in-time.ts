import type { Blocker, HoldfastError } from '../../src/errors.ts'

/**
 * How every failure begins that says that something came too late. A busy machine makes things late and never early,
 * so a test that fails with it is tried again (see vitest.config.ts): what is late by itself is late each time.
 */
const tooLate = 'too late'

/** Where the code is changed thousands of times, a busy machine must not count as a test that has noticed. */
const patience = Number(process.env['HOLDFAST_PATIENCE'] ?? 1)

/** It took less than so long. */
export function inTime(tookMs: number, limitMs: number): void {
  if (tookMs >= limitMs * patience)
    throw new Error(`${tooLate}: ${tookMs} ms, and not within ${limitMs}`)
}

/** Somebody is named in the error. The look for them is given up after 100 ms, which may be soon on a busy machine. */
export function named<E extends object>(error: E): E & { readonly blockers: readonly Blocker[] } {
  const { blockers } = error as HoldfastError
  if (blockers.length === 0) throw new Error(`${tooLate}: nobody was named in time`)
  return error as E & HoldfastError
}
