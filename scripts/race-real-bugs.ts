/**
 * Explores published releases with a known race, and releases that fixed one: Knex, node-pg-migrate,
 * Sequelize and Better Auth, from npm, in a temporary folder. Prints what was found;
 * docs/race/real-bugs.md shows it.
 * Run: npm run race:real-bugs [-- knex] [--trials 100] [--hunt]
 * With --hunt nobody names a pair: one call is recorded, and hunted in.
 */
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { startPostgres, withClient } from '@holdfast/testkit'
import type * as Pg from 'pg'
import { formatHunt, hunt, instrument, type PgModule } from '../packages/race/src/hunt.ts'
import { explore, type FlowContext, formatReport } from '../packages/race/src/index.ts'
import { betterAuthBugs } from './real-bugs/better-auth.ts'
import { installPackage } from './real-bugs/install-package.ts'
import { knexBugs } from './real-bugs/knex.ts'
import { nodePgMigrateBugs } from './real-bugs/node-pg-migrate.ts'
import type { RealBug } from './real-bugs/real-bug.ts'
import { sequelizeBugs } from './real-bugs/sequelize.ts'
import { tryPlainly } from './real-bugs/try-plainly.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { trials: { type: 'string', default: '0' }, hunt: { type: 'boolean', default: false } },
})
const trials = Number(values.trials)
const wanted = positionals[0] ?? ''

await using server = await startPostgres()
const root = await mkdtemp(join(tmpdir(), 'race-real-bugs-'))
// The libraries look for migrations here and find none.
const scratch = join(root, 'migrations')
await mkdir(scratch)
const summary: string[] = []

/** The same call, recorded once: that it is to be run beside itself, the hunt finds. */
async function huntIn({ release, beside, scene, known, prepare }: RealBug): Promise<void> {
  const load = await installPackage(root, release, beside)
  instrument(load('pg') as PgModule)
  const url = await server.createDatabase()
  const { seed, flow } = await prepare(load, url, scratch)
  await withClient(url, (client) => client.query(seed))
  const { Pool } = load('pg') as typeof Pg
  const pool = new Pool({ connectionString: url })
  const reach = { url, pool } as unknown as FlowContext
  const report = await hunt({ url, suite: ({ call }) => call(scene, () => flow(reach)) })
  await pool.end()
  console.log(formatHunt(report))
  const verdicts = report.pairs.map(({ verdict }) => verdict)
  const isProven = verdicts.includes('proven')
  // What is fixed may be undecided; it must not be accused.
  if (isProven !== (known === 'race')) process.exitCode = 1
  summary.push(
    `${release}: ${scene}: known ${known}, hunted ${verdicts.join(', ') || 'in no pair'}`,
  )
}

async function study({ release, beside, scene, known, prepare }: RealBug): Promise<void> {
  const load = await installPackage(root, release, beside)
  const url = await server.createDatabase()
  const explored = await prepare(load, url, scratch)
  const { seed, flow } = explored
  const report = await explore({
    name: `${release}: ${scene}`,
    url,
    seed: ({ query }) => query(seed),
    flows: { one: flow, two: flow },
    // A failure that no serial order has is what these bugs are about, even if it leaves no trace.
    invariant: async ({ outcomes }) => {
      for (const outcome of Object.values(outcomes)) {
        // Some put a stack trace into their messages.
        if (outcome.kind === 'threw')
          throw new Error(`failed: ${outcome.message.split('\n', 1)[0]}`)
      }
    },
  })
  console.log(formatReport(report))
  const { schedules, classes, exhaustive, interleavings, milliseconds } = report.coverage
  const plain = trials > 0 ? await tryPlainly(url, explored, trials) : undefined
  if (report.verdict !== known) process.exitCode = 1
  summary.push(
    [
      `${release}: ${scene}`,
      report.verdict === known ? report.verdict : `${report.verdict}, but ${known} was expected`,
      `${schedules} schedules`,
      exhaustive ? `all ${classes} classes of ${interleavings} orders` : `${classes} classes`,
      `${(milliseconds / 1000).toFixed(1)} s`,
      plain === undefined ? '' : `${plain} of ${trials} plain trials`,
    ].join(' | '),
  )
}

try {
  for (const bug of [...knexBugs, ...nodePgMigrateBugs, ...sequelizeBugs, ...betterAuthBugs]) {
    if (bug.release.startsWith(wanted)) await (values.hunt ? huntIn(bug) : study(bug))
  }
} finally {
  await rm(root, { recursive: true })
}
console.log(summary.join('\n'))
