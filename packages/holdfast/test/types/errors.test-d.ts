import { expectTypeOf } from 'vitest'
import { type ErrorCode, isHoldfastError } from '../../src/index.ts'

/** U8: the code that was asked for is the code that there is, and its details are typed. */
export function narrowed(error: unknown): void {
  if (isHoldfastError(error, 'LOCK_TIMEOUT')) {
    expectTypeOf(error.code).toEqualTypeOf<'LOCK_TIMEOUT'>()
    expectTypeOf(error.details.names).toEqualTypeOf<readonly string[]>()
    expectTypeOf(error.details.endedBy).toEqualTypeOf<string | undefined>()
    expectTypeOf(error.blockers[0]?.pid).toEqualTypeOf<number | undefined>()
    // @ts-expect-error -- this code has no such detail
    void error.details.verdict
  }
  if (isHoldfastError(error, 'LOCK_TIMEOUT', 'OPTION_INVALID')) {
    expectTypeOf(error.code).toEqualTypeOf<'LOCK_TIMEOUT' | 'OPTION_INVALID'>()
    if (error.code === 'OPTION_INVALID') expectTypeOf(error.details.option).toEqualTypeOf<string>()
  }
  if (isHoldfastError(error)) {
    expectTypeOf(error.code).toEqualTypeOf<ErrorCode>()
    if (error.code === 'LEDGER_HOLD_REFUSED')
      expectTypeOf(error.details.verdict.reason).toEqualTypeOf<string>()
  }
}
