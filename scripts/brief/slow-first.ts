/** The order of the files for vitest: what is known to take long begins first, or it would end last, and alone. */
import { relative } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Roughly the longest first; `npm test` tells them at its end. */
export const slow: readonly string[] = [
  'packages/race/test/integration/hunt/command.test.ts',
  'packages/race/test/soundness/soundness.test.ts',
  'packages/race/test/integration/search/inside-truth.test.ts',
  'packages/race/test/integration/search/review.test.ts',
  'packages/race/test/integration/holdfast/crash.test.ts',
  'packages/race/test/integration/holdfast/ledger-cases.test.ts',
  'packages/race/test/integration/holdfast/ledger-triples.test.ts',
  'packages/race/test/integration/hunt/written-tests.test.ts',
  'packages/holdfast/test/server-behaviour/moves.test.ts',
  'packages/holdfast/test/server-behaviour/schema.test.ts',
  'packages/holdfast/test/server-behaviour/snapshot-truth-table.test.ts',
  'packages/holdfast/test/package/quick-starts.test.ts',
  'packages/holdfast/test/docs/snippets.test.ts',
  'packages/race/test/integration/holdfast/ledger-pairs.test.ts',
  'packages/race/test/integration/holdfast/ledger-controls.test.ts',
  'packages/race/test/integration/search/values.test.ts',
  'packages/race/test/integration/search/portals.test.ts',
  'packages/race/test/integration/search/nothing-lost.test.ts',
  'packages/race/test/integration/hunt/hunt.test.ts',
  'packages/race/test/integration/hunt/github-action.test.ts',
  'packages/holdfast/test/integration/shards/move-kill.test.ts',
  'packages/cli/test/integration/every-command.test.ts',
]

export class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const others = await super.sort(files)
    const place = ({ moduleId, project }: TestSpecification): number => {
      const at = slow.indexOf(relative(process.cwd(), moduleId))
      return project.config.sequence.groupOrder * 1_000 + (at === -1 ? slow.length : at)
    }
    return others.toSorted((one, other) => place(one) - place(other))
  }
}
