import { expectTypeOf } from 'vitest'
import type { ClaimFinding } from '../../src/entries/claims.ts'
import { holdfastError } from '../../src/core/errors.ts'
import type { OrderStep } from '../../src/core/locks/order-graph.ts'
import type { ErrorDetailsOf } from '../../src/errors.ts'
import { type ErrorCode, isHoldfastError } from '../../src/index.ts'
import type { Refusal, Refused } from '../../src/ledger/index.ts'

/** U8: the code that was asked for is the code that there is, and its details are typed. */
export function narrowed(error: unknown): void {
  if (isHoldfastError(error, 'LOCK_TIMEOUT')) {
    expectTypeOf(error.code).toEqualTypeOf<'LOCK_TIMEOUT'>()
    expectTypeOf(error.details.names).toEqualTypeOf<readonly string[]>()
    expectTypeOf(error.details.endedBy).toEqualTypeOf<
      'wait' | 'lock_timeout' | 'statement_timeout' | 'client' | undefined
    >()
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
      expectTypeOf(error.details.verdict.reason).toEqualTypeOf<Refusal>()
  }
}

/** U8: what a detail is made of is known as well. */
export function exact(): void {
  type Held = NonNullable<ErrorDetailsOf<'POOL_STARVED'>['held']>
  expectTypeOf<Held['transactions']>().toEqualTypeOf<number>()
  expectTypeOf<Held['others']>().toEqualTypeOf<number | undefined>()
  expectTypeOf<Held['oldestMs']>().toEqualTypeOf<number | undefined>()
  type Verdict = ErrorDetailsOf<'LEDGER_HOLD_REFUSED'>['verdict']
  expectTypeOf<Verdict>().toEqualTypeOf<Refused<number | bigint>>()
  expectTypeOf<ErrorDetailsOf<'SHARD_HOLD_INCOMPLETE'>['verdict']>().toEqualTypeOf<Verdict>()
  type Findings = ErrorDetailsOf<'CLAIM_TABLE_UNFIT'>['findings']
  expectTypeOf<Findings>().toEqualTypeOf<readonly ClaimFinding[]>()
  type Order = ErrorDetailsOf<'LOCK_ORDER'>
  expectTypeOf<Order['cycle']>().toEqualTypeOf<readonly OrderStep[]>()
  expectTypeOf<Order['fault']>().toEqualTypeOf<'out-of-order' | 'upgrade' | 'rows-first'>()
  expectTypeOf<ErrorDetailsOf<'TX_ENDED_INSIDE'>['ended']>().toEqualTypeOf<
    'refused' | 'committed' | 'rolled back' | 'unknown'
  >()
  expectTypeOf<ErrorDetailsOf<'LEDGER_BOOK_DIFFERS'>['differs'][number]>().toEqualTypeOf<{
    readonly option: string
    readonly kept: string | undefined
    readonly here: string | undefined
  }>()
}

/** U8: whoever throws is held to the table. */
export function thrown(): void {
  // @ts-expect-error -- it is called names
  void holdfastError('LOCK_BUSY', { details: { subject: 'a', name: ['a'] } })
  // @ts-expect-error -- it has the findings as well
  void holdfastError('CLAIM_TABLE_UNFIT', { details: { subject: 'outbox' } })
}
