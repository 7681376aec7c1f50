import { configDefaults, defineConfig, type TestProjectConfiguration } from 'vitest/config'
import { filesLeftOut, isBrief } from './scripts/brief/left-out.ts'
import { SlowFirst } from './scripts/brief/slow-first.ts'
import { sourcesByName } from './scripts/package/entries.ts'

const holdfast = 'packages/holdfast/test'
const sources = sourcesByName()
/** A harness for a driver that is not ours; see docs/write-a-driver.md. */
const outside = process.env['HOLDFAST_HARNESS'] !== undefined
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

/** Our packages by their public names, from their sources: no test needs a build but those of what is packed. */
const fromSource = {
  name: 'holdfast-from-source',
  enforce: 'pre' as const,
  resolveId: (name: string): string | undefined => sources.get(name),
}

/** A project that needs no server, or starts its own. */
function plain(name: string, include: string[]): TestProjectConfiguration {
  return { extends: true, test: { name, include } }
}

export default defineConfig({
  plugins: [fromSource],
  test: {
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // Tests mostly wait, for servers and for each other's locks: two cores are half idle with two workers.
    maxWorkers: 3,
    // A test that needs a second try is a bug in the test or in us. Only what came too late may try again: a busy
    // machine can make a thing late, and what is late by itself stays so. See test/support/in-time.ts.
    retry: { count: 9, condition: /^too late/ },
    sequence: { sequencer: SlowFirst },
    // A run that has to end soon; see scripts/brief/left-out.ts.
    ...(isBrief && {
      runner: './scripts/brief/leave-out.ts',
      exclude: [...configDefaults.exclude, ...filesLeftOut()],
    }),
    projects: [
      plain('unit', ['packages/*/test/unit/**/*.test.ts', 'website/test/unit/**/*.test.ts']),
      // The site as it is built, in a Chromium; `npm run test:site`.
      ...(process.env['HOLDFAST_SITE'] === undefined
        ? []
        : [plain('site', ['website/test/site/**/*.test.ts'])]),
      plain('testkit', ['testkit/test/**/*.test.ts']),
      // The fault harness: its checkers, and short runs on servers of its own.
      plain('faults', ['faults/test/**/*.test.ts']),
      // What is packed, used by others; needs a build.
      database('package', ['packages/*/test/package/**/*.test.ts']),
      // The same in other runtimes, which are installed from the registry once; `npm run test:runtimes` tries more of them.
      database('runtimes', [`${holdfast}/runtimes/**/*.test.ts`]),
      // The same with tools of others, installed from the registry: minutes, and only if asked for.
      ...(process.env['HOLDFAST_BUNDLERS'] === undefined
        ? []
        : [database('bundlers', ['packages/{holdfast,race}/test/bundlers/**/*.test.ts'])]),
      database('integration', ['packages/*/test/integration/**/*.test.ts']),
      // The same files once more, with a transaction-mode pooler between us and the server.
      database(
        'pgbouncer',
        [
          `${holdfast}/integration/{locks,once,tx}/**/*.test.ts`,
          `${holdfast}/integration/rate-limit/{concurrent,rate-limit}.test.ts`,
          `${holdfast}/integration/claims/{hearing,prepared,transaction-mode,work,worker}.test.ts`,
          `${holdfast}/integration/rows/{lock,race,transaction,update-versioned,wait}.test.ts`,
          `${holdfast}/integration/ledger/{coalescing,model-concurrent}.test.ts`,
          // A run that has to end soon leaves out what the same files say without a pooler.
          ...(isBrief
            ? []
            : [
                `${holdfast}/integration/{claims,leases,observe,rows,schedule,schema}/**/*.test.ts`,
                `${holdfast}/integration/ledger/{hold-races,kill,model}.test.ts`,
                `${holdfast}/integration/rate-limit/{model,shards}.test.ts`,
              ]),
        ],
        true,
      ),
      database('conformance', [
        `${holdfast}/conformance/${outside ? 'outside.ts' : '**/*.test.ts'}`,
      ]),
      // What we offer on other products: on a MariaDB 10.11, and by `npm run test:engines` on all that we support.
      {
        extends: true,
        test: {
          name: 'engines',
          include: [`${holdfast}/engines/innodb/**/*.test.ts`],
          globalSetup: `${holdfast}/engines/innodb/support/shared-innodb.ts`,
          setupFiles: `${holdfast}/support/record-thrown-codes.ts`,
        },
      },
      // SQLite needs no server: files in a folder of its own.
      {
        extends: true,
        test: {
          name: 'sqlite',
          include: [`${holdfast}/engines/sqlite/**/*.test.ts`],
          setupFiles: `${holdfast}/support/record-thrown-codes.ts`,
        },
      },
      database('server-behaviour', [`${holdfast}/server-behaviour/**/*.test.ts`]),
      // The race explorer against PostgreSQL's isolationtester, which Debian has.
      database('soundness', ['packages/race/test/soundness/**/*.test.ts']),
      // The console in a Chromium, which Debian has.
      {
        extends: true,
        test: {
          name: 'browser',
          include: ['packages/console/test/browser/**/*.test.ts'],
          globalSetup: [servers, 'packages/console/test/support/fresh-ui.ts'],
          provide: { throughPooler: false },
          // After all others, one at a time: what has to be seen within two seconds is not to wait for a core.
          sequence: { groupOrder: 1 },
          maxWorkers: 1,
        },
      },
      database('docs', [`${holdfast}/docs/**/*.test.ts`]),
      database('examples', ['examples/*/test/**/*.test.ts']),
    ],
  },
})
