import type { TSESTree } from '@typescript-eslint/types'
import type { SourceCode } from 'eslint'
import type { Library } from '../clients/library.ts'
import type { Chain } from '../syntax/chain.ts'
import { type Node, walk } from '../syntax/node.ts'
import { runsWithin } from '../syntax/running.ts'

/** A piece of code that runs while a transaction is open. */
export interface Transaction {
  /** What opened it, as it is written: `prisma.$transaction`. */
  readonly name: string
  /** The function, or the block with the statements from BEGIN to COMMIT. */
  readonly region: Node
  /** Of a block: where the transaction begins and ends. */
  readonly span?: TSESTree.Range
  /** Of a block: what comes after it has ended in a branch. */
  readonly after?: readonly TSESTree.Range[]
  /** The clients that its handle may be of. */
  readonly libraries: readonly Library[]
  /** The client that opened it, if that is surely no handle of another transaction. */
  readonly root?: Chain
  /** What statements of the transaction are made with. */
  readonly handle?: Chain
  /** Whether the body takes the handle; else the client may know the transaction by itself. */
  readonly takesHandle: boolean
}

/** What opens a transaction as it is written, on one line. */
export function nameOf(source: SourceCode, opener: Node): string {
  return source.getText(opener as never).replace(/\s+/g, '')
}

/** Calls `visit` with everything that runs while the transaction is open. */
export function visitWithin(
  source: SourceCode,
  transaction: Transaction,
  visit: (node: Node) => void,
): void {
  const { region, span, after = [] } = transaction
  walk(source, region, (node) => {
    if (span !== undefined && !isBetween(node, span)) return
    if (after.some((range) => isBetween(node, range))) return
    if (node !== region && runsWithin(source, node, region)) visit(node)
  })
}

/** Whether a node is in a transaction of this list. */
export function isInTransaction(node: Node, transactions: readonly Transaction[]): boolean {
  return transactions.some(({ region, span }) => isBetween(node, span ?? region.range))
}

function isBetween({ range }: Node, [start, end]: TSESTree.Range): boolean {
  return range[0] >= start && range[1] <= end
}
