import { startPostgres, withClient } from '@holdfast/testkit'
import { ownFiles } from '../../packages/holdfast/src/schema/schema-files.ts'
import { type Budget, rounds, seconds as lasting } from '../harness/budget.ts'
import { counted } from '../harness/counted.ts'
import { deadlocksIn } from '../harness/deadlocks-in.ts'
import type { ControlOutcome, StressScenario } from '../harness/stress-scenario.ts'
import { auditOf } from '../ledger/audit-of.ts'
import { type Protection, weakenedFiles } from '../ledger/weakened-files.ts'
import { attack, operationsPerRound, startAttackers } from './ledger-attack.ts'
import { type Check, checksOf } from './ledger-checks.ts'

/** A few per cent more than a million: some settle what was refused, and are not counted. */
const everything = 1_030_000
const phases = {
  one: { first: 0, last: 0 },
  one_of_credits: { first: 1, last: 1 },
  hundred: { first: 0, last: 99 },
  many: { first: 0, last: 99_999 },
} as const
/** Of `--seconds`; the rest is for starting, for checking and for the controls. */
const phaseShare = 0.12
const fullSteps = 60
const shortSteps = 8
/** A control ends when it was seen to fail, which takes it one round. */
const controlAttempts = 5

const controls: readonly [name: string, without: Protection, breaks: Check['promise']][] = [
  ['no_guard', 'guard', 'bound'],
  ['no_lock', 'lock', 'chain'],
  ['no_dedup', 'dedup', 'once'],
]

export const ledger: StressScenario = {
  about: 'bounded balances under 4 processes of 64 callers, with duplicates and retries',
  async run({ seconds, seed, progress }) {
    progress('starting PostgreSQL')
    // Nothing here waits for long; if it does, it is to fail and not to hang.
    await using server = await startPostgres({ settings: { statement_timeout: '300s' } })
    const url = await server.createDatabase('ledger')
    const violations: string[] = []
    const notes: string[] = []
    const outcomes: Record<string, ControlOutcome> = {}
    let operations = 0
    {
      await using team = await startAttackers(seed)
      const steps = seconds === undefined ? fullSteps : shortSteps
      const share = everything / Object.keys(phases).length
      for (const [name, accounts] of Object.entries(phases)) {
        const schema = `ledger_${name}`
        const budget: Budget =
          seconds === undefined
            ? // A few find nothing to do, as a settlement without a hold.
              rounds(Math.ceil((share * 1.05) / operationsPerRound(steps)))
            : lasting(seconds * phaseShare)
        const { calls, troubles } = await attack({
          url,
          team,
          schema,
          files: ownFiles(),
          accounts,
          steps,
          budget,
          progress,
        })
        violations.push(...counted(troubles).map((trouble) => `${schema}: ${trouble}`))
        const { broken, distinct, movements, refused, replayed } = await judge(url, schema)
        violations.push(...broken.map(({ text }) => `${schema}: ${text}`))
        operations += distinct
        notes.push(
          `${name.replaceAll('_', ' ')}: ${distinct} operations in ${calls} calls, ${refused} of them refused and ` +
            `${replayed} answered from before; ${movements} movements checked`,
        )
      }
      const weak = await server.createDatabase('weakened')
      for (const [name, without, breaks] of controls) {
        const caught = await control({ url: weak, team, name, without, breaks, progress })
        outcomes[name] = caught === undefined ? 'missed' : 'caught'
        notes.push(`${name}: ${caught ?? 'nothing broke'}`)
      }
    }
    const deadlocks = await deadlocksIn(url)
    if (deadlocks > 0) violations.push(`the server counted ${deadlocks} deadlocks`)
    return { operations, violations, controls: outcomes, notes }
  },
}

/** The same attack on a ledger that lacks one protection. Gives what broke, if the right thing did. */
async function control(task: {
  readonly url: string
  readonly team: Parameters<typeof attack>[0]['team']
  readonly name: string
  readonly without: Protection
  readonly breaks: Check['promise']
  readonly progress: (text: string) => void
}): Promise<string | undefined> {
  const { url, team, name, without, breaks, progress } = task
  const files = weakenedFiles(without)
  for (let attempt = 1; attempt <= controlAttempts; attempt += 1) {
    const schema = `${name}_${attempt}`
    await attack({
      url,
      team,
      schema,
      files,
      accounts: phases.one,
      steps: shortSteps,
      budget: rounds(1),
      progress,
    })
    const { broken } = await judge(url, schema)
    const found = broken.find(({ promise }) => promise === breaks)
    if (found !== undefined) return found.text
  }
  return undefined
}

interface Judgement {
  readonly broken: readonly { readonly promise: Check['promise']; readonly text: string }[]
  readonly distinct: number
  readonly movements: number
  readonly refused: number
  readonly replayed: number
}

async function judge(url: string, schema: string): Promise<Judgement> {
  return await withClient(url, async (client) => {
    // Written a moment ago, so without this the plans would be those of empty tables.
    await client.query('ANALYZE')
    const broken: { promise: Check['promise']; text: string }[] = []
    for (const { promise, broken: what, sql } of checksOf(schema)) {
      const { rows } = await client.query<{ cases: number; example: string | null }>(sql)
      const [row] = rows
      if (row === undefined) throw new Error(`the check "${what}" gave no answer`)
      if (row.cases > 0) broken.push({ promise, text: `${row.cases} ${what}, as ${row.example}` })
    }
    const { found, problems } = await auditOf(url, schema)
    if (found > 0) {
      const [first] = problems
      broken.push({ promise: 'audit', text: `audit() found ${found}, as ${JSON.stringify(first)}` })
    }
    const { rows } = await client.query<Omit<Judgement, 'broken'>>(`
      SELECT count(DISTINCT (kind, id))::int AS distinct,
        (SELECT count(*)::int FROM ${schema}.movement) AS movements,
        (count(*) FILTER (WHERE outcome = 'refused'))::int AS refused,
        (count(*) FILTER (WHERE outcome = 'replayed'))::int AS replayed
      FROM witness.${schema}`)
    const [sums] = rows
    if (sums === undefined) throw new Error('the witness says nothing')
    return { broken, ...sums }
  })
}
