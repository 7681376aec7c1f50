import { hash } from 'node:crypto'
import type pg from 'pg'
import type { Executor } from '../../src/core/driver.ts'
import { sqlStateOf } from '../../src/core/sql-state.ts'
import { ledgerCalls } from '../../src/engines/postgres/ledger/ledger.ts'
import { accountId, holdIdOf, operationUuid } from '../../src/ledger/account-id.ts'
import { answersOf, type LineAnswer } from '../../src/ledger/sending/answer.ts'
import { newAnswers } from '../../src/ledger/sending/new-call.ts'
import type { Kernel } from '../../src/ledger/kernel.ts'
import {
  isPlain,
  newLineOf,
  plainStatementFor,
  type Request,
  requestOf,
  statementFor,
} from '../../src/ledger/sending/request.ts'
import { numberAmounts, type Verdict, verdictOf } from '../../src/ledger/verdict.ts'
import type { Answer, AnswerLine, Command, KeyTerms, Movement, Single } from './ledger-command.ts'
import { fresh } from './ledger-fixture.ts'
import { answerOf, timesOf } from './ledger-player-answer.ts'
import { ask } from './ledger-player-single.ts'
import { book, nameOf, operationOf } from './ledger-player-lines.ts'

export interface PlayerOptions {
  /** @defaultValue 'holdfast' */
  readonly schema?: string
  /** @defaultValue one of its own */
  readonly scope?: string
  readonly termsOf?: (key: string) => KeyTerms
  /** Tells times as well: the clock of this server is set by hand. */
  readonly exact?: boolean
}

/** Plays commands against a real ledger, in a scope of its own, and tells the answers alike. */
export class LedgerPlayer {
  readonly scope: string
  readonly #kernel: Kernel<pg.PoolClient>
  readonly #schema: string
  readonly #options: PlayerOptions

  constructor(kernel: Kernel<pg.PoolClient>, options: PlayerOptions = {}) {
    this.#kernel = kernel
    this.#schema = options.schema ?? 'holdfast'
    this.scope = options.scope ?? fresh()
    this.#options = { ...options, scope: this.scope }
  }

  /** Another process that plays in the same scope. */
  with(kernel: Kernel<pg.PoolClient>): LedgerPlayer {
    return new LedgerPlayer(kernel, this.#options)
  }

  async play(command: Command, tx?: pg.PoolClient): Promise<Answer> {
    const verdict = await this.#kernel.apply(tx, this.#operationOf(command), numberAmounts)
    return this.#answerOf(command, verdict)
  }

  /** What is a call of its own: limits and questions. */
  async ask(command: Single, tx?: pg.PoolClient): Promise<unknown> {
    const { termsOf = () => ({}) } = this.#options
    const how = { scope: this.scope, schema: this.#schema, termsOf }
    return await ask(this.#kernel, tx, command, how)
  }

  /** The order in which the database has accounts, by the names that the model has for them. */
  rankOf(account: string): string {
    const [key = '', start] = account.split('@')
    const { base } = accountId(this.scope, book, key)
    return start === undefined ? base : hash('sha256', `${base}:${start}`).slice(0, 32)
  }

  /** All in one call of `apply`, in their order. */
  async playTogether(executor: Executor, commands: readonly Command[]): Promise<Answer[]> {
    const requests = commands.map((command) => requestOf(this.#operationOf(command), true))
    const [row] = await executor.query(statementFor(ledgerCalls(this.#schema, 'joined'), requests))
    const sizes = requests.map(({ operation }) => operation.lines.length)
    return this.#answers(commands, requests, answersOf(row?.['answer'], sizes)) as Answer[]
  }

  /** Those that are plain in one call of `apply_plain`; undefined for what it or we left out. */
  async playPlain(
    executor: Executor,
    commands: readonly Command[],
  ): Promise<(Answer | undefined)[]> {
    const requests = commands.map((command) => requestOf(this.#operationOf(command), true))
    const plain = requests.filter(isPlain)
    if (plain.length === 0) return commands.map(() => undefined)
    const [row] = await executor.query(
      plainStatementFor(ledgerCalls(this.#schema, 'joined'), plain),
    )
    const sizes = requests.map((request) => (isPlain(request) ? 1 : 0))
    return this.#answers(commands, requests, answersOf(row?.['answer'], sizes))
  }

  /** Those that are as plain as can be in one call of `apply_new`; undefined for the others, or if an id is known. */
  async playNew(executor: Executor, commands: readonly Command[]): Promise<(Answer | undefined)[]> {
    const requests = commands.map((command) => requestOf(this.#operationOf(command), true))
    const lines = requests.map((request) => (isPlain(request) ? newLineOf(request) : undefined))
    const taken = lines.filter((line) => line !== undefined)
    if (taken.length === 0) return commands.map(() => undefined)
    let text: unknown
    try {
      const [row] = await executor.query(ledgerCalls(this.#schema, 'joined').fresh(taken))
      text = row?.['answer']
    } catch (error) {
      if (sqlStateOf(error) !== '23505') throw error
      return commands.map(() => undefined)
    }
    const told = newAnswers(text, taken, ({ allowance }, counted): LineAnswer => {
      const { sequence, credited, debited, held, at } = counted
      const numbers = { seq: sequence, credited, debited, held, allowance, at }
      const texts = Object.entries(numbers).map(([name, value]) => [name, String(value)])
      return { line: 1, status: 0, extra: undefined, ...Object.fromEntries(texts) } as LineAnswer
    })
    const answers = lines.map((line) => {
      const answer = line === undefined ? undefined : told[taken.indexOf(line)]
      return answer === undefined ? [] : [answer]
    })
    return this.#answers(commands, requests, answers)
  }

  #answers(
    commands: readonly Command[],
    requests: readonly Request[],
    answers: readonly LineAnswer[][],
  ): (Answer | undefined)[] {
    return commands.map((command, at) => {
      const [request, lines = []] = [requests[at] as Request, answers[at]]
      return lines.length === 0
        ? undefined
        : this.#answerOf(command, verdictOf(request, lines, numberAmounts))
    })
  }

  #holdId(operation: number): string {
    const { bucket, base } = accountId(this.scope, book, this.scope)
    return holdIdOf(bucket, base, operationUuid(nameOf(operation)))
  }

  /** Two hours pass for this scope: holds that were not extended are due, and rates fill up. */
  async passAWhile(queryable: pg.Pool | pg.PoolClient): Promise<void> {
    await queryable.query(
      `WITH mine AS (SELECT bucket, id FROM ${this.#schema}.account WHERE scope = $1), held AS (
         UPDATE ${this.#schema}.hold h SET expires_at = h.expires_at - interval '2 hours' FROM mine
         WHERE h.bucket = mine.bucket AND h.account = mine.id AND h.state = 0)
       UPDATE ${this.#schema}.balance b SET due_at = b.due_at - interval '2 hours',
         refilled_at = b.refilled_at - interval '2 hours' FROM mine
       WHERE b.bucket = mine.bucket AND b.account = mine.id`,
      [this.scope],
    )
  }

  /** Books what is due, as the sweeper does. */
  async sweep(queryable: pg.Pool | pg.PoolClient): Promise<void> {
    await queryable.query(`SELECT ${this.#schema}.sweep(1000)`)
  }

  /** The movements of each account in their order, as the model tells them. */
  async movements(observer: pg.Pool): Promise<Map<string, Movement[]>> {
    const { rows } = await observer.query<Record<string, string> & { after: string[] }>(
      `SELECT a.key, ${this.#schema}.movement_kind(m.kind) AS kind, m.operation_id AS operation, m.credit, m.debit,
              m.hold, ARRAY[m.credited, m.debited, m.held, m.allowance, m.seq]::text[] AS after
       FROM ${this.#schema}.movement m JOIN ${this.#schema}.account a ON a.bucket = m.bucket AND a.id = m.account
       WHERE a.scope = $1 ORDER BY a.key, m.seq`,
      [this.scope],
    )
    const movements = new Map<string, Movement[]>()
    for (const { key = '', kind, operation, credit, debit, hold, after } of rows) {
      const [credited = 0, debited = 0, held = 0, allowance = 0, sequence = 0] = after.map(Number)
      const movement = {
        kind: kind as Movement['kind'],
        operation: numberOf(String(operation)),
        credit: Number(credit),
        debit: Number(debit),
        hold: Number(hold),
        after: { credited, debited, held, allowance, sequence },
      }
      movements.set(key, [...(movements.get(key) ?? []), movement])
    }
    return movements
  }

  #operationOf(command: Command): ReturnType<typeof operationOf> {
    const { termsOf = () => ({}) } = this.#options
    return operationOf(command, this.scope, termsOf, (operation) => this.#holdId(operation))
  }

  #answerOf(command: Command, verdict: Verdict<number>): Answer {
    const answer = answerOf(verdict)
    return this.#options.exact === true
      ? { ...answer, ...timesOf(verdict) }
      : inOrder(command, answer)
  }
}

function numberOf(name: string): number {
  return Number(/\d+$/.exec(name)?.[0])
}

/**
 * The parts of a hold come in the order of their accounts' hashes, which says nothing; if they are
 * refused for different reasons, neither does the first.
 */
export function inOrder(command: Command, answer: Answer): Answer {
  if ('id' in command) return answer
  const text = ({ credited, debited, held, allowance, sequence, refusal }: AnswerLine): string =>
    [credited, debited, held, allowance, sequence, refusal].join()
  const lines = answer.lines.toSorted((a, b) => (text(a) < text(b) ? -1 : 1))
  const reasons = new Set(lines.flatMap(({ refusal }) => refusal ?? []))
  if (reasons.size < 2) return { ...answer, lines }
  const [reason] = [...reasons].toSorted((a, b) => (a < b ? -1 : 1))
  return { ...answer, lines, reason, field: undefined, state: undefined }
}
