import type { Statement } from '../core/driver.ts'
import { setLimitOf } from '../engines/postgres/ledger/upkeep.ts'
import type { Kernel } from './kernel.ts'
import { flags, kinds, type Operation } from './operation.ts'
import type { Request } from './sending/request.ts'
import type { AmountReader, Verdict } from './verdict.ts'

/** A limit, overdraft or backorder of one key, as an operation of one line of the kind `limit`. */
export interface LimitChange {
  readonly operation: Operation
  /** False hands the key back to what operations bring along, which `allowance` of the line is. */
  readonly pinned: boolean
}

/**
 * Sets the allowance of one key, or hands it back. Of a book with calendar windows the answer speaks of the current
 * window.
 */
export async function setLimit<Tx, A>(
  kernel: Kernel<Tx>,
  tx: Tx | undefined,
  { operation, pinned }: LimitChange,
  amounts: AmountReader<A>,
): Promise<Verdict<A>> {
  return await kernel.send(
    tx,
    operation,
    (schema, request) => statementOf(schema, request, pinned),
    amounts,
  )
}

function statementOf(schema: string, request: Request, pinned: boolean): Statement {
  const [line] = request.operation.lines
  const [account] = request.accounts
  if (line?.kind !== kinds.limit || account === undefined || request.owner === undefined) {
    throw new TypeError('a limit is set by one line of its own kind')
  }
  return setLimitOf(schema, account.bucket, [
    account.base,
    request.owner.base,
    request.id ?? null,
    request.operation.operationId ?? null,
    line.book,
    line.key ?? null,
    line.scope ?? line.key ?? null,
    line.allowance ?? null,
    pinned,
    ((line.flags ?? 0) & flags.walled) !== 0,
    line.unit ?? null,
    line.zone ?? null,
    line.note ?? null,
    line.scope === undefined,
  ])
}
