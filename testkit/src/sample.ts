/**
 * All of many cases that are alike, or with `HOLDFAST_BRIEF=1` every third of them: for a run that has to end
 * soon. The same ones each time, so that a failure comes back.
 */
export function sample<T>(cases: readonly T[]): readonly T[] {
  return process.env['HOLDFAST_BRIEF'] === '1' ? cases.filter((_, at) => at % 3 === 0) : cases
}
