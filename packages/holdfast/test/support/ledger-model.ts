/** What the ledger does, without a database: the truth that the property tests compare it with. */

import {
  type Account,
  type Answer,
  type AnswerLine,
  burst,
  type Command,
  type HoldState,
  linesOf,
  type MoveLine,
  type Movement,
  ratedKey,
  type Refusal,
} from './ledger-command.ts'

interface HoldPart {
  readonly key: string
  readonly amount: number
  due: boolean
  /** The call that made it: holds of one call expire at the same time. */
  readonly call: number
  state: HoldState
  settled: number
  /** What was answered when it was ended. */
  ended?: Account
}

interface Applied {
  readonly kinds: readonly string[]
  readonly keys: readonly string[]
  readonly amounts: readonly number[]
  readonly of: number | undefined
  readonly note: number
  readonly answers: readonly AnswerLine[]
  readonly returned: Map<string, number>
}

/** One account's part of a command: what it would do, or why not. */
interface Step {
  readonly kind: Movement['kind'] | 'extend'
  /** Undefined if there is no such account. */
  readonly key: string | undefined
  readonly credit: number
  readonly debit: number
  readonly hold: number
  readonly allowance?: number | undefined
  /** Shown as the allowance if it is refused. */
  readonly shown?: number | undefined
  readonly refusal?: Refusal | undefined
  readonly field?: string | undefined
  readonly state?: HoldState | undefined
  /** The answer that was given then. */
  readonly replayed?: Account | undefined
  readonly done?: () => void
}

const nothing = { credit: 0, debit: 0, hold: 0 }
const zero: Account = { credited: 0, debited: 0, held: 0, allowance: 0, sequence: 0 }

export class LedgerModel {
  readonly movements = new Map<string, Movement[]>()
  readonly #walled: (key: string) => boolean
  readonly #accounts = new Map<string, Account>()
  readonly #applied = new Map<number, Applied>()
  readonly #holds = new Map<number, HoldPart[]>()
  #call = 0
  /** Hours since the rate was filled; undefined until it is used for the first time. */
  #hours: number | undefined

  constructor(walled: (key: string) => boolean = () => false) {
    this.#walled = walled
  }

  account(key: string): Account {
    return this.#accounts.get(key) ?? zero
  }

  /**
   * Commands that reach the database in one call, in their order. A hold or an operation that a
   * command names must have been there before the call.
   */
  call(commands: readonly Command[]): Answer[] {
    this.#call += 1
    const before = {
      applied: new Map(this.#applied),
      holds: new Map(
        [...this.#holds].map(([id, parts]) => [id, parts.map((part) => ({ ...part }))]),
      ),
    }
    return commands.map((command) => this.#apply(command, before.applied, before.holds))
  }

  /**
   * Two hours pass. What is due expires, in the order of time and, of those made at once, of the
   * holds' ids.
   */
  passAWhile(idOf: (operation: number) => string): void {
    if (this.#hours !== undefined) this.#hours += 2
    const inOrder = [...this.#holds].toSorted(
      ([a, [one]], [b, [other]]) =>
        (one?.call ?? 0) - (other?.call ?? 0) || (idOf(a) < idOf(b) ? -1 : 1),
    )
    for (const [operation, parts] of inOrder) {
      for (const part of parts.filter(({ due, state }) => due && state === 'open')) {
        part.state = 'expired'
        this.#write({ ...nothing, kind: 'expire', key: part.key, hold: -part.amount }, operation)
      }
    }
  }

  #available(key: string, allowance: number): number {
    const { credited, debited, held } = this.account(key)
    return credited - debited - held + allowance
  }

  #apply(
    command: Command,
    known: ReadonlyMap<number, Applied>,
    holds: ReadonlyMap<number, HoldPart[]>,
  ): Answer {
    const first = 'id' in command ? this.#applied.get(command.id) : undefined
    if (first !== undefined) return this.#replay(first, command)
    const steps = this.#steps(command, known, holds)
    const refused = steps.find(({ refusal }) => refusal !== undefined)
    if (refused === undefined) {
      for (const step of steps) {
        if (step.replayed === undefined && step.kind !== 'extend') {
          this.#write(step, 'id' in command ? command.id : command.hold)
        }
        step.done?.()
      }
    }
    const lines = steps.map(({ key, refusal, allowance, shown = allowance, replayed }) => {
      if (replayed !== undefined) return { ...replayed, refusal }
      const account = key === undefined ? zero : this.account(key)
      const given = refused === undefined ? undefined : shown
      return { ...account, allowance: given ?? account.allowance, refusal }
    })
    if (refused === undefined && 'id' in command) this.#remember(command, lines)
    return {
      ok: refused === undefined,
      replayed: steps.some(({ replayed }) => replayed !== undefined),
      reason: refused?.refusal,
      field: refused?.field,
      state: refused?.state,
      lines,
    }
  }

  #write({ kind, key, credit, debit, hold, allowance }: Step, operation: number): void {
    const last = this.account(key as string)
    const after: Account = {
      credited: last.credited + credit,
      debited: last.debited + debit,
      held: last.held + hold,
      allowance: allowance ?? last.allowance,
      sequence: last.sequence + 1,
    }
    // A wall is never crossed, so a lower allowance only stops what comes next.
    if (this.#walled(key as string)) {
      after.allowance = Math.max(after.allowance, after.debited + after.held - after.credited)
    }
    this.#accounts.set(key as string, after)
    const movement = { kind: kind as Movement['kind'], operation, credit, debit, hold, after }
    this.movements.set(key as string, [...(this.movements.get(key as string) ?? []), movement])
  }

  #remember(command: Command & { id: number }, answers: readonly AnswerLine[]): void {
    const lines = linesOf(command)
    this.#applied.set(command.id, {
      kinds: lines.map(({ kind }) => kind),
      keys: lines.map(({ key }) => key),
      amounts: lines.map(({ amount }) => amount),
      of: command.act === 'refund' ? command.of : undefined,
      note: command.act === 'move' ? command.note : 0,
      answers,
      returned: new Map(),
    })
    const parts = lines.filter(({ kind }) => kind === 'hold')
    if (command.act !== 'move' || parts.length === 0) return
    this.#holds.set(
      command.id,
      parts.map(({ key, amount }) => ({
        key,
        amount,
        due: command.due,
        call: this.#call,
        state: 'open',
        settled: 0,
      })),
    )
  }

  #replay(first: Applied, command: Command & { id?: number }): Answer {
    const lines = linesOf(command)
    let field: string | undefined
    first.keys.forEach((key, at) => {
      const line = lines.find((one) => one.key === key)
      if (line === undefined) field ??= lines.length === 1 ? 'key' : 'lines'
      else if (line.kind !== first.kinds[at]) field ??= 'kind'
      else if (line.amount !== first.amounts[at]) field ??= 'amount'
      else if (command.act === 'refund' && command.of !== first.of) field ??= 'of'
      else if (command.act === 'move' && command.note !== first.note) field ??= 'note'
    })
    if (first.keys.length !== lines.length) field ??= 'lines'
    const conflict = { ...zero, refusal: 'conflict' as const }
    return {
      ok: field === undefined,
      replayed: field === undefined,
      reason: field === undefined ? undefined : 'conflict',
      field,
      state: undefined,
      lines:
        field === undefined
          ? lines.map(({ key }) => first.answers[first.keys.indexOf(key)] as AnswerLine)
          : lines.map(() => conflict),
    }
  }

  #steps(
    command: Command,
    known: ReadonlyMap<number, Applied>,
    holds: ReadonlyMap<number, HoldPart[]>,
  ): Step[] {
    if (command.act === 'move') {
      const { allowance } = command
      return command.lines.map((line) =>
        line.key === ratedKey ? this.#takeFromRate(line) : this.#move(line, allowance),
      )
    }
    if (command.act === 'refund') return [this.#refund(command, known.get(command.of), holds)]
    const unknown = { ...nothing, kind: 'release' as const, key: undefined }
    const before = holds.get(command.hold)
    if (before === undefined) return [{ ...unknown, refusal: 'not-found' }]
    return (this.#holds.get(command.hold) ?? []).map((part) =>
      command.act === 'settle' ? this.#settle(command, part) : this.#end(command.act, part),
    )
  }

  #move({ kind, key, amount }: MoveLine, allowance: number): Step {
    const isShort = kind !== 'credit' && this.#available(key, allowance) < amount
    const refusal = isShort ? 'insufficient' : undefined
    return { ...nothing, kind, key, allowance, [kind]: amount, refusal }
  }

  /** First it is filled by what the hours brought; what was given back on top of full is spilt. */
  #takeFromRate({ kind, key, amount }: MoveLine): Step {
    const spare = burst - this.#available(key, 0)
    const hours = this.#hours ?? spare
    const isFull = hours >= spare
    const credit = isFull ? Math.max(spare, 0) : hours
    const spill = isFull ? Math.max(-spare, 0) : 0
    const isShort = this.#available(key, 0) + credit - spill < amount
    const debit = spill + (kind === 'debit' ? amount : 0)
    return {
      kind,
      key,
      credit,
      debit,
      hold: kind === 'hold' ? amount : 0,
      allowance: 0,
      shown: credit - spill,
      refusal: isShort ? 'insufficient' : undefined,
      done: () => void (this.#hours = isFull ? 0 : hours - credit),
    }
  }

  #refund(
    { of, key, amount, allowance }: Command & { act: 'refund' },
    applied: Applied | undefined,
    holds: ReadonlyMap<number, HoldPart[]>,
  ): Step {
    const at = applied?.keys.indexOf(key) ?? -1
    if (applied === undefined || at < 0) {
      return { ...nothing, kind: 'refund', key: undefined, refusal: 'not-found' }
    }
    const taken =
      applied.kinds[at] === 'hold'
        ? holds.get(of)?.find((part) => part.key === key)?.settled
        : applied.amounts[at]
    const returned = applied.returned.get(key) ?? 0
    const takes = applied.kinds[at] === 'hold' || applied.kinds[at] === 'debit'
    const refusal = !takes
      ? 'not-found'
      : (taken ?? 0) - returned < amount
        ? 'over-refund'
        : undefined
    const done = (): void => void applied.returned.set(key, returned + amount)
    const allowed = key === ratedKey ? 0 : allowance
    return { ...nothing, kind: 'refund', key, credit: amount, allowance: allowed, refusal, done }
  }

  #end(act: 'release' | 'extend', part: HoldPart): Step {
    const step = { ...nothing, kind: act, key: part.key }
    if (act === 'release' && part.state === 'released') return { ...step, replayed: part.ended }
    if (part.state !== 'open') return { ...step, refusal: 'ended', state: part.state }
    if (act === 'extend') return { ...step, done: () => void (part.due = false) }
    return { ...step, hold: -part.amount, done: () => this.#close(part, 'released', 0) }
  }

  #close(part: HoldPart, state: HoldState, settled: number): void {
    Object.assign(part, { state, settled, ended: this.account(part.key) })
  }

  #settle({ amount: asked, overrun, late }: Command & { act: 'settle' }, part: HoldPart): Step {
    const step = { ...nothing, kind: 'settle' as const, key: part.key }
    const wanted = asked ?? part.amount
    const amount = overrun === 'cap' ? Math.min(wanted, part.amount) : wanted
    const expired = part.state === 'expired'
    if (part.state === 'settled' || part.state === 'settled-late') {
      return part.settled === amount
        ? { ...step, replayed: part.ended }
        : { ...step, refusal: 'conflict', field: 'amount' }
    }
    if (part.state === 'released' || (expired && late === 'refuse')) {
      return { ...step, refusal: 'ended', state: part.state }
    }
    const available = this.#available(part.key, this.account(part.key).allowance)
    const fits = available + (expired ? 0 : part.amount) >= amount
    if (expired && this.#walled(part.key) && !fits) {
      return { ...step, refusal: 'ended', state: 'expired' }
    }
    const bounded = overrun === 'available' || this.#walled(part.key)
    if (amount > part.amount && (overrun === 'refuse' || (bounded && !fits))) {
      return { ...step, refusal: 'insufficient' }
    }
    const done = (): void => this.#close(part, expired ? 'settled-late' : 'settled', amount)
    return { ...step, debit: amount, hold: expired ? 0 : -part.amount, done }
  }
}
