/**
 * All of many cases that are alike, or with `HOLDFAST_BRIEF=1` every third of them, or every so many, from the first or
 * a later one: for a run that has to end soon. The same ones each time, so that a failure comes back.
 */
export function sample<T>(cases: readonly T[], every = 3, from = 0): readonly T[] {
  return process.env['HOLDFAST_BRIEF'] === '1'
    ? cases.filter((_, at) => at % every === from)
    : cases
}

/** All of a row that goes from old to new, or with `HOLDFAST_BRIEF=1` its two ends. */
export function ends<T>(row: readonly T[]): readonly T[] {
  return process.env['HOLDFAST_BRIEF'] === '1'
    ? row.filter((_, at) => at === 0 || at === row.length - 1)
    : row
}

/** How often to do what is repeated to be sure: so many times, or with `HOLDFAST_BRIEF=1` a third of it, or such a part. */
export function rounds(many: number, part = 3): number {
  return process.env['HOLDFAST_BRIEF'] === '1' ? Math.ceil(many / part) : many
}

/**
 * Each of one row with all of another one, or with `HOLDFAST_BRIEF=1` with one of them, in turn: then all of both are
 * tried, and not each with each.
 */
export function inTurn<A, B>(
  one: readonly A[],
  other: readonly B[],
): readonly (readonly [A, readonly B[]])[] {
  return one.map((each, at) => [
    each,
    process.env['HOLDFAST_BRIEF'] === '1'
      ? other.filter((_, place) => place === at % other.length)
      : other,
  ])
}
