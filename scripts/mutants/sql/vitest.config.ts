import { matchesGlob } from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * The tests of one changed SQL file, named by `MUTANT_TESTS` in their order, one after the other and in one process.
 * Their databases are copies of one that has the change; what a test installs by itself has not.
 */
const paths = JSON.parse(process.env['MUTANT_TESTS'] ?? '[]') as string[]
/** Tests that fail without a change as well. */
const failing = JSON.parse(process.env['MUTANT_WITHOUT'] ?? '[]') as string[]
const escaped = (name: string): string =>
  name.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&').replaceAll(' ', '(?: > | )')
const without = failing.map((name) => `(?!${escaped(name)}$)`).join('')

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
    setupFiles: 'scripts/mutants/sql/one-seed.ts',
    provide: {
      postgresUrl: process.env['MUTANT_SERVER'] ?? '',
      pgbouncerUrl: process.env['MUTANT_SERVER'] ?? '',
      installedDatabase: process.env['MUTANT_DATABASE'] ?? '',
      throughPooler: false,
    },
    // Controls bring SQL of their own, which has no change in it.
    testNamePattern: new RegExp(`^(?!.*\\bcontrol\\b)${without}`),
    testTimeout: 60_000,
    hookTimeout: 60_000,
    fileParallelism: false,
    isolate: false,
    sequence: { sequencer: InOrder },
    // As in vitest.config.ts: only what came too late.
    retry: { count: 4, condition: /^too late/ },
  },
})
