import { stock } from './stock.ts'

/** One movement of a SKU: what changed, what was there afterwards, and why. */
export interface Movement {
  readonly sequence: number
  readonly at: Date
  readonly kind: string
  readonly change: number
  readonly onHand: number
  readonly source: string
  readonly externalId: string
}

/** What happened to a SKU, first to last. The ledger keeps it anyway; nothing is added up here. */
export async function auditTrail(sku: string): Promise<Movement[]> {
  const { movements } = await stock.history(sku, { limit: 1_000 })
  return movements.toReversed().map((movement) => ({
    sequence: movement.sequence,
    at: movement.at,
    kind: movement.kind,
    change: movement.credit - movement.debit,
    onHand: movement.credited - movement.debited,
    source: textOf(movement.note?.['source']),
    externalId: movement.operationId,
  }))
}

/** Notes are the callers' own: anything JSON can be. */
function textOf(word: unknown): string {
  return typeof word === 'string' ? word : ''
}
