import { deferred, waitUntil, waitUntilBlocked } from '@holdfast/testkit'
import pg from 'pg'
import { fromPg } from '../../src/drivers/pg.ts'
import { createHoldfast, type Holdfast, lockKey, shared } from '../../src/index.ts'

/** Who takes part, in the order in which they arrive. */
export const cast = [
  'billing',
  'checkout-1',
  'checkout-2',
  'report-night',
  'report-day',
  'report-view',
  'order-edit',
  'stock-sync',
  'tenant-close',
  'tenant-login',
  'migration',
  'dashboard',
] as const

export type Role = (typeof cast)[number]

/** What a session waits for and who blocks it, by role. */
export interface StagedWait {
  /** As an observer is to name it. */
  readonly waitsFor: string
  readonly hard: readonly Role[]
  readonly soft: readonly Role[]
}

/** The truth about the stage: everybody but `billing`, who is idle in a transaction and waits for nobody. */
export const stagedWaits: Readonly<Record<Exclude<Role, 'billing'>, StagedWait>> = {
  'checkout-1': { waitsFor: 'cart:7', hard: ['billing'], soft: [] },
  'checkout-2': { waitsFor: 'cart:7', hard: ['billing'], soft: ['checkout-1'] },
  'report-night': { waitsFor: 'row of public.orders', hard: ['billing'], soft: [] },
  'report-day': {
    waitsFor: 'report:acme-international:monthly-revenue-by-region:2026-10',
    hard: ['report-night'],
    soft: [],
  },
  'report-view': {
    waitsFor: 'report:acme-international:monthly-revenue-by-region:2026-10',
    hard: ['report-night'],
    soft: ['report-day'],
  },
  'order-edit': { waitsFor: 'row of public.orders', hard: ['report-night'], soft: [] },
  'stock-sync': { waitsFor: 'inventory:sku-1', hard: ['billing'], soft: [] },
  'tenant-close': { waitsFor: 'row of public.accounts', hard: ['billing'], soft: [] },
  'tenant-login': { waitsFor: 'tenant:eu:42', hard: ['tenant-close'], soft: [] },
  migration: { waitsFor: 'table public.accounts', hard: ['billing', 'tenant-close'], soft: [] },
  dashboard: { waitsFor: 'table public.accounts', hard: [], soft: ['migration'] },
}

const cart = lockKey('cart', 7)
const inventory = lockKey('inventory', 'sku-1')
const order = lockKey('order', 1001)
/** Longer than the label in application_name has room for. */
const report = lockKey('report', 'acme-international', 'monthly-revenue-by-region', '2026-10')
const tenant = lockKey('tenant', 'eu', 42)
/** What `billing` holds, in one acquisition. */
export const billingKeys: readonly string[] = [cart, inventory, order].map(({ name }) => name)

/** The names as a recorder would note them, for `note_locks`. */
export function stagedNotes(): readonly { id: string; name: string; namespace: string }[] {
  return [cart, inventory, order, report, tenant].map(({ name, namespace, lock }) => ({
    id: `1:${lock.id}`,
    name,
    namespace,
  }))
}

export interface StagedIncident {
  readonly pids: Readonly<Record<Role, number>>
  roleOf(pid: number): Role | undefined
  /** `performance.now()` when the last session began to wait. */
  readonly happenedAt: number
  /** Lets everybody through, and closes all connections. */
  end(): Promise<void>
}

/**
 * Stages an incident: twelve sessions in one blocking tree, with named locks, row locks, a table lock and
 * a root that is idle in its transaction. The URL must lead straight to the server; the tables `orders` and
 * `accounts` are made if they are not there.
 */
export async function stageIncident(directUrl: string): Promise<StagedIncident> {
  const stage = new Stage(directUrl)
  try {
    await stage.set()
    await stage.play()
  } catch (error) {
    await stage.end().catch(() => undefined)
    throw error
  }
  const pids = stage.pids as Record<Role, number>
  return {
    pids,
    roleOf: (pid) => cast.find((role) => pids[role] === pid),
    happenedAt: performance.now(),
    end: () => stage.end(),
  }
}

interface Actor {
  readonly pool: pg.Pool
  readonly hf: Holdfast<pg.PoolClient>
  readonly pid: number
}

class Stage {
  readonly pids: Partial<Record<Role, number>> = {}
  readonly #url: string
  readonly #curtain = deferred<void>()
  readonly #actors = new Map<Role, Actor>()
  readonly #playing: Promise<unknown>[] = []
  readonly #looking: pg.Pool

  constructor(url: string) {
    this.#url = url
    this.#looking = new pg.Pool({ connectionString: url, max: 1 })
  }

  async set(): Promise<void> {
    await this.#looking.query(`
      CREATE TABLE IF NOT EXISTS public.orders (id integer PRIMARY KEY, state text NOT NULL);
      CREATE TABLE IF NOT EXISTS public.accounts (id integer PRIMARY KEY, name text NOT NULL);
      INSERT INTO public.orders VALUES (1, 'open'), (2, 'open') ON CONFLICT DO NOTHING;
      INSERT INTO public.accounts VALUES (1, 'acme'), (2, 'globex') ON CONFLICT DO NOTHING`)
    for (const role of cast) await this.#enter(role)
  }

  async #enter(role: Role): Promise<void> {
    const pool = new pg.Pool({ connectionString: this.#url, max: 1, application_name: role })
    const hf = createHoldfast(fromPg(pool), {
      locks: { watch: false, strict: false, waitMs: 600_000 },
    })
    // Once before it counts: the first lock of a driver is looked up in the lock table.
    await hf.guard(lockKey('rehearsal', role), async () => undefined)
    const { rows } = await pool.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
    const pid = rows[0]?.pid as number
    this.pids[role] = pid
    this.#actors.set(role, { pool, hf, pid })
  }

  async play(): Promise<void> {
    const onStage = deferred<void>()
    this.#act('billing', ({ hf }) =>
      hf.guard([cart, inventory, order], async (tx) => {
        await tx.query("UPDATE public.orders SET state = 'paid' WHERE id = 1")
        await tx.query('SELECT name FROM public.accounts WHERE id = 1 FOR UPDATE')
        onStage.resolve()
        await this.#curtain.promise
      }),
    )
    await onStage.promise
    await this.#waits('checkout-1', ({ hf }) => hf.guard(cart, async () => undefined))
    await this.#waits('checkout-2', ({ hf }) => hf.guard(cart, async () => undefined))
    const archive = "UPDATE public.orders SET state = 'archived' WHERE id = 1"
    await this.#waits('report-night', ({ hf }) => hf.guard(report, async (tx) => tx.query(archive)))
    await this.#waits('report-day', ({ hf }) => hf.guard(report, async () => undefined))
    await this.#waits('report-view', ({ hf }) => hf.guard(shared(report), async () => undefined))
    await this.#waits('order-edit', ({ pool }) => pool.query(archive))
    await this.#waits('stock-sync', ({ hf }) => hf.guard(inventory, async () => undefined))
    await this.#waits('tenant-close', ({ hf }) =>
      hf.guard(tenant, async (tx) =>
        tx.query('SELECT name FROM public.accounts WHERE id = 1 FOR UPDATE'),
      ),
    )
    await this.#waits('tenant-login', ({ hf }) => hf.guard(tenant, async () => undefined))
    await this.#waits('migration', ({ pool }) =>
      pool.query('ALTER TABLE public.accounts ADD COLUMN IF NOT EXISTS note text'),
    )
    await this.#waits('dashboard', ({ pool }) => pool.query('SELECT count(*) FROM public.accounts'))
    await waitUntil('billing is idle', async () => {
      const { rows } = await this.#looking.query<{ state: string }>(
        'SELECT state FROM pg_stat_activity WHERE pid = $1',
        [this.pids.billing],
      )
      return rows[0]?.state === 'idle in transaction' ? true : undefined
    })
  }

  #act(role: Role, part: (actor: Actor) => Promise<unknown>): void {
    const acting = part(this.#actors.get(role) as Actor)
    // Whoever fails says so at the end.
    acting.catch(() => undefined)
    this.#playing.push(acting)
  }

  async #waits(role: Role, part: (actor: Actor) => Promise<unknown>): Promise<void> {
    this.#act(role, part)
    await waitUntilBlocked(this.#looking, this.pids[role] as number)
  }

  async end(): Promise<void> {
    this.#curtain.resolve()
    await Promise.allSettled(this.#playing)
    await Promise.all([...this.#actors.values()].map(({ pool }) => pool.end()))
    await this.#looking.end()
    await Promise.all(this.#playing)
  }
}
