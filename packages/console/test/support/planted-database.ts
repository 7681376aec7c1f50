/**
 * A database whose users have left their names, mails and values wherever a user can put text, while it is
 * being used: what a console that masks must not show.
 */
import { deferred, startPostgres, waitUntil } from '@holdfast/testkit'
import { createHoldfast, type Holdfast, legacyKey, lockKey } from 'holdfast'
import { fromPg } from 'holdfast/drivers/pg'
import { createMetrics, type Metrics } from 'holdfast/observe'
import { migrate } from 'holdfast/schema'
import pg from 'pg'

/** Everything that was planted, by where. Each text holds a mark that occurs nowhere else. */
export class Planted {
  readonly #places: string[] = []

  /** A name, a mail or a value to be put at a place. */
  text(place: string): string {
    const mark = `q${this.#places.push(place)}plum`
    return (
      [`${mark}@example.test`, `Quentin-${mark}`, `55-${mark}-01`][this.#places.length % 3] ?? ''
    )
  }

  texts(place: string, count: number): string[] {
    return Array.from({ length: count }, () => this.text(place))
  }

  /** A number to be put into SQL as it is. */
  digits(place: string): string {
    return String(77_000_000_000 + this.#places.push(place))
  }

  get count(): number {
    return this.#places.length
  }

  /** The places whose texts are in an answer. */
  foundIn(answer: string): string[] {
    // As a number of its own: a part of a second may have such digits too.
    const marks = answer.matchAll(/q(\d+)plum|(?<![\d.])77000000(\d{3})(?!\d)/gi)
    const places = [...marks].map(([, mark, digits]) => this.#places[Number(mark ?? digits) - 1])
    return [...new Set(places.filter((place) => place !== undefined))].toSorted()
  }
}

export interface PlantedDatabase {
  readonly url: string
  readonly planted: Planted
  /** Of this process, from before anything happened. */
  readonly metrics: Metrics
  readonly accounts: readonly { readonly key: string; readonly scope: string }[]
  readonly schedules: readonly string[]
  end(): Promise<void>
}

/** Plants at least 200 texts, and leaves sessions that hold and wait until it is ended. */
export async function plantedDatabase(): Promise<PlantedDatabase> {
  const server = await startPostgres({ settings: { max_prepared_transactions: '4' } })
  const url = await server.createDatabase()
  const planted = new Planted()
  const pool = new pg.Pool({ connectionString: url, max: 40, application_name: 'shop' })
  pool.on('error', () => undefined)
  const hf = createHoldfast(fromPg(pool))
  const metrics = createMetrics({ observer: hf.observe, mostValues: 1_000 })
  await migrate(fromPg(pool))
  const accounts = await ledger(hf, planted)
  await leases(hf, planted)
  await work(hf, pool, planted)
  const schedules = await ticks(hf, pool, planted)
  const leave = await sessions(hf, url, planted)
  const recorder = await hf.observe.record({ every: '1 s' })
  await recorder.stop()
  return {
    url,
    planted,
    metrics,
    accounts,
    schedules,
    async end() {
      metrics.stop()
      await leave()
      await pool.end()
      await server.stop('immediate')
    },
  }
}

type Hf = Holdfast<pg.PoolClient>

async function ledger(hf: Hf, planted: Planted): Promise<PlantedDatabase['accounts']> {
  const credits = hf.credits({ name: 'credits' })
  const accounts: { key: string; scope: string }[] = []
  for (let at = 0; at < 6; at += 1) {
    const [key, scope] = [planted.text('account key'), planted.text('account scope')]
    const with_ = (): { operationId: string; scope: string; note: Record<string, unknown> } => ({
      operationId: planted.text('operation id'),
      scope,
      note: { [planted.text('note field')]: planted.text('note') },
    })
    await credits.grant(key, 100, with_())
    const feature = planted.text('feature')
    await credits.grant(key, 100, { ...with_(), onlyFor: [feature] })
    await credits.spend(key, 5, { ...with_(), feature })
    await credits.hold(key, 5, { ...with_(), ttl: '1 h' })
    accounts.push({ key, scope })
  }
  await hf.ledger.follow({ name: planted.text('follower') }, async () => undefined)
  return accounts
}

async function leases(hf: Hf, planted: Planted): Promise<void> {
  for (let at = 0; at < 6; at += 1) {
    const name = planted.text('lease name')
    await hf.leases.acquire(at % 2 === 0 ? name : `${name}:${planted.text('lease name')}`, {
      ttl: '1 h',
      scope: planted.text('lease scope'),
      note: planted.text('lease note'),
    })
  }
}

async function work(hf: Hf, pool: pg.Pool, planted: Planted): Promise<void> {
  const jobs = hf.work<object>({ queue: 'mails', holder: planted.text('job holder') })
  for (let at = 0; at < 8; at += 1) {
    await jobs.enqueue({
      payload: { [planted.text('job payload')]: planted.text('job payload') },
      scope: planted.text('job scope'),
      uniqueKey: planted.text('job key'),
      maxAttempts: 1,
    })
  }
  // Two stay claimed, two wait, and four are dead with their errors.
  const claims = await jobs.claim(6)
  for (const claim of claims.slice(0, 4)) {
    await jobs.fail(claim, { error: new Error(planted.text('job error')) })
  }
  for (const key of planted.texts('once key', 4)) {
    await hf.once(key, () => ({ result: planted.text('once result') }))
  }
  await pool.query('CREATE TABLE customers (id int PRIMARY KEY, mail text)')
  const mails = planted.texts('table row', 8)
  await pool.query(
    'INSERT INTO customers SELECT row_number() OVER (), m FROM unnest($1::text[]) AS m',
    [mails],
  )
}

async function ticks(hf: Hf, pool: pg.Pool, planted: Planted): Promise<string[]> {
  const names = planted.texts('schedule name', 6)
  for (const [at, name] of names.entries()) {
    const options = { name, holder: planted.text('tick holder'), every: '1 h' } as const
    const handler = (): never => {
      throw new Error(planted.text('tick error'))
    }
    const schedule = hf.schedule({ ...options, guarantee: 'at-most-once', handler })
    await schedule.runNow().catch(() => undefined)
    // As if its process had gone long ago: the doctor tells of it.
    if (at === 0) {
      await pool.query(
        `UPDATE holdfast.tick SET state = 0, finished_at = NULL, lease_until = now() - interval '1 h'
         WHERE schedule = $1`,
        [name],
      )
    }
  }
  return names
}

/** Statements with values in every form that a value can have. */
function statements(planted: Planted): string[] {
  const text = (): string => planted.text('SQL text')
  return [
    `SELECT '${text()}', E'${text()}\\n', U&'${text()}', n'${text()}', ${planted.digits('SQL number')}`,
    `SELECT $$${text()}$$, $é$${text()}$é$, $a$${text()} $$ ${text()}$a$`,
    `SELECT 1 AS "${planted.text('SQL alias')}" -- ${planted.text('SQL comment')}`,
    `SELECT 1 /* ${planted.text('SQL comment')} /* ${planted.text('SQL comment')} */ */`,
    `SET LOCAL shop.customer TO c_${planted.text('SQL setting').replaceAll(/[^a-z0-9]/gi, '_')}`,
    `LISTEN c_${planted.text('SQL channel').replaceAll(/[^a-z0-9]/gi, '_')}`,
    `SELECT count(*) FROM customers WHERE mail = '${text()}' OR id = ${planted.digits('SQL number')}`,
    `SELECT set_config('shop.customer', '${text()}', true)`,
  ]
}

/** Everybody who holds something, and somebody who waits for it. */
async function sessions(hf: Hf, url: string, planted: Planted): Promise<() => Promise<void>> {
  const curtain = deferred<void>()
  const playing: Promise<unknown>[] = []
  /** Waits until the end, which may be that of its connection. */
  const plays = (work: Promise<unknown>): unknown => playing.push(work.catch(() => undefined))
  const clients: pg.Client[] = []
  const keys = [
    ...planted.texts('lock key', 4).map((text) => lockKey('cart', text)),
    lockKey('order', planted.text('lock key'), planted.text('lock key')),
    lockKey('seat', `${planted.text('lock key')}:${planted.text('lock key')}`),
    legacyKey.hashtext(planted.text('lock key')),
  ]
  for (const [at, key] of keys.entries()) {
    const held = deferred<void>()
    const statement = statements(planted)[at % 8] as string
    const holding = hf.guard(key, async (tx) => {
      await tx.query('INSERT INTO customers VALUES ($1::int, NULL)', [1_000 + at])
      await tx.query(statement)
      held.resolve()
      await curtain.promise
    })
    plays(holding)
    await Promise.race([held.promise, holding])
    plays(hf.guard(key, () => Promise.resolve(), { waitMs: 600_000, queue: false }))
  }
  const busy = deferred<void>()
  plays(
    hf.once(planted.text('once key'), async () => {
      busy.resolve()
      await curtain.promise
    }),
  )
  await busy.promise
  const connect = async (application: string): Promise<pg.Client> => {
    const client = new pg.Client({ connectionString: url, application_name: application })
    client.on('error', () => undefined)
    await client.connect()
    clients.push(client)
    return client
  }
  // Names that look like labels of ours, of sessions that hold what others want.
  const names = [
    ...planted.texts('application name', 4),
    `api hf:${planted.text('forged label')}:7`,
    `hf:${planted.text('forged label')}`,
    `api hf:cart:${planted.text('forged label')} +3`,
  ]
  for (const [at, name] of names.entries()) {
    const client = await connect(name)
    await client.query('BEGIN')
    await client.query(`SELECT pg_advisory_xact_lock(${at + 1})`)
    await client.query('UPDATE customers SET mail = mail WHERE id = $1', [at + 1])
    await client.query(statements(planted)[at % 8] as string)
    const waiting = await connect(planted.text('application name'))
    plays(
      waiting.query(
        `UPDATE customers SET mail = '${planted.text('SQL text')}' WHERE id = ${at + 1}`,
      ),
    )
  }
  const prepared = await connect('prepares')
  await prepared.query('BEGIN')
  await prepared.query('UPDATE customers SET mail = mail WHERE id = 8')
  await prepared.query(`PREPARE TRANSACTION '${planted.text('prepared transaction')}'`)
  plays((await connect('waits')).query('UPDATE customers SET mail = mail WHERE id = 8'))
  await waitUntil('everybody waits', async () => {
    const tree = await hf.observe.locks()
    return tree.sessions.filter(({ waitsFor }) => waitsFor).length >= 15 || undefined
  })
  return async () => {
    curtain.resolve()
    await Promise.all(clients.map((client) => client.end().catch(() => undefined)))
    await Promise.allSettled(playing)
  }
}
