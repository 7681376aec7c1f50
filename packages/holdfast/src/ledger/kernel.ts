import type { Driver, Row, Statement, Transaction } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { channels } from '../core/events.ts'
import { sqlStateOf } from '../core/sql-state.ts'
import type { Crowd } from '../core/activity.ts'
import { isTraced, type Span, traced } from '../core/events/tracing.ts'
import { type LedgerCalls, ledgerCalls } from '../engines/postgres/ledger/ledger.ts'
import { earlierIds } from '../engines/postgres/ledger/reads.ts'
import { askAgain, resolveMs, resolveOptions } from '../tx/ask-again.ts'
import { askAll } from '../tx/ask-each.ts'
import { needingSchema, queryJoined, schemaMissing } from '../engines/postgres/sql/call-function.ts'
import { assertNotNested } from '../tx/run.ts'
import { answersOf, type LineAnswer, statuses } from './sending/answer.ts'
import { type Audit, type AuditOptions, auditLedger } from './upkeep/audit.ts'
import { Combiner } from './sending/combiner.ts'
import type { CombinerOptions } from './sending/combiner-options.ts'
import { type BookDeclaration, Books, type Declared } from './declaration.ts'
import { heardSince, kindName, tellAnswered, tellFailed } from './sending/ledger-events.ts'
import { accountId, knownAccount } from './account-id.ts'
import { type Line, nameText, type Operation } from './operation.ts'
import type { NewCalls } from './sending/new-call.ts'
import { wordsOf } from '../engines/postgres/sql/uuid-words.ts'
import { mostNewAmount, type Request, requestOf, statementFor } from './sending/request.ts'
import { sendAlone } from './sending/send-alone.ts'
import { textAnswer } from './stored-text.ts'
import { type AmountReader, numberAmounts, type Verdict, verdictOf } from './verdict.ts'
import { type KnownOptions, optionsGiven } from '../core/options/known-options.ts'

/** Settings of the ledger. */
export interface LedgerOptions extends CombinerOptions {
  /** Where its tables are. @defaultValue 'holdfast' */
  readonly schema?: string
}

export const ledgerOptions: KnownOptions<LedgerOptions> = {
  ...resolveOptions,
  schema: 'text',
  lanes: 'checked',
  batch: 'checked',
  coalesce: 'boolean',
  wait: 'checked',
  queue: 'checked',
}

/** The kernel: applies operations, in a transaction of their own or in the caller's. */
export interface Kernel<Tx> {
  /** Applies one operation. With `tx` it becomes part of that transaction, and is never coalesced. */
  apply<A>(tx: Tx | undefined, operation: Operation, amounts: AmountReader<A>): Promise<Verdict<A>>
  /**
   * A short way for one line of a book whose amounts are numbers, under a limit, in a transaction of its own: with
   * nothing but a key, an amount and an id. Nothing where it cannot be gone; then nothing was done.
   */
  short(book: string, kind: Line['kind']): ShortLineWay
  /** Applies one operation that has a statement of its own, which answers like `apply`. */
  send<A>(
    tx: Tx | undefined,
    operation: Operation,
    ask: (schema: string, request: Request) => Statement,
    amounts: AmountReader<A>,
  ): Promise<Verdict<A>>
  /** Says what a book is; compared with the database before it is used. @throws LEDGER_BOOK_DIFFERS */
  declare(book: string, declaration: BookDeclaration): void
  /** What it was declared as, by this process or by whoever used it first. */
  declarationOf(book: string): Promise<Declared | undefined>
  /** Looks at everything in one snapshot. */
  audit(options: AuditOptions): Promise<Audit>
  /**
   * Runs a statement that answers a question, in a transaction of its own or in the caller's. With `book`, what this
   * process declares it as is compared first.
   */
  read(
    tx: Tx | undefined,
    ask: (schema: string) => Statement,
    book?: string,
  ): Promise<readonly Row[]>
  /** Where it works. */
  readonly driver: Driver<Tx>
  readonly schema: string
  /** Runs a statement that is about a whole server, on every primary. @throws SHARD_PRIMARY_FAILED */
  readEach(ask: (schema: string) => Statement): Promise<readonly (readonly Row[])[]>
}

/** See `Kernel.short`. What it gives rejects as `apply` does. */
export type ShortLineWay = (
  key: string,
  amount: number,
  allowance: number,
  operationId: string,
  crowd: Crowd,
) => Promise<Verdict<number>> | undefined

/** The kernel over a driver. */
export function createKernel<Tx>(driver: Driver<Tx>, given: LedgerOptions = {}): Kernel<Tx> {
  const options = optionsGiven(given, ledgerOptions)
  const schema = options.schema ?? 'holdfast'
  const forMs = resolveMs(options)
  const joining = { sure: ledgerCalls(schema, 'joined'), unsure: ledgerCalls(schema, 'marked') }
  const books = new Books(driver, schema, forMs)
  const alone = ledgerCalls(schema, 'alone')
  const { submit, single } = submitting(driver, alone, books, { ...options, schema })
  /** In the caller's transaction, if there is one; and not before the books are known to be what they are here. */
  const begun = (tx: Tx | undefined, request: Request): Promise<void> | undefined => {
    // A second connection could wait for what this transaction holds, for ever.
    if (tx === undefined) assertNotNested(driver)
    else {
      assertUnlimited(request.operation, 'in your transaction set its lock_timeout')
      joined(driver, tx)
    }
    return books.compared(tx, request)
  }
  const apply = async <A>(
    tx: Tx | undefined,
    request: Request,
    amounts: AmountReader<A>,
  ): Promise<Verdict<A>> => {
    try {
      const comparing = begun(tx, request)
      if (comparing !== undefined) await unlessFailed(request, comparing, tx !== undefined)
      const answers =
        tx === undefined
          ? await submit(request)
          : await toldOf(request, () => applyJoined(driver, joining, tx, request, books.hasDebit))
      return readVerdict(request, answers, amounts)
    } catch (error) {
      throw namedFailure(error)
    }
  }
  const send = async <A>(
    tx: Tx | undefined,
    request: Request,
    ask: (schema: string, request: Request) => Statement,
    amounts: AmountReader<A>,
  ): Promise<Verdict<A>> => {
    const statement = ask(schema, request)
    assertUnlimited(request.operation, 'this waits as long as lock_timeout allows')
    try {
      await begun(tx, request)
      const sent = async (): Promise<LineAnswer[]> =>
        (await sendAlone(driver.alone, statement, [1], forMs))[0] ?? []
      const answers =
        tx === undefined
          ? await toldOf(request, sent, false)
          : await toldOf(request, async () =>
              answersIn(await joined(driver, tx).query(statement), request),
            )
      return readVerdict(request, answers, amounts)
    } catch (error) {
      throw namedFailure(error)
    }
  }
  const read: Kernel<Tx>['read'] = async (tx, ask, book) => {
    try {
      const statement = ask(schema)
      if (book !== undefined) {
        await books.compare(tx, book, (statement.scopes ?? []) as readonly number[])
      }
      if (tx === undefined) {
        assertNotNested(driver)
        const look = (): Promise<readonly Row[]> => driver.alone.query(statement)
        return await askAgain(look, { forMs, unknown: 'CONNECTION_LOST' })
      }
      return await joined(driver, tx).query(statement)
    } catch (error) {
      throw schemaMissing(error) ?? error
    }
  }
  /** What an earlier version has remembered keeps its id: a repetition, a refund and a hold find it by that. */
  const remembered = async (
    tx: Tx | undefined,
    operation: Operation,
    { numbers }: { readonly numbers: boolean },
  ): Promise<Request> => {
    const request = requestOf(operation, numbers)
    const { owner, accounts, buckets, earlier = [] } = request
    if (owner === undefined) return request
    const bases = accounts.flatMap((account) => account?.base ?? [])
    const rows = await read(tx, () => earlierIds(schema, { owner, bases, ids: earlier, buckets }))
    return requestOf(operation, numbers, new Set(textAnswer(rows)?.split(',')))
  }
  return {
    driver,
    schema,
    read,
    declare: (book, declaration) => books.declare(book, declaration),
    declarationOf: async (book) => {
      assertNotNested(driver)
      return await needingSchema(books.declarationOf(book))
    },
    async apply(tx, operation, amounts) {
      let request = requestOf(operation, amounts.numbers)
      if (request.earlier !== undefined) request = await remembered(tx, operation, amounts)
      if (!isTraced()) return await apply(tx, request, amounts)
      return await tracedOperation(operation, () => apply(tx, request, amounts))
    },
    short(book, kind) {
      const shared: NewCalls = {
        book,
        kind,
        verdict: (request, answers) => readVerdict(request, answers, numberAmounts),
        failure: namedFailure,
      }
      return (key, amount, allowance, operationId, crowd) => {
        if (single === undefined || isTraced() || !books.isSure(book)) return undefined
        const idWords = wordsOf(operationId)
        if (idWords === undefined || amount > mostNewAmount) return undefined
        try {
          // A key that is known was valid.
          const account = knownAccount(book, key) ?? accountId(nameText(key, 'key'), book, key)
          assertNotNested(driver)
          const line = { key, account, amount, allowance, operationId, idWords }
          return single.submitNew(shared, line, crowd).verdict
        } catch {
          // Refused before anything was done. The longer way says why, where it was asked for.
          return undefined
        }
      }
    },
    async send(tx, operation, ask, amounts) {
      let request = requestOf(operation, amounts.numbers)
      if (request.earlier !== undefined) request = await remembered(tx, operation, amounts)
      if (!isTraced()) return await send(tx, request, ask, amounts)
      return await tracedOperation(operation, () => send(tx, request, ask, amounts))
    },
    async audit(auditOptions) {
      const began = performance.now()
      try {
        const audit = await auditLedger(driver, schema, auditOptions)
        if (channels.ledgerAudited.hasSubscribers) {
          const { accounts, found } = audit
          const durationMs = performance.now() - began
          channels.ledgerAudited.publish({ accounts, found, durationMs })
        }
        return audit
      } catch (error) {
        throw schemaMissing(error) ?? error
      }
    },
    async readEach(ask) {
      assertNotNested(driver)
      return await askAll(driver, ({ alone }) => needingSchema(alone.query(ask(schema))))
    },
  }
}

/** Where nobody would hear of it. */
function assertUnlimited({ waitMs, signal }: Operation, instead: string): void {
  if (waitMs === undefined && signal === undefined) return
  const option = waitMs === undefined ? 'signal' : 'wait'
  const subject = `${option} has no effect here: ${instead}`
  throw holdfastError('OPTION_INVALID', { details: { option, subject } })
}

/** The state with which `apply` refuses a key that is in use in another scope. */
const forgottenScope = 'HF006'

function namedFailure(error: unknown): unknown {
  return sqlStateOf(error) === forgottenScope
    ? holdfastError('LEDGER_SCOPE_FORGOTTEN', { cause: error })
    : (schemaMissing(error) ?? error)
}

/**
 * What is applied can be read, since the database has refused what could not. Functions of an older version do not, and
 * neither does a new limit of an account that counts beyond: then it has been applied.
 */
function readVerdict<A>(
  request: Request,
  answers: readonly LineAnswer[],
  amounts: AmountReader<A>,
): Verdict<A> {
  try {
    return verdictOf(request, answers, amounts)
  } catch (error) {
    if (!answers.some(({ status }) => status === statuses.accepted)) throw error
    throw holdfastError('LEDGER_ANSWER_UNREADABLE', { cause: error })
  }
}

/** One combiner for each primary: what goes into one statement has to be on one server. */
function submitting<Tx>(
  { shards, alone }: Driver<Tx>,
  calls: LedgerCalls,
  books: Books<Tx>,
  options: LedgerOptions & { readonly schema: string },
): { submit(request: Request): Promise<LineAnswer[]>; readonly single?: Combiner } {
  const single = new Combiner(alone, calls, books, options)
  if (shards === undefined) return { submit: (request) => single.submit(request), single }
  const combiners = new Map<string, Combiner>()
  const submit = (request: Request): Promise<LineAnswer[]> =>
    shards.routed(request.buckets, (primary, executor) => {
      const known = combiners.get(primary) ?? new Combiner(executor, calls, books, options)
      combiners.set(primary, known)
      return known.submit(request)
    })
  return { submit }
}

/** Who listens is told that it was not even sent. */
async function unlessFailed(
  request: Request,
  comparing: Promise<void>,
  isJoined: boolean,
): Promise<void> {
  const since = heardSince()
  try {
    await comparing
  } catch (error) {
    if (since !== 0) tellFailed([{ about: request.operation, since }], error, since, isJoined)
    throw error
  }
}

/** One operation that is sent by itself, and who listens is told. */
async function toldOf(
  request: Request,
  ask: () => Promise<LineAnswer[]>,
  isJoined = true,
): Promise<LineAnswer[]> {
  const since = heardSince()
  if (since === 0) return await ask()
  try {
    const answers = await ask()
    tellAnswered([{ about: request.operation, since }], [answers], since, isJoined)
    return answers
  } catch (error) {
    tellFailed([{ about: request.operation, since }], error, since, isJoined)
    throw error
  }
}

async function tracedOperation<A>(
  { book, lines }: Operation,
  apply: () => Promise<Verdict<A>>,
): Promise<Verdict<A>> {
  const kind = kindName(lines[0]?.kind)
  const subject = () => ({
    target: `${kind} ${book}`,
    attributes: {
      'holdfast.book': book,
      'holdfast.kind': kind,
      'holdfast.ledger.lines': lines.length,
    },
  })
  return await traced('ledger', subject, async (span: Span | undefined) => {
    const verdict = await apply()
    span?.set({
      'holdfast.outcome': verdict.ok ? (verdict.replayed ? 'replayed' : 'accepted') : 'refused',
      'holdfast.reason': verdict.ok ? undefined : verdict.reason,
    })
    return verdict
  })
}

async function applyJoined<Tx>(
  driver: Driver<Tx>,
  { sure, unsure }: { readonly sure: LedgerCalls; readonly unsure: LedgerCalls },
  tx: Tx,
  request: Request,
  hasDebit: boolean,
): Promise<LineAnswer[]> {
  const rows = await queryJoined(driver, tx, 'LEDGER_OUTSIDE_TRANSACTION', (marked) =>
    statementFor(marked ? unsure : sure, [request], hasDebit),
  )
  return answersIn(rows, request)
}

function answersIn([row]: readonly Row[], { operation }: Request): LineAnswer[] {
  return answersOf(row?.['answer'], [operation.lines.length])[0] ?? []
}

function joined<Tx>(driver: Driver<Tx>, tx: Tx): Transaction<Tx> {
  const transaction = driver.join(tx)
  if (transaction.state() === 'none') throw holdfastError('LEDGER_OUTSIDE_TRANSACTION')
  return transaction
}
