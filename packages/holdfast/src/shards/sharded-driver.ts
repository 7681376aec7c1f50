import { bucketsOf } from '../core/bucket.ts'
import {
  type Driver,
  type Executor,
  hasSessions,
  type Row,
  type Session,
  type SessionDriver,
  type Statement,
  type Transaction,
  type TransactionSettings,
} from '../core/driver.ts'
import { type Duration, durationMs } from '../core/options/duration.ts'
import { holdfastError } from '../core/errors.ts'
import { askHere, checkedStatement } from '../engines/postgres/shards/shards.ts'
import { askEach } from '../tx/ask-each.ts'
import { refusalOr, Routing } from './routing.ts'
import { objectGiven } from '../core/options/given.ts'
import { type KnownOptions, optionsGiven } from '../core/options/known-options.ts'
import { assertDriver } from '../core/client-kind.ts'

/** Settings of `shardedDriver`. */
export interface ShardedOptions {
  /** Where the tables are, the same on all primaries. @defaultValue 'holdfast' */
  readonly schema?: string
  /** How long an operation waits for a bucket that is on its way to another primary. @defaultValue '10 s' */
  readonly wait?: Duration
}

const shardedOptions: KnownOptions<ShardedOptions> = {
  schema: 'text',
  wait: 'checked',
}

/** A driver over several primaries. */
export interface ShardedDriver<Tx> extends Driver<Tx> {
  readonly shards: NonNullable<Driver<Tx>['shards']>
}

/**
 * Several primaries as one: every operation goes to the one that has its scope's bucket, and is checked
 * there by the server. What spans several primaries is refused.
 *
 * @example
 * const driver = shardedDriver({ north: fromPg(northPool), south: fromPg(southPool) })
 * const hf = createHoldfast(driver)
 * @throws OPTION_INVALID
 */
export function shardedDriver<Tx>(
  primaries: Readonly<Record<string, SessionDriver<Tx>>>,
  options?: ShardedOptions,
): ShardedDriver<Tx> & SessionDriver<Tx>
export function shardedDriver<Tx>(
  primaries: Readonly<Record<string, Driver<Tx>>>,
  options?: ShardedOptions,
): ShardedDriver<Tx>
export function shardedDriver<Tx>(
  primaries: Readonly<Record<string, Driver<Tx>>>,
  given: ShardedOptions = {},
): ShardedDriver<Tx> {
  const { schema = 'holdfast', wait = '10 s' } = optionsGiven(given, shardedOptions)
  const byName = new Map(Object.entries(objectGiven(primaries, 'primaries')))
  for (const primary of byName.values()) assertDriver(primary, 'each of the primaries')
  const [first] = byName.values()
  if (first === undefined) {
    throw holdfastError('OPTION_INVALID', {
      details: { option: 'primaries', subject: 'primaries is empty' },
    })
  }
  const routing = new Routing(byName, schema, durationMs(wait, 'wait'))
  const driver: ShardedDriver<Tx> = {
    name: first.name,
    engine: first.engine,
    capabilities: first.capabilities,
    shards: {
      primaries: new Map(
        [...byName].map(([name, primary]) => [
          name,
          {
            ...primary,
            alone: routing.at(name),
            transaction: (body, settings) =>
              primary.transaction(body, settings).catch(async (error: unknown) => {
                throw await routing.named(error)
              }),
          },
        ]),
      ),
      schema,
      guess: (scopes) => routing.guess(scopes),
      routed: (scopes, run) => routing.routed(scopes, run),
    },
    alone: {
      query: (statement) =>
        routing.routed(statement.scopes ?? [], (_, executor) => executor.query(statement)),
    },
    // A handle knows its connection, so that any of the drivers can speak through it.
    join: (tx) => new CheckedTransaction(first.join(tx), routing, schema),
    ...(first.schemaOf && { schemaOf: first.schemaOf }),
    transaction: (body, settings) =>
      routing.routed(settings.scopes, (name, executor) =>
        openOn(byName.get(name) as Driver<Tx>, { routing, schema, executor }, body, settings),
      ),
  }
  const sessions = [...byName.values()].filter((each) => hasSessions(each))
  return sessions.length === byName.size ? withSessions(driver, byName, routing, schema) : driver
}

interface On {
  readonly routing: Pick<Routing<never>, 'guessed' | 'named'>
  readonly schema: string
  /** Other connections to the same primary. */
  readonly executor: Executor
}

/**
 * The check is the first thing in the transaction, together with its first statement where there is one:
 * a bucket is not handed over before a transaction has ended that was there before.
 */
async function openOn<Tx, T>(
  primary: Driver<Tx>,
  { routing, schema, executor }: On,
  body: (transaction: Transaction<Tx>, opened?: Promise<readonly Row[]>) => Promise<T>,
  settings: TransactionSettings,
): Promise<T> {
  const given = settings.opening?.()
  const buckets = bucketsOf([...settings.scopes, ...(given?.scopes ?? [])])
  const opening = given ?? askHere(schema, buckets)
  const first = given === undefined ? opening : checkedStatement(schema, opening, buckets)
  let passed = false
  const pass = (rows: readonly Row[]): readonly Row[] => {
    passed = true
    return rows
  }
  try {
    return await primary.transaction(
      async (transaction, opened) => {
        const inside = new CheckedTransaction(transaction, routing, schema, buckets, executor)
        if (given === undefined) {
          pass(await (opened ?? transaction.query(first)))
          return await body(inside)
        }
        if (opened !== undefined) return await body(inside, opened.then(pass))
        // The client cannot send it together with BEGIN, and the body would do so itself.
        pass(await transaction.query(askHere(schema, buckets)))
        return await body(inside)
      },
      { ...settings, opening: () => first },
    )
  } catch (error) {
    // Later than that, the body has begun, and running it again is not ours to decide.
    throw passed ? error : refusalOr(error)
  }
}

/** A transaction on one of the primaries: what is asked there of other buckets is refused by the server. */
class CheckedTransaction<Tx> implements Transaction<Tx> {
  readonly native: Tx
  readonly budgetMs: number | undefined
  readonly #inner: Transaction<Tx>
  readonly #routing: Pick<Routing<never>, 'guessed' | 'named'>
  readonly #schema: string
  /** Checked when the transaction began, which is enough for as long as it lasts. */
  readonly #checked: ReadonlySet<number>
  #beside: Executor | undefined

  constructor(
    inner: Transaction<Tx>,
    routing: Pick<Routing<never>, 'guessed' | 'named'>,
    schema: string,
    checked: readonly number[] = [],
    beside?: Executor,
  ) {
    this.#inner = inner
    this.native = inner.native
    this.budgetMs = inner.budgetMs
    this.#routing = routing
    this.#schema = schema
    this.#checked = new Set(checked)
    this.#beside = beside
  }

  /** Of a caller's transaction it is where its buckets are believed to be. */
  get beside(): Executor | undefined {
    return this.#beside
  }

  get cancel(): Transaction<Tx>['cancel'] {
    return this.#inner.cancel
  }

  state(): ReturnType<Transaction<Tx>['state']> {
    return this.#inner.state()
  }

  command(text: string): Promise<void> {
    return this.#inner.command(text)
  }

  async query(statement: Statement): Promise<readonly Row[]> {
    const { scopes = [] } = statement
    const buckets = bucketsOf(scopes)
    const known = buckets.every((bucket) => this.#checked.has(bucket))
    try {
      if (known) return await this.#inner.query(statement)
      this.#guessPlace(buckets)
      return await this.#inner.query(checkedStatement(this.#schema, statement, buckets))
    } catch (error) {
      throw await this.#routing.named(error)
    }
  }

  #guessPlace(buckets: readonly number[]): void {
    this.#beside ??= this.#routing.guessed(buckets)
  }

  nested<T>(body: (inner: Transaction<Tx>) => Promise<T>): Promise<T> {
    return this.#inner.nested((inner) =>
      body(
        new CheckedTransaction(inner, this.#routing, this.#schema, [...this.#checked], this.beside),
      ),
    )
  }
}

function withSessions<Tx>(
  driver: ShardedDriver<Tx>,
  primaries: ReadonlyMap<string, Driver<Tx>>,
  routing: Routing<Tx>,
  schema: string,
): ShardedDriver<Tx> & SessionDriver<Tx> {
  const sessionsOf = (name: string): SessionDriver<Tx> => primaries.get(name) as SessionDriver<Tx>
  return {
    ...driver,
    session: (scope) =>
      routing.routed(scope === undefined ? [] : [scope], async (name) =>
        checkedSession(await sessionsOf(name).session(), routing, schema, scope),
      ),
    async listen(channel, hear) {
      let ended = false
      const { answers, failure } = await askEach(driver, async (_, name) => {
        const listening = await sessionsOf(name).listen(channel, hear)
        // Nobody waited for it any more.
        if (ended) await listening.end()
        return listening
      })
      if (failure !== undefined && answers.length === 0) throw failure
      return {
        lost: AbortSignal.any(answers.map(({ lost }) => lost)),
        failure,
        async end() {
          ended = true
          await Promise.all(answers.map((each) => each.end()))
        },
      }
    },
  }
}

/** How often a session asks whether its bucket is still there: its locks do not move. */
const watchMs = 250

/** Whoever holds it finds out where the bucket has gone when they ask for another session. */
function checkedSession<Tx>(
  session: Session,
  routing: Routing<Tx>,
  schema: string,
  scope: string | undefined,
): Session {
  const left = new AbortController()
  const question = askHere(schema, bucketsOf(scope === undefined ? [] : [scope]))
  let watching: NodeJS.Timeout | undefined
  const watch = (): void => {
    watching = setTimeout(() => void look(), watchMs)
    watching.unref()
  }
  const look = async (): Promise<void> => {
    try {
      await session.query(question)
      watch()
    } catch (error) {
      const named = await routing.named(error)
      // Any other trouble of the session shows by itself.
      if (named !== error) left.abort(named)
    }
  }
  if (scope !== undefined) watch()
  return {
    lost: AbortSignal.any([session.lost, left.signal]),
    claimedPid: session.claimedPid,
    async end() {
      clearTimeout(watching)
      await session.end()
    },
    async query(statement) {
      const { scopes } = statement
      if (scopes === undefined) return await session.query(statement)
      const buckets = bucketsOf(scopes)
      try {
        return await session.query(checkedStatement(schema, statement, buckets))
      } catch (error) {
        const named = await routing.named(error)
        if (named !== error) await routing.read(buckets)
        throw named
      }
    },
  }
}
