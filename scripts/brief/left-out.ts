/**
 * What a run with `HOLDFAST_BRIEF=1` leaves out besides what `sample` and `ends` leave out of a row of like cases: files
 * and tests that show a guarantee which others show too, in fewer seconds or by another road. Each says which ones.
 * Nothing here is the only test of a guarantee, nor the only control of one. A run without the variable runs all of it.
 */
import { readFileSync } from 'node:fs'

/** A file, or some of its tests. */
export interface LeftOut {
  /** From the root of the repository. */
  readonly file: string
  /** Titles of tests, or of groups of them, as they are shown; the whole file if there are none. */
  readonly tests?: readonly string[]
  /** What says the same and still runs. */
  readonly because: string
}

export const leftOut: readonly LeftOut[] = [
  {
    file: 'examples/booking/test/race.test.ts',
    because:
      'docs/recipes.test.ts explores the same bug, which it has to find, and the same constraint; demo.test.ts counts all three',
  },
  {
    file: 'examples/coupons/test/race.test.ts',
    because: 'docs/recipes.test.ts explores a fix of the same bug; demo.test.ts counts all three',
  },
  {
    file: 'packages/race/test/integration/hunt/command.test.ts',
    tests: [
      'a bank that is gone answers from the recording',
      'the control: with --elsewhere send it is asked, and the call is in no pair',
    ],
    because:
      'elsewhere.test.ts has both in this process, and written-tests.test.ts hunts with the bank by the command',
  },
  {
    file: 'packages/race/test/integration/hunt/command.test.ts',
    tests: ['page, SARIF, remarks for GitHub, a recording that is hunted in once more'],
    because:
      'github-action.test.ts reads what the command hands over, and the test of --keep hunts in a recording',
  },
  {
    file: 'packages/race/test/integration/hunt/hunt.test.ts',
    tests: ['a call whose limits could not be looked for in time is not refuted'],
    because:
      '"without the time to look for limits nothing is refuted" says so without 12 seconds of waiting',
  },
  {
    file: 'packages/race/test/integration/hunt/written-tests.test.ts',
    tests: ['vitest runs it too'],
    because:
      'node --test runs the same text here, and packed-race.test.ts has the package in each runner',
  },
  {
    file: 'packages/race/test/integration/holdfast/rows.test.ts',
    tests: ['three', 'work between read and write, twice'],
    because: 'two of them are explored in the same way, and three at once in locks.test.ts',
  },
  {
    file: 'packages/race/test/integration/holdfast/schedule.test.ts',
    tests: ['transactional, three of them'],
    because: 'two of them are explored in the same way, and its control is about two',
  },
  {
    file: 'packages/race/test/integration/search/review.test.ts',
    tests: ['a timer of 80 ms'],
    because:
      'timers are waited for in "X1, X2: what follows a known wait is not taken for idle at once"',
  },
]

/** Whether this is a run that has to end soon. */
export const isBrief = process.env['HOLDFAST_BRIEF'] === '1'

/** Files of which nothing runs. */
export function filesLeftOut(list: readonly LeftOut[] = leftOut): string[] {
  return list.filter(({ tests }) => tests === undefined).map(({ file }) => file)
}

/** Titles that do not run in a file. */
export function titlesLeftOut(file: string, list: readonly LeftOut[] = leftOut): string[] {
  return list.flatMap((each) => (each.file === file ? (each.tests ?? []) : []))
}

/** What of the list is not to be found where it says, in the words of the sources. */
export function lost(list: readonly LeftOut[], root: URL): string[] {
  return list.flatMap(({ file, tests = [] }) => {
    const text = textOf(new URL(file, root))
    if (text === undefined) return [`${file}: no such file`]
    return tests
      .filter((title) => !text.includes(title.replaceAll(`'`, `\\'`)) && !text.includes(title))
      .map((title) => `${file}: no test called ${title}`)
  })
}

function textOf(file: URL): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
