/**
 * All of many cases that are alike, or with `HOLDFAST_BRIEF=1` every third of them, or every so many: for a run that has
 * to end soon. The same ones each time, so that a failure comes back.
 */
export function sample<T>(cases: readonly T[], every = 3): readonly T[] {
  return process.env['HOLDFAST_BRIEF'] === '1' ? cases.filter((_, at) => at % every === 0) : cases
}

/** All of a row that goes from old to new, or with `HOLDFAST_BRIEF=1` its two ends. */
export function ends<T>(row: readonly T[]): readonly T[] {
  return process.env['HOLDFAST_BRIEF'] === '1'
    ? row.filter((_, at) => at === 0 || at === row.length - 1)
    : row
}
