import { offsetsOf, windowAt } from '../../packages/holdfast/test/support/ledger-calendar.ts'
import type {
  Command,
  KeyTerms,
  Late,
  Move,
  MoveLine,
  Overrun,
  Single,
  Unit,
} from '../../packages/holdfast/test/support/ledger-command.ts'
import { type Random, randomFor } from '../harness/random.ts'
import type { History, Step } from './ledger-model-history.ts'

const firstUs = Date.UTC(2024, 0, 2) * 1_000
const lastUs = Date.UTC(2028, 11, 1) * 1_000
const secondUs = 1_000_000
const minuteUs = 60 * secondUs
const hourUs = 60 * minuteUs
const dayUs = 24 * hourUs
const units: readonly Unit[] = ['minute', 'hour', 'day', 'day', 'day', 'week', 'month']
/** So large that two of them are more than a number can count. */
const huge = 2 ** 52

/** What may be done to a key, some of it more often. */
const movesOf: Readonly<Record<string, readonly Move[]>> = {
  plain: ['credit', 'debit', 'debit', 'hold', 'hold', 'adjust', 'opening', 'return'],
  walled: ['credit', 'debit', 'debit', 'hold', 'hold', 'adjust', 'return'],
  rolling: ['hold'],
  rate: ['debit', 'debit', 'hold', 'adjust'],
  window: ['debit', 'debit', 'hold', 'hold', 'adjust'],
  granted: ['debit', 'debit', 'hold', 'hold', 'adjust', 'credit'],
}

const sortOf = (key: string): string => key.replace(/\d$/, '')

/** The history of a number is the same whatever else was generated. */
export function generateHistory(seed: number, number: number, zones: readonly string[]): History {
  return new Generator(randomFor(seed, number), zones, number).history()
}

class Generator {
  readonly #random: Random
  readonly #keys: readonly string[]
  readonly #terms: Record<string, KeyTerms> = {}
  readonly #steps: Step[] = []
  readonly #sent: (Command & { id: number })[] = []
  #ids = 0
  #now: number

  constructor(random: Random, zones: readonly string[], number: number) {
    this.#random = random
    const all = Object.keys(movesOf).flatMap((sort) => [`${sort}1`, `${sort}2`])
    this.#keys = random.sample(all, random.integer(2, 5))
    for (const key of this.#keys) this.#terms[key] = this.#termsOf(key, zones, number)
    this.#now = random.integer(firstUs, lastUs)
  }

  #termsOf(key: string, zones: readonly string[], number: number): KeyTerms {
    const random = this.#random
    switch (sortOf(key)) {
      case 'walled':
        return { walled: true }
      case 'rolling':
        return { rolling: true }
      case 'rate':
        return { burst: random.integer(1, 9), everyUs: this.#one([hourUs, 7_777_777, minuteUs]) }
      case 'window': {
        // One zone after the other, so that a long run has them all.
        const zone = zones[(number * 2 + Number(key.endsWith('2'))) % zones.length] ?? 'UTC'
        return { unit: this.#one(units), zone }
      }
      default:
        return {}
    }
  }

  history(): History {
    const startUs = this.#now
    const length = this.#random.integer(12, 50)
    const atOnce = this.#chance(0.25)
    while (this.#steps.length < length) {
      if (this.#chance(0.25)) this.#setClock(this.#nextMoment())
      if (atOnce && this.#chance(0.4)) this.#manyAtOnce()
      else this.#steps.push(this.#step())
    }
    return { startUs, terms: this.#terms, steps: this.#steps }
  }

  #setClock(us: number): void {
    this.#now = Math.min(Math.max(us, firstUs), lastUs)
    this.#steps.push({ path: 'alone', commands: [{ act: 'clock', us: this.#now }] })
  }

  /** Mostly a little later; sometimes earlier, near a change of the clocks, or where a window begins. */
  #nextMoment(): number {
    const random = this.#random
    const spans = [
      secondUs,
      20 * minuteUs,
      2 * hourUs,
      8 * hourUs,
      2 * dayUs,
      9 * dayUs,
      40 * dayUs,
    ]
    const near = random.integer(-100 * minuteUs, 100 * minuteUs)
    const window = Object.values(this.#terms).find(({ unit }) => unit !== undefined)
    const choice = random.integer(1, 100)
    if (window?.unit !== undefined && window.zone !== undefined) {
      const changes = offsetsOf(window.zone).filter(
        ({ sinceUs }) => sinceUs > firstUs && sinceUs < lastUs,
      )
      if (choice <= 20 && changes.length > 0) return this.#one(changes).sinceUs + near
      if (choice <= 35) {
        const { start, end } = windowAt(window.unit, window.zone, this.#now)
        return this.#one([start, end]) + random.integer(-1, 1) * random.integer(0, 2 * secondUs)
      }
    }
    const span = random.integer(1, this.#one(spans))
    return choice <= 50 ? this.#now - span : this.#now + span
  }

  #step(): Step {
    const choice = this.#random.integer(1, 100)
    if (choice <= 40) return { path: 'alone', commands: [this.#any()] }
    if (choice <= 56) {
      const commands = Array.from({ length: this.#random.integer(1, 5) }, () => this.#any())
      return { path: 'joined', commands, commits: this.#chance(0.7) }
    }
    const commands = this.#differentIds(this.#random.integer(1, 10))
    return { path: choice <= 78 ? 'together' : choice <= 89 ? 'plain' : 'new', commands }
  }

  /** What the combiner makes sure of: an id comes once in a call. */
  #differentIds(count: number, isAtOnce = false): Command[] {
    const ids = new Set<number>()
    return Array.from({ length: count }, () => this.#command(isAtOnce)).filter((command) => {
      if (!('id' in command)) return true
      const isNew = !ids.has(command.id)
      ids.add(command.id)
      return isNew
    })
  }

  /** First every account is opened: which of many would do that, nobody could tell. */
  #manyAtOnce(): void {
    for (const key of this.#keys) {
      const kind = ({ rolling: 'hold', rate: 'debit' } as const)[sortOf(key)] ?? 'adjust'
      const line: MoveLine = { kind, key, amount: 1, ...(kind === 'adjust' && { bare: true }) }
      const command = { ...this.#moveOf([line]), allowance: 10 }
      this.#steps.push({ path: 'alone', commands: [this.#sending(command)] })
    }
    const coalesced = this.#chance(0.3)
    const commands = this.#differentIds(this.#random.integer(8, 28), true)
    this.#steps.push({ path: 'at once', commands, workers: 4, coalesced })
  }

  #any(): Command | Single {
    return this.#chance(0.2) ? this.#single() : this.#command()
  }

  #single(): Single {
    const random = this.#random
    const key = this.#one(this.#keys)
    const sort = sortOf(key)
    const choice = random.integer(1, 100)
    if (choice <= 10) return { act: 'sweep' }
    if (choice <= 35 || sort === 'walled') return { act: 'balance', key }
    if (sort === 'granted') return { act: 'grants', key }
    if (choice <= 70 || sort === 'rate') {
      return { act: 'peek', key, amount: random.integer(1, 12), allowance: this.#allowance() }
    }
    const limit = random.integer(0, 12)
    return { act: 'limit', id: this.#newId(), key, limit, pinned: this.#chance(0.8) }
  }

  #command(isAtOnce = false): Command {
    const choice = this.#random.integer(1, 100)
    if (choice <= 14 && this.#sent.length > 0) return this.#again(isAtOnce)
    if (choice <= 36) return this.#endOfHold()
    if (choice <= 50) {
      const granted = this.#keys.filter((key) => sortOf(key) === 'granted')
      if (granted.length > 0) return this.#sending(this.#grant(this.#one(granted)))
    }
    return this.#sending(this.#move(isAtOnce))
  }

  #sending<C extends Command & { id: number }>(command: C): C {
    this.#sent.push(command)
    return command
  }

  /** The same id again, with the same payload or with another. */
  #again(isAtOnce: boolean): Command {
    const sent = this.#one(this.#sent)
    if (sent.act === 'move' && sent.stickyMs !== undefined && isAtOnce) return this.#endOfHold()
    if (this.#chance(0.6)) return sent
    if (sent.act !== 'move')
      return sent.act === 'grant' ? { ...sent, amount: sent.amount + 1 } : sent
    const [first, ...rest] = sent.lines as [MoveLine, ...MoveLine[]]
    const changed: readonly (Command & { act: 'move' })[] = [
      { ...sent, note: sent.note + 1 },
      {
        ...sent,
        lines: [{ ...first, amount: first.amount === -1 ? 1 : first.amount + 1 }, ...rest],
      },
      { ...sent, lines: sent.lines.toReversed() },
      { ...sent, lines: rest.length === 0 ? [first] : rest },
      { ...sent, lines: [{ ...first, key: this.#one(this.#keys) }] },
    ]
    const other = this.#one(changed)
    return { ...other, lines: fitting(other.lines) }
  }

  #newId(): number {
    return (this.#ids += 1)
  }

  #allowance(): number {
    return this.#one([0, 0, 5, 10])
  }

  /** No two things of a history fall due at the same moment. */
  #ttlMs(): number {
    return this.#one([600_000, 3_600_000, 18_000_000, 259_200_000]) + this.#ids
  }

  #endOfHold(): Command {
    const random = this.#random
    const made = this.#sent.filter(
      (one) => one.act === 'move' && one.lines.some(({ kind }) => kind === 'hold'),
    )
    const isKnown = made.length > 0 && this.#chance(0.95)
    const maker = isKnown ? this.#one(made) : undefined
    const hold = maker?.id ?? random.integer(1, 1_000)
    const held = maker?.act === 'move' ? maker.lines.filter(({ kind }) => kind === 'hold') : []
    const parts =
      held.length > 0 && this.#chance(held.length > 1 ? 0.5 : 0.3)
        ? random.sample(held, random.integer(1, held.length)).map(({ key }) => {
            return this.#chance(0.5) ? { key } : { key, amount: random.integer(0, 9) }
          })
        : undefined
    // Sometimes one that is not a part of it.
    if (parts !== undefined && this.#chance(0.4)) {
      const key = this.#one(this.#keys)
      if (parts.every((part) => part.key !== key)) parts.push({ key })
    }
    const some = parts === undefined ? {} : { parts }
    const act = this.#one(['settle', 'settle', 'release', 'extend', 'extend'] as const)
    if (act === 'extend') {
      return { act, hold, ttlMs: this.#ttlMs() + random.integer(1, 60_000), ...some }
    }
    if (act === 'release') return { act, hold, ...some }
    return {
      act,
      hold,
      amount: this.#chance(0.4) ? undefined : random.integer(0, 12),
      overrun: this.#one<Overrun>(['book', 'refuse', 'cap', 'available']),
      late: this.#one<Late>(['book', 'book', 'refuse', 'ignore']),
      ...some,
    }
  }

  #grant(key: string): Command & { id: number } {
    const random = this.#random
    const grants = this.#sent.filter((one) => one.act === 'grant' && one.key === key)
    const id = this.#newId()
    if (this.#chance(0.2) && grants.length > 0) {
      return { act: 'void', id, key, grant: this.#one(grants).id }
    }
    const now = Math.floor(this.#now / 1_000) * 1_000
    const endsInMs = this.#ttlMs() + random.integer(1, 60_000)
    const isLater = this.#chance(0.2)
    const begins = now + random.integer(-hourUs / 1_000, 5 * (hourUs / 1_000)) * 1_000
    const how = random.integer(1, 10)
    const ends =
      how <= 3
        ? { expiresInMs: endsInMs }
        : how <= 6
          ? { expiresAt: Math.max(begins, now) + (how === 4 ? -minuteUs : 0) + endsInMs * 1_000 }
          : how === 7 && !isLater
            ? { expiresAt: now - random.integer(0, 5) * minuteUs }
            : {}
    const rolls = Object.keys(ends).length > 0 && this.#chance(0.3)
    return {
      act: 'grant',
      id,
      key,
      amount: random.integer(1, 20),
      // Never that of credit without a grant, which also never expires: their order would be anybody's.
      priority: this.#one([10, 40, 60]),
      ...(isLater ? { effectiveAt: begins } : {}),
      ...ends,
      ...(this.#chance(0.3) ? { onlyFor: this.#one([['feature 1'], ['feature 2']]) } : {}),
      ...(rolls
        ? {
            rollover: {
              limit: random.integer(1, 9),
              forMs: this.#ttlMs() + random.integer(1, 999),
            },
          }
        : {}),
    }
  }

  #move(isAtOnce: boolean): Command & { act: 'move' } {
    const random = this.#random
    const count = this.#one([1, 1, 1, 1, 1, 2, 2, 3, 4])
    const isReservation = count > 1 && this.#chance(0.4)
    const lines = Array.from({ length: count }, () => {
      const line = this.#line()
      const { key, amount } = line
      return isReservation
        ? { kind: 'hold' as const, key, amount: Math.abs(amount) % 10 || 1 }
        : line
    })
    const command = this.#moveOf(fitting(lines))
    const isOrder = command.lines.every(
      ({ key, kind }) => sortOf(key) === 'walled' && kind === 'debit',
    )
    if (isAtOnce || !isOrder || this.#chance(0.5)) return command
    return { ...command, stickyMs: 600_000 + random.integer(0, 999) }
  }

  #moveOf(lines: readonly MoveLine[]): Command & { act: 'move' } {
    const id = this.#newId()
    const note = this.#one([0, 0, 0, 1])
    return {
      act: 'move',
      id,
      lines,
      allowance: this.#allowance(),
      due: false,
      note,
      ttlMs: this.#ttlMs(),
    }
  }

  #line(): MoveLine {
    const random = this.#random
    const key = this.#one(this.#keys)
    const sort = sortOf(key)
    const takers = this.#sent.filter(
      (one) => one.act === 'move' && one.lines.some((line) => line.key === key),
    )
    if (takers.length > 0 && sort !== 'rolling' && this.#chance(0.15)) {
      return { kind: 'refund', key, amount: random.integer(1, 6), of: this.#one(takers).id }
    }
    const kind = this.#one(movesOf[sort] ?? [])
    const amount = random.integer(1, 9)
    const signed = kind === 'adjust' && this.#chance(0.5) ? -amount : amount
    const isTaking = kind === 'debit' || kind === 'hold'
    const isBare = !isTaking && (sort !== 'plain' || this.#chance(0.5))
    const isHuge = sort === 'plain' && kind === 'credit' && this.#chance(0.02)
    return { kind, key, amount: isHuge ? huge : signed, ...(isBare && { bare: true }) }
  }

  #one<T>(items: readonly T[]): T {
    return items[this.#random.integer(0, items.length - 1)] as T
  }

  #chance(share: number): boolean {
    return this.#random.integer(1, 1_000) <= share * 1_000
  }
}

/** Of one kind on one key there is one line, as the library makes it. */
function fitting(lines: readonly MoveLine[]): MoveLine[] {
  const kinds = new Set<string>()
  return lines.filter(({ kind, key }) => {
    const name = `${kind} ${key}`
    const isNew = !kinds.has(name)
    kinds.add(name)
    return isNew
  })
}
