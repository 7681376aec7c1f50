/** Milliseconds in a unit of PostgreSQL's time settings; without one it is milliseconds already. */
const units: Readonly<Record<string, number>> = {
  us: 0.001,
  ms: 1,
  '': 1,
  s: 1_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}

/** A time setting as somebody wrote it: `5000`, `5s`, `0.5 min`. */
export function millisecondsOf(value: string): number {
  const [, amount, unit = ''] = /^\s*(-?[\d.]+(?:e\d+)?)\s*([a-z]*)\s*$/i.exec(value) ?? []
  const factor = units[unit]
  return amount === undefined || factor === undefined ? Number.NaN : Number(amount) * factor
}

/** Whether a switch is on; PostgreSQL takes every beginning of the words that is clear. */
export function isOn(value: string): boolean {
  return /^(on|1|t(r(ue?)?)?|y(es?)?)$/i.test(value.trim())
}

/** Units for people, and from how many milliseconds on they are used. */
const steps: readonly (readonly [unit: string, ms: number])[] = [
  ['days', 86_400_000],
  ['hours', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
]

/** A length of time for people: `90 s`, `12 min`, `3 days`. */
export function lengthOf(ms: number): string {
  const [unit, size] = steps.find(([, each]) => ms >= 2 * each) ?? ['ms', 1]
  return `${Math.floor(ms / size)} ${unit}`
}
