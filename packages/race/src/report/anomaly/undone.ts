import type { Step } from '../../core/model.ts'

const name = String.raw`(?:"([^"]+)"|([\w$]+))`
const savepoint = new RegExp(String.raw`^\s*savepoint\s+${name}`, 'i')
const goesBack = new RegExp(
  String.raw`^\s*rollback\s+(?:(?:work|transaction)\s+)?to\s+(?:savepoint\s+)?${name}`,
  'i',
)

/** Steps that were taken back by a ROLLBACK TO: everything since the savepoint of that name. */
export function undoneIn(steps: readonly Step[]): ReadonlySet<Step> {
  const undone = new Set<Step>()
  const lanes = Map.groupBy(steps, ({ flow, lane }) => `${flow} ${lane}`)
  for (const lane of lanes.values()) {
    lane.forEach((step, place) => {
      const back = namedBy(goesBack, step)
      if (back === undefined || step.answer.error !== undefined) return
      const from = lane.slice(0, place).findLastIndex((one) => namedBy(savepoint, one) === back)
      if (from !== -1) for (const one of lane.slice(from + 1, place)) undone.add(one)
    })
  }
  return undone
}

function namedBy(pattern: RegExp, { statements }: Step): string | undefined {
  const [, quoted, plain] = pattern.exec(statements[0] ?? '') ?? []
  return quoted ?? plain?.toLowerCase()
}
