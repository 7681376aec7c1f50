/** What the ledger does, without a database: the truth that tests and the stress compare it with. */

import {
  Accounts,
  accountOf,
  balanceOf,
  canGive,
  type Change,
  type HoldPart,
  limitOf,
  type Standing,
  zero,
} from './ledger-accounts.ts'
import { windowAt } from './ledger-calendar.ts'
import {
  type Answer,
  type AnswerLine,
  type Command,
  type KeyTerms,
  type Movement,
} from './ledger-command.ts'
import { commit, type Step, takenBy } from './ledger-model-commit.ts'
import { type Asked, askedBy, takesAway } from './ledger-model-lines.ts'
import { type Around, outcomeOf } from './ledger-model-outcome.ts'
import { type Applied, replayOf } from './ledger-model-replay.ts'

export interface ModelOptions {
  readonly termsOf?: (key: string) => KeyTerms
  /** In which order the database has accounts, by the names they have here. */
  readonly rankOf?: (account: string) => string
  /** The clock stands still until it is set, so that times are told; else every call is a little later. */
  readonly exact?: boolean
}

const twoHoursUs = 7_200_000_000
const unknown = { credit: 0, debit: 0, hold: 0, allowed: 0, available: 0, apart: 0 }

export class LedgerModel {
  readonly options: Required<ModelOptions>
  readonly accounts: Accounts
  readonly applied = new Map<number, Applied>()

  constructor(options: ModelOptions = {}, accounts?: Accounts) {
    this.options = {
      termsOf: () => ({}),
      rankOf: (account) => account,
      exact: false,
      ...options,
    }
    this.accounts = accounts ?? new Accounts()
  }

  /** As it is now, to go on from later. */
  clone(): LedgerModel {
    const copy = new LedgerModel(this.options, this.accounts.clone())
    for (const [id, applied] of this.applied) {
      copy.applied.set(id, { ...applied, lines: applied.lines.map((line) => ({ ...line })) })
    }
    return copy
  }

  /** The movements of each account, without their times. */
  get movements(): Map<string, Movement[]> {
    const strip = ({ kind, operation, credit, debit, hold, after }: Movement): Movement => {
      return { kind, operation, credit, debit, hold, after }
    }
    return new Map([...this.accounts.movements].map(([name, list]) => [name, list.map(strip)]))
  }

  /** Two hours pass, and what is due falls due. */
  passAWhile(): void {
    this.accounts.now += twoHoursUs
    this.sweep()
  }

  sweep(): void {
    for (const standing of this.accounts.all()) {
      if (this.accounts.isDue(standing)) this.accounts.fallDue(standing)
    }
  }

  /** What a command asks of which accounts, in the order of its answer. */
  linesFor(command: Command): Asked[] {
    return askedBy(command, { ...this.options, accounts: this.accounts, applied: this.applied })
  }

  /**
   * Commands that reach the database in one call, in their order. A hold or an operation that a
   * command names must have been there before the call.
   */
  call(commands: readonly Command[]): Answer[] {
    if (!this.options.exact) this.accounts.now += 1
    const calls = commands.map((command) => ({ command, lines: this.linesFor(command) }))
    const { denied, isPlain } = this.#look(calls.flatMap(({ lines }) => lines))
    const isDenied = ({ account }: Asked): boolean => account !== undefined && denied.has(account)
    const looked = calls.map(
      ({ command, lines }) => !isPlain && (this.isKnown(command) || lines.some(isDenied)),
    )
    this.#lock(calls.flatMap(({ lines }, at) => (looked[at] === true ? [] : lines)))
    // A refund goes by what a hold was settled with before the call, a repetition by when it expired.
    const settled = new Map<HoldPart, number>()
    const expires = new Map<HoldPart, number>()
    for (const part of [...this.accounts.holds.values()].flat()) {
      settled.set(part, part.settled)
      expires.set(part, part.expiresAt)
    }
    // What is told of a conflict is what stood before the call.
    const stood = calls.map(({ command, lines }) =>
      this.isKnown(command) ? this.#refusedAtSight(lines, new Set()).lines : [],
    )
    const replayed = (id: number, command: Command, at: number): Answer => {
      const answer = replayOf(
        this.applied.get(id) as Applied,
        command,
        this.accounts.holds,
        expires,
      )
      if (answer.reason !== 'conflict') return answer
      const lines = (stood[at] ?? []).map((line) => ({ ...line, refusal: 'conflict' as const }))
      return { ...answer, lines }
    }
    return calls.map(({ command, lines }, at) =>
      this.#told(
        this.isKnown(command) && 'id' in command
          ? replayed(command.id, command, at)
          : looked[at] === true
            ? this.#refusedAtSight(lines, denied)
            : this.#apply(command, lines, settled),
      ),
    )
  }

  /** A refusal that is remembered is forgotten at its time. */
  isKnown(command: Command): boolean {
    const applied = 'id' in command ? this.applied.get(command.id) : undefined
    return applied !== undefined && (applied.until ?? Infinity) > this.accounts.now
  }

  /** Which accounts are too short for all that is asked of them, and whether that is of no consequence. */
  #look(lines: readonly Asked[]): { denied: Set<string>; isPlain: boolean } {
    const { now } = this.accounts
    const denied = new Set<string>()
    let isPlain = true
    for (const [account, asked] of Map.groupBy(lines, (line) => line.account)) {
      if (account === undefined) continue
      const standing = this.accounts.look(account, asked[0]?.key ?? account)
      if (this.accounts.get(account) === undefined) isPlain = false
      const isShort = asked.every(
        (line) =>
          takesAway(line) &&
          line.sticky !== true &&
          canGive(standing, line.limit, line.everyUs, now) < line.amount,
      )
      if (isShort && (standing?.dueAt ?? Infinity) > now) denied.add(account)
    }
    return { denied, isPlain: isPlain && denied.size === 0 }
  }

  /** Opens the accounts and books what is due on them. */
  #lock(lines: readonly Asked[]): void {
    for (const { account, key, terms, limit, everyUs } of lines) {
      if (account === undefined) continue
      const { dueAt } = this.accounts.open(
        account,
        key,
        terms,
        everyUs === undefined ? (limit ?? 0) : 0,
      )
      if (dueAt <= this.accounts.now) this.accounts.fallDue(this.accounts.get(account) as Standing)
    }
  }

  /** A refusal that needs no lock: every line by what its account was before the call. */
  #refusedAtSight(lines: readonly Asked[], denied: ReadonlySet<string>): Answer {
    const { now } = this.accounts
    const told = lines.map((line) => {
      const { account, limit, everyUs, amount } = line
      const standing = account === undefined ? undefined : this.accounts.look(account, line.key)
      const apart = this.accounts.grants.get(account ?? '')?.apart(line.feature) ?? 0
      const available = canGive(standing, limit, everyUs, now) - apart
      const isShort =
        denied.has(account ?? '') ||
        (takesAway(line) && (standing?.dueAt ?? Infinity) > now && available < amount)
      const allowed = limitOf(standing, limit, everyUs)
      const balance = standing === undefined ? 0 : balanceOf(standing)
      const answer: AnswerLine = {
        ...accountOf(standing ?? zero),
        allowance: everyUs === undefined ? allowed : available - balance,
        refusal: isShort ? 'insufficient' : undefined,
      }
      return { answer, apart, retryAt: isShort ? this.retryAt(line, standing, amount) : undefined }
    })
    const blocking = told.find(({ answer }) => answer.refusal !== undefined)
    return {
      ok: false,
      replayed: false,
      reason: blocking?.answer.refusal,
      field: undefined,
      state: undefined,
      lines: told.map(({ answer }) => answer),
      ...(blocking !== undefined && blocking.apart > 0 && { apart: blocking.apart }),
      retryAt: blocking?.retryAt,
    }
  }

  /** When an amount that was refused may fit. */
  retryAt(
    { account, limit, everyUs, terms }: Pick<Asked, 'account' | 'limit' | 'everyUs' | 'terms'>,
    standing: Standing | undefined,
    amount: number,
  ): number | undefined {
    const { now } = this.accounts
    if (amount > limitOf(standing, limit, everyUs)) return undefined
    if (everyUs !== undefined) {
      const since = standing?.refilledAt
      if (standing === undefined || since === undefined) return undefined
      return since + (amount - balanceOf(standing)) * everyUs
    }
    if (terms.rolling === true) {
      return this.accounts.freedAt(account ?? '', amount - canGive(standing, limit, everyUs, now))
    }
    return terms.unit === undefined ? undefined : windowAt(terms.unit, terms.zone ?? 'UTC', now).end
  }

  #apply(
    command: Command,
    lines: readonly Asked[],
    settled: ReadonlyMap<HoldPart, number>,
  ): Answer {
    const saved = lines.map(({ account, part }) => {
      const standing = this.accounts.get(account)
      return { standing, was: { ...standing }, part, wasPart: { ...part } }
    })
    const steps: Step[] = []
    for (const line of lines) steps.push(this.#step(command, line, settled, steps))
    const refused = steps.find(({ outcome }) => outcome.refusal !== undefined)
    if (refused === undefined) {
      commit(this, command, steps, settled)
      const answer = this.#accepted(steps)
      if ('id' in command) this.#remember(command, steps, answer)
      return answer
    }
    for (const { standing, was, part, wasPart } of saved.toReversed()) {
      if (standing !== undefined) Object.assign(standing, was)
      if (part !== undefined) Object.assign(part, wasPart)
    }
    const { refusal, field, state, apart } = refused.outcome
    const answer: Answer = {
      ok: false,
      replayed: false,
      reason: refusal,
      field,
      state,
      lines: steps.map((step) => ({
        ...accountOf(step.outcome.replayed ?? step.standing ?? zero),
        ...(step.outcome.replayed === undefined && {
          allowance: step.outcome.flow ?? step.shown,
        }),
        refusal: step.outcome.refusal,
      })),
      ...(refusal === 'insufficient' && apart > 0 && { apart }),
      retryAt: refused.retryAt,
    }
    this.#rememberRefusal(command, lines, answer)
    return answer
  }

  /** One line, on top of those before it; undone if another one is refused. */
  #step(
    command: Command,
    line: Asked,
    settled: ReadonlyMap<HoldPart, number>,
    before: readonly Step[],
  ): Step {
    const { now } = this.accounts
    const standing = this.accounts.get(line.account)
    if (standing === undefined) {
      return { line, standing, outcome: { ...unknown, refusal: 'not-found' }, shown: 0 }
    }
    const around: Around = {
      now,
      grants: this.accounts.grants.get(standing.name),
      incoming: before
        .filter((step) => step.standing === standing)
        .reduce((sum, step) => sum + incomingOf(step), 0),
      returnable: (of, account) => {
        const taken = takenBy(this, of, account, settled)
        return taken.length === 0 ? undefined : taken.reduce((sum, { rest }) => sum + rest, 0)
      },
    }
    const outcome = outcomeOf(line, standing, around)
    const { refusal, replayed, quiet, until, credit, debit, hold, allowed } = outcome
    const isRate = line.everyUs !== undefined
    if (refusal !== undefined || replayed !== undefined || quiet === true) {
      if (quiet === true && until !== undefined && line.part !== undefined) {
        line.part.expiresAt = until
      }
      const isShort = refusal === 'insufficient' && takesAway(line)
      const retryAt = isShort ? this.retryAt(line, standing, line.amount) : undefined
      return { line, standing, outcome, shown: isRate ? 0 : allowed, retryAt }
    }
    standing.credited += credit
    standing.debited += debit
    standing.held += hold
    standing.sequence += 1
    standing.movedAt = Math.max(standing.movedAt, now)
    if (isRate) standing.refilledAt = outcome.refilledAt
    // A wall is never crossed, so a lower allowance only stops what comes next.
    if (standing.walled) standing.allowance = Math.max(allowed, -balanceOf(standing))
    else standing.allowance = isRate ? 0 : allowed
    if (until !== undefined) standing.dueAt = Math.min(standing.dueAt, until)
    const { part, kind } = line
    if (part !== undefined) {
      const isLate = part.state === 'expired'
      part.state = kind === 'release' ? 'released' : isLate ? 'settled-late' : 'settled'
      part.settled = outcome.settled ?? 0
      part.ended = { ...accountOf(standing), at: standing.movedAt }
    }
    const operation = 'id' in command ? command.id : command.hold
    const change = { kind: kind as Change['kind'], operation, credit, debit, hold }
    const shown = isRate ? 0 : standing.allowance
    const { sequence } = standing
    return { line, standing, outcome, change, after: accountOf(standing), shown, sequence }
  }

  #accepted(steps: readonly Step[]): Answer {
    const [first] = steps
    const at = first?.outcome.replayed?.at ?? first?.standing?.movedAt
    const until = steps
      .filter(({ line }) => line.kind === 'hold' || line.kind === 'extend')
      .flatMap(({ outcome }) => outcome.until ?? [])
    return {
      ok: true,
      replayed: steps.some(({ outcome }) => outcome.replayed !== undefined),
      reason: undefined,
      field: undefined,
      state: undefined,
      lines: steps.map(({ outcome, after, standing, shown }) => ({
        ...accountOf(outcome.replayed ?? after ?? standing ?? zero),
        ...(outcome.replayed === undefined && after === undefined && { allowance: shown }),
        refusal: undefined,
      })),
      at: at === undefined || at === -Infinity ? 0 : at,
      expiresAt: until.length === 0 ? undefined : Math.min(...until),
    }
  }

  #remember(command: Command & { id: number }, steps: readonly Step[], answer: Answer): void {
    const lines = steps.map(({ line, change, standing, sequence = 0 }, at) => ({
      kind: line.kind,
      key: line.key,
      account: line.account as string,
      amount: change === undefined ? 0 : line.amount,
      of: line.of,
      sequence,
      answer: answer.lines[at] as AnswerLine,
      at: standing?.movedAt ?? 0,
      returned: 0,
    }))
    this.applied.set(command.id, { lines, note: command.act === 'move' ? command.note : 0 })
  }

  /** For orders: what was refused stays refused for a while, even if its webhook comes again. */
  #rememberRefusal(command: Command, lines: readonly Asked[], refusal: Answer): void {
    const [first] = lines
    if (first?.sticky !== true || !('id' in command)) return
    const told = refusal.lines
    this.applied.set(command.id, {
      lines: lines.map(({ kind, key, account = '', amount, of }, at) => ({
        kind,
        key,
        account,
        amount,
        of,
        sequence: 0,
        answer: told[at] as AnswerLine,
        at: 0,
        returned: 0,
        isRefused: true,
      })),
      note: 0,
      until: this.accounts.now + (first.ttlMs ?? 0) * 1_000,
      refusal,
    })
  }

  /** Times only where they are known; told in milliseconds, as dates are. */
  #told({ at, expiresAt, retryAt, ...answer }: Answer): Answer {
    if (!this.options.exact) return answer
    return { ...answer, at: msOf(at), expiresAt: msOf(expiresAt), retryAt: msOf(retryAt) }
  }
}

function incomingOf({ change }: Step): number {
  const { credit = 0, debit = 0, hold = 0 } = change ?? {}
  return Math.max(credit - debit - hold, 0)
}

export function msOf(us: number | undefined): number | undefined {
  return us === undefined ? undefined : Math.floor(us / 1_000)
}
