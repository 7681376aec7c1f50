/** What grants do, without a database. It keeps what is owed by itself, where the ledger works it out. */

interface ModelGrant {
  readonly name: string
  readonly priority: number
  /** Order of expiry; infinite if it never expires. */
  readonly rank: number
  readonly ordinal: number
  readonly amount: number
  readonly rollover: number
  remaining: number
  lapsed: number
  state: 'active' | 'ended'
}

interface Share {
  readonly grant: ModelGrant | undefined
  left: number
}

interface Taking {
  readonly shares: Share[]
  state: 'spent' | 'open' | 'over'
}

export class GrantsModel {
  readonly #grants: ModelGrant[] = []
  readonly #takings = new Map<string, Taking>()
  readonly #arrears: Share[] = []
  readonly #overdraft: number
  #owed = 0
  #count = 0

  constructor(overdraft: number) {
    this.#overdraft = overdraft
  }

  get available(): number {
    const remaining = this.#active().reduce((sum, grant) => sum + grant.remaining, 0)
    return remaining - this.#owed + this.#overdraft
  }

  /** `used/remaining/lapsed` by name. */
  get grants(): Record<string, string> {
    return Object.fromEntries(
      this.#grants.map(({ name, amount, remaining, lapsed }) => [
        name,
        `${amount - remaining - lapsed}/${remaining}/${lapsed}`,
      ]),
    )
  }

  named(state: ModelGrant['state']): string[] {
    return this.#grants.filter((grant) => grant.state === state).map(({ name }) => name)
  }

  taken(state: Taking['state']): string[] {
    return [...this.#takings].filter(([, one]) => one.state === state).map(([name]) => name)
  }

  grant(name: string, amount: number, priority: number, rank: number, rollover: number): void {
    this.#add({ name, amount, priority, rank, rollover, ordinal: (this.#count += 1) })
    this.#payArrears()
  }

  /** Spends, or holds if `open`. */
  take(name: string, amount: number, open: boolean): boolean {
    if (amount > this.available) return false
    const taking: Taking = { shares: [], state: open ? 'open' : 'spent' }
    this.#takings.set(name, taking)
    this.#draw(amount, taking.shares)
    return true
  }

  /** Ends a hold at what it cost; nothing if it is released or expires. */
  settle(name: string, actual: number | undefined): void {
    const taking = this.#takings.get(name) as Taking
    const held = leftOf(taking.shares)
    taking.state = actual === undefined ? 'over' : 'spent'
    const above = (actual ?? 0) - held
    if (above > 0) this.#draw(above, taking.shares)
    else this.#giveBack(taking.shares, -above)
  }

  refund(name: string, amount: number): boolean {
    const { shares, state } = this.#takings.get(name) as Taking
    if (state !== 'spent' || amount > leftOf(shares)) return false
    this.#giveBack(shares, amount)
    return true
  }

  /** Expires or voids a grant. */
  end(name: string, mayRoll: boolean): void {
    const grant = this.#grants.find((one) => one.name === name) as ModelGrant
    const rolled = mayRoll ? Math.min(grant.remaining, grant.rollover) : 0
    grant.state = 'ended'
    grant.lapsed += grant.remaining
    grant.remaining = 0
    if (rolled === 0) return
    // It will expire before all others that expire, after those that rolled before.
    const rank = -1_000_000 + (this.#count += 1)
    this.#add({ ...grant, name: `${name}, rolled`, amount: rolled, rank, rollover: 0 })
  }

  #add(grant: Omit<ModelGrant, 'remaining' | 'lapsed' | 'state'>): void {
    this.#grants.push({ ...grant, remaining: grant.amount, lapsed: 0, state: 'active' })
  }

  #active(): ModelGrant[] {
    return this.#grants
      .filter(({ state }) => state === 'active')
      .sort((a, b) => a.priority - b.priority || compare(a.rank, b.rank) || a.ordinal - b.ordinal)
  }

  #draw(amount: number, shares: Share[]): void {
    let rest = amount
    for (const grant of this.#active()) {
      const left = Math.min(rest, grant.remaining)
      if (left === 0) continue
      grant.remaining -= left
      rest -= left
      shares.push({ grant, left })
    }
    if (rest === 0) return
    this.#owed += rest
    shares.push({ grant: undefined, left: rest })
  }

  #payArrears(): void {
    const paid = Math.min(
      this.#owed,
      this.#active().reduce((sum, grant) => sum + grant.remaining, 0),
    )
    this.#owed -= paid
    this.#draw(paid, this.#arrears)
  }

  #giveBack(shares: readonly Share[], amount: number): void {
    const loose = this.#unwind(shares, amount)
    const lowered = Math.min(loose, this.#owed)
    this.#owed -= lowered
    this.#unwind(this.#arrears, loose - lowered)
    this.#payArrears()
  }

  /** Returns shares, the last one first; answers how much of it no grant had paid. */
  #unwind(shares: readonly Share[], amount: number): number {
    let rest = amount
    let loose = 0
    for (const share of shares.toReversed()) {
      const part = Math.min(rest, share.left)
      share.left -= part
      rest -= part
      if (share.grant === undefined) loose += part
      else if (share.grant.state === 'active') share.grant.remaining += part
      else share.grant.lapsed += part
    }
    if (rest > 0) throw new Error('more came back than was taken')
    return loose
  }
}

function leftOf(shares: readonly Share[]): number {
  return shares.reduce((sum, { left }) => sum + left, 0)
}

/** Infinity minus infinity is no number. */
function compare(a: number, b: number): number {
  return a === b ? 0 : a < b ? -1 : 1
}
