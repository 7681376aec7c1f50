/** Every call that takes `wait`, with every form of it, said by the call and as a default: it works, or is refused. */
import { deferred, waitUntil } from '@holdfast/testkit'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type HoldfastOptions, lockKey } from '../../../src/index.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'

const fixture = ledgerFixture(
  'CREATE TABLE thing (id int PRIMARY KEY, version int NOT NULL); INSERT INTO thing VALUES (1, 1)',
)

const forms = ['2 s', 500, '0 s', 0, 'nowait', 'inherit', 'skip', '2 apples', -1, null] as const
type Form = (typeof forms)[number]

const durations: readonly Form[] = ['2 s', 500, '0 s', 0]
/** The forms of docs/waiting.md. */
const all: readonly Form[] = [...durations, 'nowait', 'inherit']

interface Taker {
  /** What it takes. */
  readonly takes: readonly Form[]
  /** Where a default for it is said, besides `createHoldfast(driver, { wait })`. */
  readonly room?: 'locks' | 'rows' | 'once'
  /** `name` is what is waited for. */
  call(hf: typeof fixture.hf, name: string, wait: { wait?: never }): Promise<unknown>
}

const takers: Readonly<Record<string, Taker>> = {
  guard: {
    takes: all,
    room: 'locks',
    call: (hf, name, wait) => hf.guard(lockKey('forms', name), async () => 1, wait),
  },
  'locks.acquire': {
    takes: all,
    room: 'locks',
    call: (hf, name, wait) =>
      hf.transaction((tx) => hf.locks.acquire(tx, lockKey('forms', name), wait)),
  },
  once: { takes: all, room: 'once', call: (hf, name, wait) => hf.once(name, async () => 1, wait) },
  'once with a deadline': {
    takes: all,
    room: 'once',
    call: (hf, name, wait) => hf.once(name, async () => 1, { ...wait, deadline: '20 s' }),
  },
  'once in a transaction': {
    takes: all,
    room: 'once',
    call: (hf, name, wait) => hf.transaction((tx) => hf.once(tx, name, async () => 1, wait)),
  },
  'rows.lock': {
    takes: [...all, 'skip'],
    room: 'rows',
    call: (hf, _, wait) => hf.transaction((tx) => hf.rows.lock(tx, 'thing', [1], wait)),
  },
  'rows.lockTable': {
    takes: all,
    room: 'rows',
    call: (hf, _, wait) =>
      hf.transaction((tx) => hf.rows.lockTable(tx, 'thing', 'exclusive', wait)),
  },
  'rows.updateVersioned': {
    takes: all,
    room: 'rows',
    call: (hf, _, wait) =>
      hf.transaction(async (tx) => {
        const { rows } = await tx.query<{ version: number }>('SELECT version FROM thing')
        const version = rows[0]?.version as number
        await hf.rows.updateVersioned(tx, 'thing', 1, { version, set: {}, ...wait })
      }),
  },
  'rows.withVersionCheck': {
    takes: all,
    room: 'rows',
    call: (hf, _, wait) =>
      hf.rows.withVersionCheck('thing', 1, {
        work: async () => 1,
        write: async () => 1,
        ...wait,
      }),
  },
  'leases.acquire': {
    takes: [...durations, 'nowait'],
    call: async (hf, name, wait) => await (await hf.leases.acquire(name, wait)).release(),
  },
  'fire of a schedule': {
    takes: [...durations, 'nowait'],
    call: async (hf, name, wait) =>
      await hf
        .schedule({
          name,
          every: '1 min',
          guarantee: 'transactional',
          handler: async () => 1,
          ...wait,
        })
        .fire(),
  },
  'quota.consume': {
    takes: durations.slice(0, 2),
    call: (hf, name, wait) =>
      hf.quota({ name, limit: 5, per: 'day' }).consume('ann', 1, { operationId: name, ...wait }),
  },
  'ledger.maintain': {
    takes: durations.slice(0, 2),
    call: (hf, _, wait) => hf.ledger.maintain(wait),
  },
}

/** Whether it works, is refused as an option, or what else it says. */
async function outcomeOf(call: () => Promise<unknown>): Promise<unknown> {
  try {
    await call()
    return 'works'
  } catch (error) {
    return (error as { code?: unknown }).code ?? error
  }
}

describe.each(Object.entries(takers))('%s', (_name, { takes, room, call }) => {
  test.each(forms)('wait: %s, by the call', async (form) => {
    const given = { wait: form as never }
    const outcome = await outcomeOf(() => call(fixture.hf, fresh(), given))
    expect(outcome).toBe(takes.includes(form) ? 'works' : 'OPTION_INVALID')
  })

  test.each(forms)('wait: %s, as a default', async (form) => {
    if (room === undefined) return
    for (const options of [{ wait: form }, { [room]: { wait: form } }]) {
      const outcome = await outcomeOf(async () => {
        await call(fixture.create(options as HoldfastOptions), fresh(), {})
      })
      expect(outcome).toBe(all.includes(form) ? 'works' : 'OPTION_INVALID')
    }
  })
})

test("once with wait: 'inherit' waits for a duplicate, and ends with the lock_timeout of its transaction", async () => {
  const key = fresh()
  const [begun, end] = [deferred<void>(), deferred<void>()]
  const first = fixture.hf.once(key, async () => {
    begun.resolve()
    await end.promise
    return 'first'
  })
  onTestFinished(() => end.resolve())
  await begun.promise
  const limited = fixture.hf.transaction(async (tx) => {
    await tx.query("SET LOCAL lock_timeout = '50ms'")
    await fixture.hf.once(tx, key, async () => 'limited', { wait: 'inherit' })
  })
  await expect(limited).rejects.toMatchObject({ code: 'ONCE_TIMEOUT' })
  const waiting = fixture.hf.once(key, async () => 'second', { wait: 'inherit' })
  await waitUntil('it waits', async () => {
    const { rows } = await fixture.observer.query(
      `SELECT FROM pg_stat_activity
       WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0`,
    )
    return rows.length > 0 || undefined
  })
  end.resolve()
  expect(await waiting).toEqual({ ok: true, result: 'first', replayed: true })
  await first
})
