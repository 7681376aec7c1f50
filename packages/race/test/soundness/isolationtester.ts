import { spawn } from 'node:child_process'
import { existsSync, globSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { tellFeasible } from './feasible.ts'
import { formatOutcome } from './outcome.ts'
import { type Permutation, parsePermutations } from './parse-permutations.ts'
import { countPermutations, type Spec } from './parse-spec.ts'
import type { Referee } from './referee.ts'

/** What PostgreSQL's own tester finds when it runs all permutations of a spec. */
export interface Permuted {
  readonly outcomes: ReadonlySet<string>
  /** Of each outcome, one permutation that gives it. */
  readonly example: ReadonlyMap<string, string>
  /** All orders of the steps; it runs every one. */
  readonly permutations: number
  /** Those that a client could send. */
  readonly possible: number
}

const attempts = 4

let runs = 0

/**
 * Runs every permutation of `spec` with isolationtester on the empty database of `url`. The victim
 * of a deadlock is who closes the circle; since each of a circle closes it in some permutation,
 * that misses no victim.
 */
export async function runIsolationtester(
  url: string,
  spec: Spec,
  referee: Referee,
  outcomeOf: (run: Permutation) => string = ({ results, final }) =>
    formatOutcome(spec, (step) => results.get(step), final),
): Promise<Permuted> {
  const found = await runAll(url, spec, referee)
  const example = new Map(found.map((run) => [outcomeOf(run), run.steps.join(' ')]))
  return {
    outcomes: new Set(example.keys()),
    example,
    permutations: countPermutations(spec),
    possible: found.length,
  }
}

/** All permutations that a client could send. */
async function runAll(url: string, spec: Spec, referee: Referee): Promise<readonly Permutation[]> {
  const results = parsePermutations(spec, await runOnce(url, spec.text, referee))
  if (results.length !== countPermutations(spec)) {
    throw new Error(`${spec.name}: ${results.length} of ${countPermutations(spec)} permutations`)
  }
  let told = tellFeasible(spec, results)
  for (let attempt = 1; told.again.length > 0; attempt += 1) {
    if (attempt === attempts) {
      const stuck = told.again.map(({ steps }) => steps.join(' ')).join('; ')
      throw new Error(`${spec.name}: cancelled ${attempts} times without need: ${stuck}`)
    }
    const settled = results.filter((permutation) => !told.again.includes(permutation))
    const lines = told.again.map(({ steps }) => `permutation ${steps.join(' ')}`)
    const output = await runOnce(url, [spec.text, ...lines].join('\n'), referee)
    results.splice(0, results.length, ...settled, ...parsePermutations(spec, output))
    told = tellFeasible(spec, results)
  }
  return told.possible
}

async function runOnce(
  url: string,
  specText: string,
  referee: Referee,
  attempt = 1,
): Promise<string> {
  runs += 1
  const child = spawn(isolationtesterBinary(), [url], {
    env: {
      ...process.env,
      PGAPPNAME: `${referee.watched}${runs}`,
      // isolationtester takes longer to see a wait, so the victim is who closes the circle.
      PGOPTIONS: '-c deadlock_timeout=5ms -c client_min_messages=error',
    },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  child.stdin.end(specText)
  const [output, complaints] = await Promise.all([text(child.stdout), text(child.stderr)])
  if (complaints === '') return output
  // A cancellation that came too late for its statement hit the COMMIT behind it: start again.
  if (attempt < attempts && complaints.includes('current transaction is aborted')) {
    return await runOnce(url, specText, referee, attempt + 1)
  }
  throw new Error(`isolationtester: ${complaints}`)
}

/** Debian and PGDG put it into postgresql-client; the servers from npm do not have it. */
function isolationtesterBinary(): string {
  const place = '/usr/lib/postgresql/*/lib/pgxs/src/test/isolation/isolationtester'
  const found = process.env['ISOLATIONTESTER'] ?? globSync(place).toSorted().at(0)
  if (found === undefined || !existsSync(found)) {
    throw new Error(
      `PostgreSQL's isolationtester is not installed here: nothing at ${found ?? place}. ` +
        'Install postgresql-client from Debian or PGDG, or name the program in ISOLATIONTESTER.',
    )
  }
  return found
}
