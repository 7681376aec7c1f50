/** `npm run race:soundness`: also the specs that take minutes. */
export const long: boolean = process.env['RACE_SOUNDNESS'] === 'long'

const [first = 1, last = 16] = (process.env['RACE_SEEDS']?.split('-') ?? []).map(Number)

/** Of the specs that are drawn; `RACE_SEEDS=17-200` draws others. */
export const seeds: readonly number[] = Array.from(
  { length: last - first + 1 },
  (_, at) => first + at,
)
