/**
 * `import '@holdfast/race/vitest'` in a test or a setup file: adds `toBeRaceFree` and `toHaveRace`
 * to vitest's `expect`.
 *
 * @module
 */
import { expect } from 'vitest'
import { type RaceMatchers, raceMatchers } from './matchers.ts'

export { type RaceMatchers, raceMatchers } from './matchers.ts'

declare global {
  // What every version of vitest builds its assertions on; its own interfaces changed their parameters.
  namespace Chai {
    interface Assertion extends RaceMatchers<void> {}
  }
}

expect.extend(raceMatchers)
