import { startInnodb } from '@holdfast/testkit'
import { newestServer } from '../../engines/engine.ts'
import type { ControlOutcome, StressScenario } from '../../harness/stress-scenario.ts'
import { askWeakened } from '../../harness/weakened-process.ts'
import { controls } from './cuts.ts'
import { type Ground, hunt } from './hunt.ts'
import { innodbGround, type InnodbServers } from './innodb-ground.ts'
import { sqliteGround } from './sqlite-ground.ts'

export interface ControlOrder {
  /** Nothing for SQLite. */
  readonly innodb: InnodbServers | undefined
  readonly seed: number
  readonly count: number
  /** The lies that the missing protection leads to. */
  readonly sorts: readonly string[]
}

export interface ControlReport {
  readonly bodies: number
  /** The first lie. */
  readonly finding: string | undefined
}

/** Without `--count` and `--seconds`. */
const fullCount = 20_000
/** Of `--seconds`; the rest is for starting and for the controls. */
const huntShare = 0.5

const about = 'generated bodies on every client: what is told against what is so'

type Options = Parameters<StressScenario['run']>[0]

/** The hunt and its controls, on one ground. */
async function huntOn(
  ground: Ground,
  family: keyof typeof controls,
  innodb: InnodbServers | undefined,
  { seed, seconds, count, control, progress }: Options,
): ReturnType<StressScenario['run']> {
  const found =
    control !== undefined
      ? { bodies: 0, findings: [], notes: [], coverage: {} }
      : await hunt(ground, {
          seed,
          count: count ?? (seconds === undefined ? fullCount : Infinity),
          seconds: seconds === undefined ? undefined : seconds * huntShare,
          progress,
        })
  const outcomes: Record<string, ControlOutcome> = {}
  const notes = [...found.notes]
  for (const [name, { sorts, count: most }] of Object.entries(controls[family])) {
    if (control !== undefined && control !== name) continue
    const order: ControlOrder = { innodb, seed, count: most, sorts }
    const { bodies: ran, finding } = await askWeakened<ControlReport>(
      {
        program: new URL('./control.ts', import.meta.url),
        cutting: new URL('./weakened.ts', import.meta.url),
        env: { BODIES_WITHOUT: `${family} ${name}` },
      },
      order,
    )
    outcomes[name] = finding === undefined ? 'missed' : 'caught'
    notes.push(`without ${name}, after ${ran} bodies: ${finding ?? 'no lie'}`)
    progress(`control ${name}: ${outcomes[name]}`)
  }
  const { bodies: operations, findings: violations, coverage } = found
  return { operations, violations, controls: outcomes, notes, coverage }
}

/** Lanes have few connections, and there are many lanes. What is promised does not depend on the disk. */
const settings = { 'max-connections': '400', 'innodb-lock-wait-timeout': '1' }

/** On MariaDB and MySQL. Half of the lanes are on a server that rolls everything back when a wait has ended. */
export const innodbBodies: StressScenario = {
  about,
  controls: Object.keys(controls.innodb),
  async run(options) {
    const product = options.engine === 'mysql' ? 'mysql' : 'mariadb'
    const name = newestServer(product)
    options.progress(`starting ${name} twice`)
    await using plain = await startInnodb(name, settings)
    await using strict = await startInnodb(name, {
      ...settings,
      'innodb-rollback-on-timeout': 'ON',
    })
    const servers = { product, urls: [plain.url(), strict.url()] } as const
    return await huntOn(innodbGround(servers), 'innodb', servers, options)
  },
}

export const sqliteBodies: StressScenario = {
  about,
  controls: Object.keys(controls.sqlite),
  run: async (options) => await huntOn(await sqliteGround(), 'sqlite', undefined, options),
}
