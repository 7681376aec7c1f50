import { matchesGlob } from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import type { Folder } from './folders.ts'

/** The tests of one folder, named by `MUTANTS_TESTS`, as Stryker runs them: one file at a time. */
const { unit = [], database = [] } = JSON.parse(process.env['MUTANTS_TESTS'] ?? '{}') as Folder
const paths = [...unit, ...database].map((path) => `packages/holdfast/test/${path}`)

/** In the order of the table: what needs no server, and then the folder's own, have mostly noticed before the others. */
class InOrder extends BaseSequencer {
  override sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number =>
      paths.findIndex((path) => matchesGlob(moduleId, `**/${path}`))
    return Promise.resolve(files.toSorted((one, other) => rank(one) - rank(other)))
  }
}

export default defineConfig({
  test: {
    include: paths,
    globalSetup: 'packages/holdfast/test/support/shared-servers.ts',
    setupFiles: 'scripts/mutants/drop-databases.ts',
    provide: { throughPooler: false },
    testTimeout: 30_000,
    hookTimeout: 120_000,
    // Stryker's setup has to be loaded anew for each file, or only the first one would count.
    isolate: true,
    sequence: { sequencer: InOrder },
    // As in vitest.config.ts: only what came too late.
    retry: { count: 4, condition: /^too late/ },
  },
})
