/**
 * `import '@holdfast/race/jest'` in a test or a setup file: adds `toBeRaceFree` and `toHaveRace` to
 * jest's `expect`.
 *
 * @module
 */
import { type RaceMatchers, raceMatchers } from './matchers.ts'

export { type RaceMatchers, raceMatchers } from './matchers.ts'

declare global {
  namespace jest {
    // The parameters are those of @types/jest, which declarations that are merged must repeat.
    interface Matchers<R, T = {}> extends RaceMatchers<R> {}
  }
}

interface Expect {
  extend(matchers: typeof raceMatchers): void
}

const { expect } = globalThis as { readonly expect?: Expect }
if (expect === undefined) {
  throw new Error(
    '@holdfast/race/jest found no global expect. With injectGlobals: false, call expect.extend(raceMatchers) yourself.',
  )
}
expect.extend(raceMatchers)
