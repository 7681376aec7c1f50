import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type PostgresServer, startPostgres, waitUntil } from '@holdfast/testkit'
import { openPool } from '../../bench/harness/open-pool.ts'
import { weakenedFiles } from '../../bench/ledger/weakened-files.ts'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { migrateFiles } from '../../packages/holdfast/src/schema/migrate.ts'
import { ownFiles, type SchemaFiles } from '../../packages/holdfast/src/schema/schema-files.ts'
import { tokenOf } from '../checks/check-leases.ts'
import type { Seed, Violation } from '../core/model.ts'
import type { Missing } from '../crew/actor.ts'
import { openSpares, type Spares } from '../crew/spares.ts'
import { type StartedCrew, startCrew } from '../crew/start-crew.ts'
import { type Operation, operationsOf } from '../history/operations-of.ts'
import { readHistory } from '../history/read-history.ts'
import { leaseMs } from '../workloads/leases-table.ts'
import { allWorkloads } from '../workloads/index.ts'

/** A protection taken away, and what the checkers have to say about it. */
interface Control {
  readonly files: () => SchemaFiles
  readonly without: readonly Missing[]
  readonly workloads: readonly string[]
  /** Each of these has to be reported. */
  readonly expected: readonly Pick<Violation, 'rule' | 'workload'>[]
  readonly disturb: (crew: StartedCrew, folder: string) => Promise<void>
}

export const unprotected = {
  /** The lock around the user's check, and the ledger's own check of the balance. */
  no_guard: {
    files: () => weakenedFiles('guard'),
    without: ['guard'],
    workloads: ['guard', 'quota'],
    expected: [
      { rule: 'bound_crossed', workload: 'guard' },
      { rule: 'bound_crossed', workload: 'quota' },
    ],
    disturb: () => pause(1_500),
  },
  /** The look at the token in the transaction of the write. */
  no_fence: {
    files: ownFiles,
    without: ['fence'],
    workloads: ['leases'],
    expected: [{ rule: 'stale_write', workload: 'leases' }],
    disturb: pauseHolders,
  },
  /** The memory of operation ids. */
  no_dedup: {
    files: () => weakenedFiles('dedup'),
    without: [],
    workloads: ['quota'],
    expected: [{ rule: 'applied_twice', workload: 'quota' }],
    disturb: () => pause(1_500),
  },
} as const satisfies Record<string, Control>

const attempts = 6

/** Runs the workloads without the protection until the checkers report it; gives what they said last. */
export async function runUnprotected(
  name: keyof typeof unprotected,
  folder: string,
  seed: Seed,
): Promise<{ readonly caught: boolean; readonly violations: readonly Violation[] }> {
  const control: Control = unprotected[name]
  await using server = await startPostgres()
  await using spares = openSpares(3)
  let violations: readonly Violation[] = []
  for (let attempt = 1; attempt <= attempts; attempt += 1) {
    const place = join(folder, name, String(attempt))
    violations = await attack(control, server, spares, place, seed + attempt)
    const caught = control.expected.every((expected) =>
      violations.some(
        ({ rule, workload }) => rule === expected.rule && workload === expected.workload,
      ),
    )
    if (caught) return { caught, violations }
  }
  return { caught: false, violations }
}

async function attack(
  { files, without, workloads, disturb }: Control,
  server: PostgresServer,
  spares: Spares,
  folder: string,
  seed: Seed,
): Promise<readonly Violation[]> {
  const url = await server.createDatabase('unprotected')
  const pool = await openPool(url, 1)
  await migrateFiles(fromPg(pool), files())
  await pool.end()
  const wanted = allWorkloads.filter(({ name }) => workloads.includes(name))
  for (const { prepare } of wanted) await prepare(url)
  {
    const doors = { pooled: url, direct: url }
    await using crew = await startCrew({
      doors,
      folder,
      seed,
      spares,
      workloads,
      without,
      pauseMs: 40,
    })
    await disturb(crew, folder)
    await crew.stop()
  }
  const { events } = readHistory(folder)
  return (await Promise.all(wanted.map(({ check }) => check(url, events)))).flat()
}

/**
 * Stops a process that is about to write until another one has written under the same lease after it: it wakes
 * up and believes to have it. Not at any time: who is stopped while it has no lease shows nothing.
 */
async function pauseHolders(crew: StartedCrew, folder: string): Promise<void> {
  await waitUntil('there is a history', () => existsSync(folder) || undefined)
  const writes = (): Operation[] =>
    operationsOf(readHistory(folder).events).filter(({ operation }) => operation === 'write')
  for (let round = 1; round <= 3; round += 1) {
    const holder = await waitUntil('a holder is about to write', () =>
      writes().find(({ told }) => told === undefined),
    )
    const still = ({ attempt, told }: Operation): boolean =>
      attempt === holder.attempt && told === undefined
    const [, index] = /^app(\d+)\./.exec(holder.process) ?? []
    const pid = crew.pids[Number(index)] as number
    process.kill(pid, 'SIGSTOP')
    try {
      // Nobody can, if this was the last moment of the lease's slot.
      await waitUntil(
        'another one has written under this lease',
        () => {
          const all = writes()
          return all.some((write) => isAfter(write, holder)) || !all.some(still) || undefined
        },
        { limitMs: leaseMs * 3 },
      ).catch(() => undefined)
    } finally {
      process.kill(pid, 'SIGCONT')
    }
    await waitUntil(
      'the one that was stopped has written',
      () => !writes().some(still) || undefined,
    )
  }
}

function isAfter(write: Operation, holder: Operation): boolean {
  return write.outcome === 'ok' && write.key === holder.key && tokenOf(write) > tokenOf(holder)
}
