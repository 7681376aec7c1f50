import type { Movement } from '../src/audit-trail.ts'
import type { Measured } from './measure.ts'

/** The two runs side by side. */
export function table(naive: Measured, ledger: Measured): string {
  const row = (label: string, value: (run: Measured) => string | number): string =>
    `${label.padEnd(32)}${String(value(naive)).padStart(20)}${String(value(ledger)).padStart(16)}`
  const statuses = new Set([...naive.answers.keys(), ...ledger.answers.keys()])
  return [
    `${''.padEnd(32)}${'look, check, write'.padStart(20)}${'with Holdfast'.padStart(16)}`,
    ...[...statuses]
      .toSorted((a, b) => a - b)
      .map((status) =>
        row(`answered ${status} ${meaning.get(status) ?? ''}`, ({ answers }) =>
          String(answers.get(status) ?? 0),
        ),
      ),
    row('orders that were taken', ({ orders }) => orders),
    row('orders taken twice', ({ ordersTwice }) => ordersTwice),
    row('pieces sold that were not there', ({ piecesOversold }) => piecesOversold),
    row('SKUs below zero', ({ skusBelowZero }) => skusBelowZero),
    row('pieces returned beyond the sale', ({ piecesOverReturned }) => piecesOverReturned),
  ].join('\n')
}

const meaning: ReadonlyMap<number, string> = new Map([
  [200, 'taken before'],
  [201, 'taken'],
  [409, 'not enough'],
  [422, 'refused'],
  [500, 'failed'],
])

/** Everything that happened to one SKU. */
export function trailTable(movements: readonly Movement[]): string {
  const rows = movements.map(({ sequence, at, kind, change, onHand, source, externalId }) =>
    [
      String(sequence).padStart(3),
      new Date(at).toISOString().slice(11, 23),
      kind.padEnd(7),
      `${change > 0 ? '+' : ''}${change}`.padStart(6),
      String(onHand).padStart(8),
      ` ${source.padEnd(12)}`,
      externalId,
    ].join(' '),
  )
  return ['  # at           kind    change  on hand  source       external id', ...rows].join('\n')
}

/** Why the demo failed: nothing if it showed what it is there to show. */
export function faults(naive: Measured, ledger: Measured, trail: readonly Movement[]): string[] {
  const found: string[] = []
  const damageOf = (run: Measured): number =>
    run.ordersTwice + run.piecesOversold + run.skusBelowZero + run.piecesOverReturned
  if (naive.ordersTwice === 0 || naive.piecesOversold === 0) {
    found.push('look, check, write did no damage: the races were not provoked')
  }
  if (damageOf(ledger) > 0) found.push('with Holdfast there is damage')
  if ((ledger.answers.get(500) ?? 0) > 0) found.push('with Holdfast requests failed')
  // Refusing everything would do no damage, either.
  if (ledger.orders === 0 || ledger.answers.get(201) !== ledger.orders) {
    found.push('with Holdfast not every order that was answered 201 is there, or none is')
  }
  let onHand = 0
  for (const movement of trail) {
    onHand += movement.change
    if (movement.onHand !== onHand) found.push('the audit trail does not add up')
  }
  if (trail.length === 0) found.push('there is no audit trail')
  return found
}
