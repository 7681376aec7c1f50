import type { Kernel } from '../../src/ledger/kernel.ts'
import { accountId } from '../../src/ledger/account-id.ts'
import { single } from '../../src/ledger/book.ts'
import { readGrants } from '../../src/ledger/grants.ts'
import { setLimit } from '../../src/ledger/limit.ts'
import { flags, kinds } from '../../src/ledger/operation.ts'
import { peek } from '../../src/ledger/reads/peek.ts'
import { createReads } from '../../src/ledger/reads/reads.ts'
import { numberAmounts } from '../../src/ledger/verdict.ts'
import type { KeyTerms, Single } from './ledger-command.ts'
import { answerOf, timesOf } from './ledger-player-answer.ts'
import { book, nameOf } from './ledger-player-lines.ts'

interface How {
  readonly scope: string
  readonly schema: string
  readonly termsOf: (key: string) => KeyTerms
}

/** What is a call of its own, in the words of the model. Undefined for what has no answer. */
export async function ask<Tx>(
  kernel: Kernel<Tx>,
  tx: Tx | undefined,
  command: Single,
  { scope, schema, termsOf }: How,
): Promise<unknown> {
  switch (command.act) {
    case 'limit': {
      const { id, key, limit, pinned } = command
      const { unit, zone } = termsOf(key)
      const window = unit === undefined ? {} : { unit, zone }
      const line = { kind: kinds.limit, book, allowance: String(limit), ...window }
      const operation = single(line, key, { operationId: nameOf(id), scope })
      const verdict = await setLimit(kernel, tx, { operation, pinned }, numberAmounts)
      return { ...answerOf(verdict), ...timesOf(verdict) }
    }
    case 'peek': {
      const { key, amount, allowance } = command
      const { unit, zone, everyUs, burst, rolling } = termsOf(key)
      const line = {
        book,
        amount: String(amount),
        allowance: String(burst ?? allowance),
        flags: rolling === true ? flags.rolling : 0,
        ...(everyUs === undefined ? {} : { everyUs: String(everyUs) }),
        ...(unit === undefined ? {} : { unit, zone }),
      }
      const found = await peek(kernel, tx, accountId(scope, book, key), line, numberAmounts)
      return { ...found, window: inMs(found.window), retryAt: found.retryAt?.getTime() }
    }
    case 'balance': {
      const reads = createReads(kernel)
      const found = await (tx === undefined
        ? reads.balance(book, command.key, { scope })
        : reads.balance(tx, book, command.key, { scope }))
      return { ...found, window: inMs(found.window), at: found.at?.getTime() }
    }
    case 'grants': {
      const account = accountId(scope, book, command.key)
      const found = await readGrants(kernel, tx, book, account, true, numberAmounts)
      return found.map(
        ({ priority, amount, remaining, lapsed, state, expiresAt, onlyFor }) =>
          `${priority} ${amount} ${remaining} ${lapsed} ${state} ${expiresAt?.getTime() ?? 'never'} ${String(onlyFor)}`,
      )
    }
    case 'sweep': {
      const statement = (name: string): { text: string; values: [] } => {
        return { text: `SELECT "${name}".sweep(1000) AS answer`, values: [] }
      }
      for (;;) {
        const [row] = await kernel.read(tx, () => statement(schema))
        if (String(row?.['answer']).endsWith(',0')) return undefined
      }
    }
    case 'clock':
      throw new Error('the clock is not a matter of the ledger')
  }
}

function inMs(
  window: { readonly start: Date; readonly end: Date } | undefined,
): { start: number; end: number } | undefined {
  return window && { start: window.start.getTime(), end: window.end.getTime() }
}
