/** What grants do, without a database. It keeps what is owed by itself, where the ledger works it out. */

export interface ModelGrant {
  readonly name: string
  readonly priority: number
  /** Order of expiry, such as its moment; infinite if it never expires. */
  readonly rank: number
  readonly ordinal: number
  amount: number
  /** Of credit that came without one. */
  readonly isLoose?: boolean
  readonly rollover: number
  /** How long what rolled over lives. */
  readonly rolloverFor?: number | undefined
  /** When it begins, if it has not. */
  readonly begins?: number | undefined
  /** The features it is for; anything if there are none. */
  readonly onlyFor?: readonly string[] | undefined
  remaining: number
  lapsed: number
  state: 'pending' | 'active' | 'expired' | 'voided'
}

interface Share {
  readonly grant: ModelGrant | undefined
  left: number
}

interface Taking {
  readonly shares: Share[]
  readonly feature: string | undefined
  state: 'spent' | 'open' | 'over'
}

/** A grant that is new. */
export type NewGrant = Omit<ModelGrant, 'remaining' | 'lapsed' | 'state'>

const priorityOfLoose = 50

export class GrantsModel {
  readonly #overdraft: number
  #data = {
    grants: [] as ModelGrant[],
    takings: new Map<string, Taking>(),
    arrears: [] as Share[],
    owed: 0,
    count: 0,
  }

  /** An account that owed something before its first grant says how much. */
  constructor(overdraft: number, owed = 0) {
    this.#overdraft = overdraft
    this.#data.owed = owed
  }

  clone(): GrantsModel {
    const copy = new GrantsModel(this.#overdraft)
    copy.#data = structuredClone(this.#data)
    return copy
  }

  get available(): number {
    return this.#remaining() - this.#data.owed + this.#overdraft
  }

  /** What can be spent on a feature, or on none. */
  spendable(feature?: string): number {
    return this.available - this.apart(feature)
  }

  /** What is for other features only. */
  apart(feature?: string): number {
    return this.#remaining() - this.#remaining(isOpenTo(feature))
  }

  /** Some of it is, was or may become so. */
  get isRestricted(): boolean {
    return this.#data.grants.some(({ onlyFor }) => onlyFor !== undefined)
  }

  /** `used/remaining/lapsed` by name. */
  get grants(): Record<string, string> {
    return Object.fromEntries(
      this.#data.grants.map(({ name, amount, remaining, lapsed }) => [
        name,
        `${amount - remaining - lapsed}/${remaining}/${lapsed}`,
      ]),
    )
  }

  get all(): readonly Readonly<ModelGrant>[] {
    return this.#data.grants
  }

  named(state: 'active' | 'ended'): string[] {
    return this.#data.grants
      .filter((grant) => (state === 'active') === (grant.state === 'active'))
      .map(({ name }) => name)
  }

  taken(state: Taking['state']): string[] {
    return [...this.#data.takings].filter(([, one]) => one.state === state).map(([name]) => name)
  }

  grant(
    name: string,
    amount: number,
    priority: number,
    rank: number,
    rollover: number,
    onlyFor?: readonly string[],
  ): void {
    const ordinal = (this.#data.count += 1)
    this.add({ name, amount, priority, rank, rollover, ordinal, onlyFor }, 'active')
  }

  /** Books a grant. One that has expired already lapses at once; one that is active pays what is owed. */
  add(grant: NewGrant, state: 'pending' | 'active' | 'expired'): void {
    const isOver = state === 'expired'
    const [remaining, lapsed] = isOver ? [0, grant.amount] : [grant.amount, 0]
    this.#data.grants.push({ ...grant, remaining, lapsed, state })
    if (state === 'active') this.#payArrears()
  }

  /** Credit that came without a grant is one that never expires. */
  credit(amount: number, ordinal: number): void {
    this.#takeUp(amount, ordinal)
    this.#payArrears()
  }

  /** Spends, or holds if `open`. */
  take(name: string, amount: number, open: boolean, feature?: string): boolean {
    if (amount > this.spendable(feature)) return false
    this.draw(name, amount, feature)
    const taking = this.#data.takings.get(name) as Taking
    taking.state = open ? 'open' : 'spent'
    return true
  }

  /** Takes an amount from the grants in burn order, whatever they have. */
  draw(name: string, amount: number, feature?: string): void {
    const taking = this.#data.takings.get(name) ?? { shares: [], state: 'spent', feature }
    this.#data.takings.set(name, taking)
    this.#draw(amount, taking.shares, taking.feature)
  }

  /** Ends a hold at what it cost; nothing if it is released or expires. */
  settle(name: string, actual: number | undefined): void {
    const taking = this.#data.takings.get(name) as Taking
    const held = leftOf(taking.shares)
    taking.state = actual === undefined ? 'over' : 'spent'
    const above = (actual ?? 0) - held
    if (above > 0) this.#draw(above, taking.shares, taking.feature)
    else this.giveBack(name, -above, 0)
  }

  refund(name: string, amount: number): boolean {
    const { shares, state } = this.#data.takings.get(name) as Taking
    if (state !== 'spent' || amount > leftOf(shares)) return false
    this.giveBack(name, amount, 0)
    return true
  }

  /** Gives back what was taken, the last grant first; answers how much of it lapsed. */
  giveBack(name: string, amount: number, ordinal: number): number {
    const taken = this.#unwind(this.#data.takings.get(name)?.shares ?? [], amount)
    // What was taken before the first grant is noted nowhere.
    const loose = taken.loose + taken.rest
    const lowered = Math.min(loose, this.#data.owed)
    this.#data.owed -= lowered
    const paid = this.#unwind(this.#data.arrears, loose - lowered)
    if (paid.rest > 0) this.#takeUp(paid.rest, ordinal)
    this.#payArrears()
    return taken.lapsed + paid.lapsed
  }

  find(name: string): Readonly<ModelGrant> | undefined {
    return this.#data.grants.find((one) => one.name === name)
  }

  /** What begins or ends next by itself, and when. */
  next(): { readonly grant: Readonly<ModelGrant>; readonly at: number } | undefined {
    let first: { readonly grant: ModelGrant; readonly at: number } | undefined
    for (const grant of this.#data.grants) {
      const at = grant.state === 'pending' ? (grant.begins ?? 0) : grant.rank
      const isEnded = grant.state === 'expired' || grant.state === 'voided'
      if (!isEnded && at < (first?.at ?? Infinity)) first = { grant, at }
    }
    return first
  }

  begin(name: string): void {
    const grant = this.find(name) as ModelGrant
    grant.state = 'active'
    this.#payArrears()
  }

  /** Expires or voids a grant; answers how much of it is gone. */
  end(name: string, mayRoll: boolean, rolledRank?: number): number {
    const grant = this.find(name) as ModelGrant
    const { remaining } = grant
    const rolled = mayRoll ? Math.min(remaining, grant.rollover) : 0
    grant.state = mayRoll ? 'expired' : 'voided'
    grant.lapsed += remaining
    grant.remaining = 0
    if (rolled === 0) return remaining
    // It will expire before all others that expire, after those that rolled before.
    const rank = rolledRank ?? -1_000_000 + (this.#data.count += 1)
    const rest = { ...grant, name: `${name}, rolled`, amount: rolled, rank, rollover: 0 }
    this.#data.grants.push({ ...rest, remaining: rolled, lapsed: 0, state: 'active' })
    return remaining - rolled
  }

  #takeUp(amount: number, ordinal: number): void {
    // A movement that gives back what several lines took does so line by line.
    const same = this.#data.grants.find((one) => one.isLoose === true && one.ordinal === ordinal)
    if (same !== undefined && ordinal > 0) {
      same.amount += amount
      same.remaining += amount
      return
    }
    const name = `without a grant, ${this.#data.grants.length}`
    const isLoose = true
    const loose = { name, priority: priorityOfLoose, rank: Infinity, ordinal, rollover: 0, isLoose }
    this.#data.grants.push({ ...loose, amount, remaining: amount, lapsed: 0, state: 'active' })
  }

  #active(): ModelGrant[] {
    return this.#data.grants
      .filter(({ state }) => state === 'active')
      .sort((a, b) => a.priority - b.priority || compare(a.rank, b.rank) || a.ordinal - b.ordinal)
  }

  #remaining(counts: (grant: ModelGrant) => boolean = () => true): number {
    return this.#active()
      .filter(counts)
      .reduce((sum, grant) => sum + grant.remaining, 0)
  }

  #draw(amount: number, shares: Share[], feature?: string): void {
    let rest = amount
    for (const grant of this.#active().filter(isOpenTo(feature))) {
      const left = Math.min(rest, grant.remaining)
      if (left === 0) continue
      grant.remaining -= left
      rest -= left
      shares.push({ grant, left })
    }
    if (rest === 0) return
    this.#data.owed += rest
    shares.push({ grant: undefined, left: rest })
  }

  #payArrears(): void {
    const paid = Math.min(this.#data.owed, this.#remaining(isOpenTo(undefined)))
    this.#data.owed -= paid
    this.#draw(paid, this.#data.arrears)
  }

  /** Returns shares, the last one first: what lapsed, what no grant had paid, and what was not there. */
  #unwind(
    shares: readonly Share[],
    amount: number,
  ): { lapsed: number; loose: number; rest: number } {
    let [rest, loose, lapsed] = [amount, 0, 0]
    for (const share of shares.toReversed()) {
      const part = Math.min(rest, share.left)
      share.left -= part
      rest -= part
      if (share.grant === undefined) loose += part
      else if (share.grant.state === 'active') share.grant.remaining += part
      else {
        share.grant.lapsed += part
        lapsed += part
      }
    }
    return { lapsed, loose, rest }
  }
}

function isOpenTo(feature: string | undefined): (grant: ModelGrant) => boolean {
  return ({ onlyFor }) =>
    onlyFor === undefined || (feature !== undefined && onlyFor.includes(feature))
}

function leftOf(shares: readonly Share[]): number {
  return shares.reduce((sum, { left }) => sum + left, 0)
}

/** Infinity minus infinity is no number. */
function compare(a: number, b: number): number {
  return a === b ? 0 : a < b ? -1 : 1
}
