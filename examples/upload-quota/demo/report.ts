import type { Measured, Plan } from './measure.ts'

/** The two runs side by side. */
export function table(unguarded: Measured, guarded: Measured): string {
  const row = (label: string, value: (run: Measured) => string): string =>
    `${label.padEnd(26)}${value(unguarded).padStart(20)}${value(guarded).padStart(20)}`
  const statuses = new Set([...unguarded.answers.keys(), ...guarded.answers.keys()])
  return [
    `${''.padEnd(26)}${'without the guard'.padStart(20)}${'with the guard'.padStart(20)}`,
    ...[...statuses]
      .toSorted((a, b) => a - b)
      .map((status) =>
        row(`answered ${status} ${meaning.get(status) ?? ''}`, ({ answers }) =>
          String(answers.get(status) ?? 0),
        ),
      ),
    row('users over the limit', ({ usersOver, users }) => `${usersOver} of ${users}`),
    row('bytes over the limit', ({ bytesOver }) => bytesOver.toLocaleString('en')),
  ].join('\n')
}

const meaning: ReadonlyMap<number, string> = new Map([
  [201, 'saved'],
  [413, 'over quota'],
  [503, 'try again'],
])

/** Why the demo failed: nothing if it showed what it is there to show. */
export function faults(unguarded: Measured, guarded: Measured, plan: Plan): string[] {
  const found: string[] = []
  if (unguarded.usersOver === 0) {
    found.push('without the guard nobody got over the limit: the race was not provoked')
  }
  if (guarded.usersOver > 0) {
    found.push(`with the guard ${guarded.usersOver} users got over the limit`)
  }
  // Refusing everything would keep the limit, too.
  if (guarded.answers.get(201) !== plan.rounds * plan.users) {
    found.push('with the guard not every user got the one image there was room for')
  }
  return found
}
