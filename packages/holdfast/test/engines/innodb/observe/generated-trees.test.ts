/**
 * Waits of every shape, made from a seed: names and rows, chains, queues, shared and alone, and what would be a circle to
 * whoever joins on the table. The truth is known because the test has made it, each wait behind a barrier. Longer:
 * `npm run test:trees`, or with a seed of its own `HOLDFAST_TREES=1 HOLDFAST_TREES_SEED=7`.
 */
import { waitUntil } from '@holdfast/testkit'
import { type Connection, createConnection } from 'mysql2/promise'
import { beforeAll, describe, expect, test } from 'vitest'
import { chainTo } from '../../../../../cli/src/render/why.ts'
import type { InnodbDriver } from '../../../../src/engines/innodb/driver.ts'
import {
  createHoldfast,
  createInterventions,
  createObserver,
  lockKey,
  migrate,
  type Locks,
  type LockTree,
  type Observer,
} from '../../../../src/mysql.ts'
import { InnodbSession } from '../../../server-behaviour/innodb/support/innodb-session.ts'
import { eachOwnServer, type OwnServer } from './own-server.ts'
import { type Mode, type Resource, type Situation, situationOf, WaitModel } from './wait-model.ts'

const count = Number(process.env['HOLDFAST_TREES'] ?? 5)
const firstSeed = Number(process.env['HOLDFAST_TREES_SEED'] ?? 1)
const seeds = Array.from({ length: count }, (_, at) => firstSeed + at)

/** Seldom enough that MariaDB shows something new each time. */
const everyMs = 130

const key = (number: number): ReturnType<typeof lockKey> => lockKey('tree', `n-${number}`)

/** A situation on a server, as far as it has come. */
interface Stage {
  readonly model: WaitModel
  readonly pids: readonly number[]
  readonly situation: Situation
  readonly database: string
  /** Whoever was ever in the way of whom: MariaDB tells what was true a tenth of a second ago. */
  readonly ever: Set<string>
}

const nameOf = ({ kind, number }: Resource, database: string): string =>
  kind === 'name' ? `tree:n-${number}` : `row of ${database}.tree_row, PRIMARY: ${number}`

/** Everything that a tree says of these sessions, one line for each fact. */
function told(tree: LockTree, { pids }: Stage): ReadonlySet<string> {
  const facts: string[] = []
  for (const { pid, blockedBy, waitsFor, waiters, holds, advice } of tree.sessions) {
    const who = pids.includes(pid) ? `s${pids.indexOf(pid)}` : `stranger ${pid}`
    for (const block of blockedBy) facts.push(`${who} ${block.kind} s${pids.indexOf(block.pid)}`)
    if (waitsFor !== undefined)
      facts.push(`${who} wants ${[waitsFor.name, waitsFor.row].filter(Boolean).join(', ')}`)
    if (waiters > 0) facts.push(`${who} has ${waiters} behind it`)
    for (const { kind, name, row } of holds)
      facts.push(`${who} has ${kind === 'named' ? name : [name, row].join(', ')}`)
    for (const { code } of advice)
      if (/deadlock-ahead|blocker-not-told/.test(code)) facts.push(`${who} ${code}`)
  }
  for (const root of tree.roots) facts.push(`root s${pids.indexOf(root)}`)
  return new Set(facts)
}

/** The same, as it is. */
function truth({ model, situation, database }: Stage): ReadonlySet<string> {
  const { resources, sessions } = situation
  const facts = model.edges().map(({ of, by, kind }) => `s${of} ${kind} s${by}`)
  for (const [session, of] of model.waits)
    facts.push(`s${session} wants ${nameOf(resources[of] as Resource, database)}`)
  for (let session = 0; session < sessions; session += 1) {
    const { size } = model.behind(session)
    if (size === 0) continue
    facts.push(`s${session} has ${size} behind it`)
    if (!model.waits.has(session)) facts.push(`root s${session}`)
  }
  for (const [of, resource] of resources.entries())
    for (const { session } of model.holdersOf(of)) {
      const isWanted = model.edges().some((edge) => {
        return edge.kind === 'hard' && edge.by === session && model.waits.get(edge.of) === of
      })
      // Of a row that nobody waits for no server of the two tells.
      if (resource.kind === 'name' || isWanted)
        facts.push(`s${session} has ${nameOf(resource, database)}`)
    }
  return new Set(facts)
}

function differences(tree: LockTree, stage: Stage): readonly string[] {
  const [seen, real] = [told(tree, stage), truth(stage)]
  return [
    ...[...real].filter((fact) => !seen.has(fact)).map((fact) => `missing: ${fact}`),
    ...[...seen].filter((fact) => !real.has(fact)).map((fact) => `untrue: ${fact}`),
  ].toSorted()
}

/** What `why` says is a way from each waiter, from one to somebody in its way, to a root. */
function assertWays(tree: LockTree, { model, pids }: Stage): void {
  for (const session of model.waits.keys()) {
    const chain = chainTo(tree, pids[session] as number).map(({ pid }) => pids.indexOf(pid))
    expect(chain[0]).toBe(session)
    for (const [at, from] of chain.entries()) {
      const ways = model.edgesOf(from)
      const next = chain[at + 1]
      if (next === undefined) expect(ways).toEqual([])
      else {
        const hard = ways.filter(({ kind }) => kind === 'hard')
        expect((hard.length > 0 ? hard : ways).map(({ by }) => by)).toContain(next)
      }
    }
  }
}

/** Edges that were never true. */
function madeUp(tree: LockTree, stage: Stage): readonly string[] {
  return [...told(tree, stage)].filter(
    (fact) => / (?:hard|soft) /.test(fact) && !stage.ever.has(fact),
  )
}

/** Looks until the tree is what it should be; on the way there nobody may be told to be in the way who never was. */
async function lookedAt(
  observer: Observer,
  stage: Stage,
  { limitMs = 10_000 }: { readonly limitMs?: number } = {},
): Promise<LockTree> {
  let last: readonly string[] = []
  const look = async (): Promise<LockTree | undefined> => {
    const tree = await observer.locks()
    expect(madeUp(tree, stage)).toEqual([])
    last = differences(tree, stage)
    return last.length === 0 ? tree : undefined
  }
  try {
    return await waitUntil('the tree is told', look, { everyMs, limitMs })
  } catch (error) {
    // What was wrong says more than that time was up.
    expect(last).toEqual([])
    throw error
  }
}

const rowText = (number: number, mode: Mode): string =>
  `SELECT v FROM tree_row WHERE id = ${number} ${mode === 'alone' ? 'FOR UPDATE' : 'LOCK IN SHARE MODE'}`

/** Fails soon if it does not happen. */
async function inTime(what: string, running: Promise<unknown>): Promise<void> {
  let over = false
  void running.then(() => (over = true))
  await waitUntil(what, () => over || undefined, { limitMs: 5_000 })
}

/** The sessions of one situation. Whoever waits is let go when they end. */
class Crew implements AsyncDisposable {
  readonly stage: Stage
  readonly #connections: readonly Connection[]
  readonly #locks: Locks<Connection>
  readonly #watcher: InnodbSession
  readonly #running = new Map<number, Promise<unknown>>()

  private constructor(
    stage: Stage,
    connections: readonly Connection[],
    locks: Locks<Connection>,
    watcher: InnodbSession,
  ) {
    this.stage = stage
    this.#connections = connections
    this.#locks = locks
    this.#watcher = watcher
  }

  static async open(place: OwnServer, situation: Situation): Promise<Crew> {
    const uri = place.url()
    const connections: Connection[] = []
    for (let at = 0; at < situation.sessions; at += 1) {
      const connection = await createConnection({ uri })
      connection.on('error', () => undefined)
      const level = at % 2 === 0 ? 'READ COMMITTED' : 'REPEATABLE READ'
      await connection.query(`SET SESSION TRANSACTION ISOLATION LEVEL ${level}`)
      await connection.query('SET SESSION innodb_lock_wait_timeout = 600')
      await connection.beginTransaction()
      // MariaDB tells those apart that have written something.
      await connection.query(`UPDATE tree_own SET v = v + 1 WHERE id = ${at + 1}`)
      connections.push(connection)
    }
    const pids = connections.map(({ threadId }) => threadId)
    const database = new URL(uri).pathname.slice(1)
    const model = new WaitModel(situation.resources.length)
    const { locks } = createHoldfast(place.driver() as InnodbDriver<Connection>, {
      locks: { watch: false },
    })
    const watcher = await InnodbSession.open(uri)
    return new Crew(
      { model, pids, situation, database, ever: new Set() },
      connections,
      locks,
      watcher,
    )
  }

  /** Takes all steps but those that stop somebody. */
  async build(): Promise<void> {
    const { model, situation } = this.stage
    for (const step of situation.steps) {
      if (step.does === 'stops') continue
      const { session, of, mode } = step
      const asked = this.#ask(session, situation.resources[of] as Resource, mode)
      if (step.does === 'takes') {
        await asked
        model.take(session, of, mode)
      } else {
        const running = asked.catch((error: unknown) => error)
        this.#running.set(session, running)
        await this.#until(session, true, running)
        model.wait(session, of, mode)
      }
      this.#note()
    }
  }

  #note(): void {
    for (const { of, by, kind } of this.stage.model.edges())
      this.stage.ever.add(`s${of} ${kind} s${by}`)
  }

  /** The transaction goes on without what it has waited for. */
  async stop(session: number, observer: Observer, place: OwnServer): Promise<void> {
    const { model, pids } = this.stage
    const pid = pids[session] as number
    const seen = await observer.session(pid)
    const { startedAt = '', transactionStartedAt = null, transactionId = '' } = seen ?? {}
    const ended = await createInterventions(place.driver()).cancel(pid, {
      startedAt,
      transactionStartedAt,
      transactionId,
    })
    if (!ended) throw new Error(`session ${session} ran nothing that could be cancelled`)
    await this.#running.get(session)
    const serves = place.isMariadb ? 'in order' : 'past others'
    for (const granted of model.stop(session, serves)) {
      const running = this.#running.get(granted) as Promise<unknown>
      await inTime(`session ${granted} gets it`, running)
    }
    this.#note()
  }

  async #ask(session: number, { kind, number }: Resource, mode: Mode): Promise<unknown> {
    const connection = this.#connections[session] as Connection
    if (kind === 'row') return await connection.query(rowText(number, mode))
    return await this.#locks.acquire(connection, key(number), { wait: '600 s' })
  }

  /** By what the server says of its queues, and not by what is tested. */
  async #until(session: number, waits: boolean, running: Promise<unknown>): Promise<void> {
    const pid = this.stage.pids[session] as number
    let ended: string | undefined
    void running.then((outcome) => (ended = outcome instanceof Error ? outcome.message : 'got it'))
    await waitUntil(`session ${session} waits`, async () => {
      if (ended !== undefined) throw new Error(`it does not wait: ${ended}`)
      return (await this.#watcher.waiting()).has(pid) === waits ? true : undefined
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { model, pids } = this.stage
    // Whoever waits is ended first: whom MySQL would let in next is not told.
    for (const session of model.waits.keys())
      await this.#watcher.rows(`KILL CONNECTION ${pids[session]}`)
    await Promise.all(this.#running.values())
    for (const connection of this.#connections) connection.destroy()
    await waitUntil('they have ended', async () => {
      const left = await this.#watcher.rows(
        `SELECT ID FROM information_schema.PROCESSLIST WHERE ID IN (${pids.join(', ')})`,
      )
      return left.length === 0 ? true : undefined
    })
    await this.#watcher[Symbol.asyncDispose]()
  }
}

/** Of MariaDB: as if a monitor looked some hundred times a second. */
const lookingOften = `BEGIN NOT ATOMIC
  DECLARE n, round INT DEFAULT 0;
  WHILE round < 2000 DO
    SELECT COUNT(*) INTO n FROM information_schema.INNODB_TRX; DO SLEEP(0.005); SET round = round + 1;
  END WHILE;
END`

/** A driver whose answers are changed on their way. */
function changing(
  driver: InnodbDriver<unknown>,
  change: (rows: readonly Record<string, unknown>[]) => readonly Record<string, unknown>[],
): InnodbDriver<unknown> {
  const alone: typeof driver.alone = {
    ...driver.alone,
    query: async (statement) => change(await driver.alone.query(statement)) as never,
  }
  return { ...driver, alone }
}

eachOwnServer((place) => {
  beforeAll(async () => {
    const driver = place.driver()
    await migrate(driver)
    const session = await place.open()
    const rows = Array.from({ length: 20 }, (_, at) => `(${at + 1}, 0)`).join(', ')
    for (const table of ['tree_row', 'tree_own'])
      await session.all(
        `CREATE TABLE ${table} (id INT PRIMARY KEY, v INT NOT NULL) ENGINE=InnoDB`,
        `INSERT INTO ${table} VALUES ${rows}`,
      )
    // Their rows are there, as they are after the first day.
    const hf = createHoldfast(driver)
    for (let number = 1; number <= 4; number += 1)
      await hf.guard(key(number), async () => undefined)
  })

  test.each(seeds)('seed %i', { timeout: 60_000 }, async (seed) => {
    const situation = situationOf(seed)
    // A process that has never heard of these names.
    const observer = createObserver(place.driver())
    await using crew = await Crew.open(place, situation)
    await crew.build()
    const tree = await lookedAt(observer, crew.stage)
    expect(differences(tree, crew.stage)).toEqual([])
    assertWays(tree, crew.stage)
    for (const step of situation.steps) {
      if (step.does !== 'stops') continue
      await crew.stop(step.session, observer, place)
      assertWays(await lookedAt(observer, crew.stage), crew.stage)
    }
  })

  describe('control: it is found out', () => {
    /** Names and rows, four who wait, one of them behind another. */
    const situation: Situation = {
      sessions: 5,
      resources: [
        { kind: 'name', number: 1 },
        { kind: 'row', number: 1 },
      ],
      steps: [
        { does: 'takes', session: 0, of: 0, mode: 'alone' },
        { does: 'takes', session: 1, of: 1, mode: 'alone' },
        { does: 'waits', session: 1, of: 0, mode: 'alone' },
        { does: 'waits', session: 2, of: 0, mode: 'alone' },
        { does: 'waits', session: 3, of: 1, mode: 'alone' },
        { does: 'waits', session: 4, of: 1, mode: 'alone' },
      ],
    }
    const short = { limitMs: 1_500 }

    test('if nothing is taken away, it is as it should be', async () => {
      await using crew = await Crew.open(place, situation)
      await crew.build()
      const tree = await lookedAt(createObserver(place.driver()), crew.stage, short)
      expect(differences(tree, crew.stage)).toEqual([])
    })

    test.each<[string, (observed: OwnServer) => Observer, RegExp]>([
      [
        'if rows of locks are not read as names',
        ({ driver }) => createObserver(driver(), { database: 'mysql' }),
        /missing: s1 wants tree:n-1/,
      ],
      [
        'if one of those in the way is left out',
        ({ driver }) => {
          const left = (rows: readonly Record<string, unknown>[]) => {
            const last = rows.findLastIndex(({ kind }) => kind === 'wait')
            return rows.filter((_, at) => at !== last)
          }
          return createObserver(changing(driver(), left))
        },
        /missing: s\d (?:hard|soft) s\d/,
      ],
      [
        'if a lock is taken for its table',
        ({ driver }) => {
          const dull = (rows: readonly Record<string, unknown>[]) =>
            rows.map((row) => (row['kind'] === 'lock' ? { ...row, c5: null, c6: null } : row))
          return createObserver(changing(driver(), dull))
        },
        /missing: s3 wants row of \S+, PRIMARY: 1/,
      ],
    ])('%s', async (_, observerOf, wrong) => {
      await using crew = await Crew.open(place, situation)
      await crew.build()
      const error = await lookedAt(observerOf(place), crew.stage, short).catch(
        (thrown: unknown) => thrown,
      )
      expect(error).toBeInstanceOf(Error)
      expect(JSON.stringify((error as { readonly actual?: unknown }).actual)).toMatch(wrong)
    })

    test.runIf(place.isMariadb)(
      'if somebody looks so often that MariaDB makes its views never anew',
      async () => {
        await using crew = await Crew.open(place, situation)
        // On the server itself, so that nothing here can keep it from looking.
        const busy = [await place.open(), await place.open()]
        const looking = busy.map((session) =>
          session.rows(lookingOften).catch((error: unknown) => error),
        )
        await crew.build()
        const looked = lookedAt(createObserver(place.driver()), crew.stage, short)
        await expect(looked).rejects.toThrow(/deeply equal/)
        const watcher = await place.open()
        for (const { id } of busy) await watcher.rows(`KILL CONNECTION ${id}`)
        await Promise.all(looking)
        await lookedAt(createObserver(place.driver()), crew.stage, short)
      },
    )
  })
})
