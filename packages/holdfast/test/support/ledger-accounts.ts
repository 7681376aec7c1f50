/** The accounts of the model: what they stand at, what they can give, and what falls due on them. */

import type { GrantsModel, ModelGrant } from './grants-model.ts'
import { type WindowAt, windowAt } from './ledger-calendar.ts'
import type { Account, HoldState, KeyTerms, Movement } from './ledger-command.ts'

/** An account of a key, or of one window of it. */
export interface Standing extends Account {
  readonly name: string
  readonly key: string
  readonly window: WindowAt | undefined
  readonly walled: boolean
  /** Its limit was set for the key. */
  pinned: boolean
  movedAt: number
  /** Nothing is due earlier. */
  dueAt: number
  /** Up to when a rate was filled. */
  refilledAt: number | undefined
}

export interface HoldPart {
  readonly operation: number
  readonly account: string
  readonly key: string
  readonly amount: number
  /** The number of the movement that made it. */
  readonly made: number
  readonly feature: string | undefined
  expiresAt: number
  state: HoldState
  settled: number
  /** What was answered when it was ended. */
  ended?: Account & { readonly at: number }
}

export interface Change {
  readonly kind: Movement['kind']
  readonly operation: number
  readonly credit?: number
  readonly debit?: number
  readonly hold?: number
}

/** A movement, and when it was. */
export interface Moved extends Movement {
  readonly at: number
  /** What the account could give afterwards depends on these as well. */
  readonly refilledAt: number | undefined
  readonly pinned: boolean
}

type Able = Pick<Standing, 'credited' | 'debited' | 'held' | 'allowance' | 'pinned' | 'refilledAt'>

export function balanceOf({ credited, debited, held }: Account): number {
  return credited - debited - held
}

export function limitOf(
  account: Pick<Able, 'allowance' | 'pinned' | 'refilledAt'> | undefined,
  asked: number | undefined,
  everyUs: number | undefined,
): number {
  if (everyUs === undefined && account?.refilledAt !== undefined) return 0
  if (account?.pinned === true) return account.allowance
  return asked ?? account?.allowance ?? 0
}

/** What an account can give at a moment; one that does not exist has its limit. */
export function canGive(
  account: Able | undefined,
  asked: number | undefined,
  everyUs: number | undefined,
  now: number,
): number {
  const limit = limitOf(account, asked, everyUs)
  const balance = account === undefined ? 0 : account.credited - account.debited - account.held
  if (everyUs === undefined) return balance + limit
  if (account?.refilledAt === undefined) return limit
  const flowed = Math.max(Math.floor((now - account.refilledAt) / everyUs), 0)
  return balance + Math.min(limit - balance, flowed)
}

export class Accounts {
  readonly movements = new Map<string, Moved[]>()
  readonly holds = new Map<number, HoldPart[]>()
  readonly grants = new Map<string, GrantsModel>()
  readonly #standings = new Map<string, Standing>()
  now = 0

  clone(): Accounts {
    const copy = new Accounts()
    copy.now = this.now
    for (const [name, standing] of this.#standings) copy.#standings.set(name, { ...standing })
    for (const [name, moved] of this.movements) copy.movements.set(name, [...moved])
    for (const [id, parts] of this.holds) {
      copy.holds.set(
        id,
        parts.map((part) => ({ ...part })),
      )
    }
    for (const [name, grants] of this.grants) copy.grants.set(name, grants.clone())
    return copy
  }

  get(name: string | undefined): Standing | undefined {
    return name === undefined ? undefined : this.#standings.get(name)
  }

  set(standing: Standing): void {
    this.#standings.set(standing.name, standing)
  }

  all(): Iterable<Standing> {
    return this.#standings.values()
  }

  /** The account of a key at this moment, by its name. */
  nameAt(key: string, { unit, zone = 'UTC' }: KeyTerms, at = this.now): string {
    return unit === undefined ? key : `${key}@${windowAt(unit, zone, at).start}`
  }

  /** As somebody sees it who only looks: a window that is not open yet has the limit of its key. */
  look(name: string, key: string): Standing | undefined {
    const standing = this.#standings.get(name)
    const base = this.#standings.get(key)
    if (standing !== undefined || name === key || base?.pinned !== true) return standing
    const { allowance, walled } = base
    return { ...fresh(name, key, undefined), allowance, pinned: true, walled }
  }

  /** Opens an account unless it exists. */
  open(name: string, key: string, terms: KeyTerms, allowance: number, at = this.now): Standing {
    const known = this.#standings.get(name)
    if (known !== undefined) return known
    const { unit, zone = 'UTC', walled = false } = terms
    const isWindow = unit !== undefined && name !== key
    const window = isWindow ? windowAt(unit, zone, at) : undefined
    const base = isWindow ? this.#standings.get(key) : undefined
    const pinned = base?.pinned === true
    const opened = {
      ...fresh(name, key, window),
      walled,
      pinned,
      allowance: pinned ? base.allowance : allowance,
    }
    this.#standings.set(name, opened)
    return opened
  }

  /** In the order in which they expire: of those that do at once, the earlier made first. */
  openParts(account: string): HoldPart[] {
    return [...this.holds.values()]
      .flat()
      .filter((part) => part.account === account && part.state === 'open')
      .toSorted((a, b) => a.expiresAt - b.expiresAt || a.made - b.made)
  }

  /** When so much has left a rolling window. */
  freedAt(account: string, shortage: number): number | undefined {
    let freed = 0
    return this.openParts(account).find(({ amount }) => (freed += amount) >= shortage)?.expiresAt
  }

  /** Whether something is due, and not only believed to be. */
  isDue({ name }: Standing): boolean {
    const next = this.grants.get(name)?.next()?.at ?? Infinity
    return Math.min(this.openParts(name)[0]?.expiresAt ?? Infinity, next) <= this.now
  }

  /** Books what is due on an account. */
  fallDue(standing: Standing): void {
    const { movedAt, sequence } = standing
    standing.movedAt = Math.max(movedAt, this.now)
    const grants = this.grants.get(standing.name)
    for (;;) {
      const [part] = this.openParts(standing.name)
      const next = grants?.next()
      standing.dueAt = Math.min(part?.expiresAt ?? Infinity, next?.at ?? Infinity)
      if (standing.dueAt > this.now) break
      if (part?.expiresAt === standing.dueAt) this.#expire(standing, part, grants)
      else if (next !== undefined && grants !== undefined) this.#turn(standing, grants, next.grant)
    }
    if (standing.sequence === sequence) standing.movedAt = movedAt
  }

  #expire(standing: Standing, part: HoldPart, grants: GrantsModel | undefined): void {
    const { operation, amount, made } = part
    this.write(standing, { kind: 'expire', operation, hold: -amount })
    part.state = 'expired'
    const lapsed = grants?.giveBack(String(made), amount, standing.sequence) ?? 0
    if (lapsed > 0) this.write(standing, { kind: 'lapse', operation, debit: lapsed })
  }

  /** A grant begins or ends. */
  #turn(standing: Standing, grants: GrantsModel, grant: Readonly<ModelGrant>): void {
    const { name, amount, rank, rolloverFor = 0 } = grant
    const operation = Number.parseInt(name, 10)
    if (grant.state === 'pending') {
      this.write(standing, { kind: 'grant', operation, credit: amount })
      grants.begin(name)
      return
    }
    const lapsed = grants.end(name, true, rank + rolloverFor)
    if (lapsed > 0) this.write(standing, { kind: 'lapse', operation, debit: lapsed })
  }

  write(standing: Standing, { kind, operation, credit = 0, debit = 0, hold = 0 }: Change): void {
    standing.credited += credit
    standing.debited += debit
    standing.held += hold
    standing.sequence += 1
    this.note(standing, { kind, operation, credit, debit, hold }, accountOf(standing))
  }

  /** A movement that has changed its account already. */
  note(standing: Standing, change: Change, after: Account): void {
    const { kind, operation, credit = 0, debit = 0, hold = 0 } = change
    const { movedAt: at, refilledAt, pinned, name } = standing
    const moved = { kind, operation, credit, debit, hold, after, at, refilledAt, pinned }
    const list = this.movements.get(name)
    if (list === undefined) this.movements.set(name, [moved])
    else list.push(moved)
  }
}

export const zero: Readonly<Account> = {
  credited: 0,
  debited: 0,
  held: 0,
  allowance: 0,
  sequence: 0,
}

export function accountOf(standing: Account): Account {
  const { credited, debited, held, allowance, sequence } = standing
  return { credited, debited, held, allowance, sequence }
}

function fresh(name: string, key: string, window: WindowAt | undefined): Standing {
  return {
    ...zero,
    name,
    key,
    window,
    walled: false,
    pinned: false,
    movedAt: -Infinity,
    dueAt: Infinity,
    refilledAt: undefined,
  }
}
