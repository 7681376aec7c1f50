import { defineConfig, type TestProjectConfiguration } from 'vitest/config'

const holdfast = 'packages/holdfast/test'
const servers = `${holdfast}/support/shared-servers.ts`

/** A project whose files get one shared PostgreSQL and PgBouncer; see `testDatabase()`. */
function database(
  name: string,
  include: string[],
  throughPooler = false,
): TestProjectConfiguration {
  return {
    extends: true,
    test: {
      name,
      include,
      globalSetup: servers,
      setupFiles: `${holdfast}/support/record-thrown-codes.ts`,
      provide: { throughPooler },
    },
  }
}

/** A project that needs no server, or starts its own. */
function plain(name: string, include: string[]): TestProjectConfiguration {
  return { extends: true, test: { name, include } }
}

export default defineConfig({
  test: {
    testTimeout: 30_000,
    hookTimeout: 120_000,
    // A test that needs a second try is a bug in the test or in us.
    retry: 0,
    projects: [
      plain('unit', ['packages/*/test/unit/**/*.test.ts']),
      plain('testkit', ['testkit/test/**/*.test.ts']),
      plain('package', ['packages/*/test/package/**/*.test.ts']),
      database('integration', ['packages/*/test/integration/**/*.test.ts']),
      // The same files once more, with a transaction-mode pooler between us and the server.
      database(
        'pgbouncer',
        [
          `${holdfast}/integration/{claims,leases,locks,once,rows,schedule,schema,tx}/**/*.test.ts`,
          `${holdfast}/integration/ledger/{coalescing,hold-races,kill,model,model-concurrent}.test.ts`,
        ],
        true,
      ),
      database('conformance', [`${holdfast}/conformance/**/*.test.ts`]),
      database('server-behaviour', [`${holdfast}/server-behaviour/**/*.test.ts`]),
      // The race explorer against PostgreSQL's isolationtester, which Debian has.
      database('soundness', ['packages/race/test/soundness/**/*.test.ts']),
      database('docs', [`${holdfast}/docs/**/*.test.ts`]),
      database('examples', ['examples/*/test/**/*.test.ts']),
    ],
  },
})
