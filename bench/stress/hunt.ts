import { readFileSync } from 'node:fs'
import { createDatabase, startPostgres, withClient } from '@holdfast/testkit'
import pg from 'pg'
import { racy, safe } from '../../examples/hunted-shop/src/answers.ts'
import { openPrisma } from '../../examples/hunted-shop/src/prisma/client.ts'
import { createShop } from '../../examples/hunted-shop/src/shop.ts'
import { fillShop, runSuite } from '../../examples/hunted-shop/src/suite.ts'
import { explore } from '../../packages/race/src/explore.ts'
import { wholeHunt } from '../../packages/race/src/hunt/hunt-calls.ts'
import type { HuntedPair, HuntReport } from '../../packages/race/src/hunt/model.ts'
import { runHunt } from '../../packages/race/src/hunt/run-hunt.ts'
import { record } from '../../packages/race/src/record.ts'
import { instrument } from '../../packages/race/src/run/connection/instrument.ts'
import type { ControlOutcome, StressScenario } from '../harness/stress-scenario.ts'
import { type HuntControl, huntControls, without } from './hunt-lesser.ts'

const schema = readFileSync(
  new URL('../../examples/hunted-shop/schema.sql', import.meta.url),
  'utf8',
)
/** For one hunt: more than it should need, so that `seconds` says what it did need. */
const huntMs = 600_000

/** What one hunt said of what is planted. */
interface Score {
  readonly recall: number
  readonly missed: readonly string[]
  /** Missed although there was time. */
  readonly blind: number
  readonly falseProofs: readonly string[]
  /** Safe pairs of which it was shown that they are. */
  readonly cleared: number
  readonly unclear: readonly string[]
  readonly seconds: number
}

export const hunt: StressScenario = {
  about: 'a shop with planted races, and code that looks alike, is hunted from its own suite',
  controls: huntControls,
  names: ['prisma'],
  async run({ seconds, seed, count, control, only, progress }) {
    progress('starting PostgreSQL')
    await using server = await startPostgres({ settings: { max_connections: '100' } })
    instrument(pg)
    const until = performance.now() + (seconds ?? 0) * 1_000
    const scores: Score[] = []
    const rounds = count ?? 1
    for (let round = 0; round < rounds || performance.now() < until; round += 1) {
      if (seconds !== undefined && round > 0 && performance.now() > until) break
      const score = await huntOnce(server.url(), seed + round, undefined, only === 'prisma')
      progress(`seed ${seed + round}: ${told(score)}`)
      scores.push(score)
    }
    const controls: Record<string, ControlOutcome> = {}
    const notes = scores.flatMap((score) => [told(score), ...score.missed, ...score.unclear])
    const least = Math.min(...scores.map(({ recall }) => recall))
    const most = Math.max(...scores.map(({ blind }) => blind))
    const wanted = control === undefined ? huntControls : [control as HuntControl]
    for (const name of only === undefined ? wanted : []) {
      const score = await huntOnce(server.url(), seed, name, false)
      // A lesser hunt that only had no time shows nothing.
      const fewer = score.recall < least && score.blind > most
      controls[name] = fewer ? 'caught' : 'missed'
      notes.push(`without ${name}: ${told(score)}`, ...score.missed)
      progress(`control ${name}: ${told(score)}`)
    }
    return {
      operations: scores.length,
      violations: scores.flatMap(({ falseProofs }) => falseProofs.map((one) => `accused: ${one}`)),
      controls,
      notes,
      figures: {
        planted: racy.length,
        look_alikes: safe.length,
        recall: least,
        false_proofs: scores.reduce((sum, { falseProofs }) => sum + falseProofs.length, 0),
        cleared: Math.min(...scores.map(({ cleared }) => cleared)),
        seconds: Math.max(...scores.map((score) => score.seconds)),
      },
    }
  },
}

function told({ recall, falseProofs, cleared, seconds }: Score): string {
  const found = Math.round(recall * racy.length)
  return `${found} of ${racy.length} races proven, ${falseProofs.length} false proofs, ${cleared} of ${safe.length} look-alikes refuted, ${seconds.toFixed(1)} s`
}

/** The seed decides how far data are from their limits, and what the explorer draws. */
async function huntOnce(
  url: string,
  seed: number,
  control: HuntControl | undefined,
  onPrisma: boolean,
): Promise<Score> {
  const database = await createDatabase(url, 'hunted')
  await withClient(database, (client) => client.query(schema + fillShop(8 + (seed % 13))))
  const pool = new pg.Pool({ connectionString: database, max: 10 })
  const prisma = onPrisma ? openPrisma(database) : undefined
  try {
    const whole = wholeHunt({ record, explore: (options) => explore({ ...options, rng: seed }) })
    const report = await runHunt(control === undefined ? whole : without(control, whole), {
      url: database,
      app: createShop({ pool, prisma }),
      suite: ({ fetch }) => runSuite(fetch),
      budget: { ms: huntMs },
    })
    return scoreOf(report)
  } finally {
    await prisma?.$disconnect()
    await pool.end()
  }
}

function scoreOf({ pairs, milliseconds }: HuntReport): Score {
  const found = (pair: readonly [string, string]): HuntedPair | undefined =>
    pairs.find(({ calls }) => isPair(calls, pair))
  const tell = (pair: readonly [string, string]): string => {
    const { verdict = 'not proposed', because } = found(pair) ?? {}
    return `  ${pair.join(' × ')}: ${verdict}${because === undefined ? '' : `, ${because}`}`
  }
  const missed = racy.filter((pair) => found(pair)?.verdict !== 'proven')
  const unclear = safe.filter((pair) => found(pair)?.verdict !== 'refuted')
  return {
    recall: (racy.length - missed.length) / racy.length,
    missed: missed.map(tell),
    blind: missed.filter((pair) => found(pair)?.because !== 'the time was over').length,
    falseProofs: pairs.filter(isFalse).map(({ sentence = '' }) => sentence),
    cleared: safe.length - unclear.length,
    unclear: unclear.map(tell),
    seconds: milliseconds / 1_000,
  }
}

function isPair(one: readonly [string, string], other: readonly [string, string]): boolean {
  return one.toSorted().join() === other.toSorted().join()
}

/** Whoever races with itself may race with others too; nobody else does, but for the pairs that are planted. */
function isFalse({ verdict, calls }: HuntedPair): boolean {
  if (verdict !== 'proven' || racy.some((pair) => isPair(pair, calls))) return false
  return !calls.some((name) => racy.some(([one, other]) => one === name && other === name))
}
