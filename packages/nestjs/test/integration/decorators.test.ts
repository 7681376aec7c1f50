import { Res, Scope } from '@nestjs/common'
import { barrier, deferred } from '@holdfast/testkit'
import { lockKey } from 'holdfast'
import type pg from 'pg'
import { of } from 'rxjs'
import { describe, expect, test } from 'vitest'
import { fresh, ledgerFixture } from '../../../holdfast/test/support/ledger-fixture.ts'
import {
  CurrentTransaction,
  Guarded,
  Idempotent,
  Once,
  type OnceMethodOptions,
} from '../../src/index.ts'
import { decorated } from '../support/decorate.ts'
import { startApp } from '../support/nest-app.ts'

const fixture = ledgerFixture('CREATE TABLE upload (who text, what text)')

async function uploads(who: string): Promise<number> {
  const { rows } = await fixture.observer.query('SELECT FROM upload WHERE who = $1', [who])
  return rows.length
}

type Current = CurrentTransaction<pg.PoolClient>

/** At most one for each: what has to be done under a lock. */
function makeUploads(both?: () => Promise<void>) {
  class Uploads {
    readonly current: Current
    constructor(current: Current) {
      this.current = current
    }
    async add(who: string): Promise<boolean> {
      return await this.unguarded(who, this.current.tx)
    }
    async unguarded(who: string, tx: pg.Pool | pg.PoolClient): Promise<boolean> {
      const { rows } = await tx.query('SELECT FROM upload WHERE who = $1', [who])
      await both?.()
      if (rows.length > 0) return false
      await tx.query('INSERT INTO upload VALUES ($1)', [who])
      return true
    }
    async pair(who: string): Promise<number[]> {
      const pids = [await this.pid(), await this.inner(who)]
      if (who.startsWith('fails')) throw new Error('mine')
      return pids
    }
    async inner(who: string): Promise<number> {
      await this.current.tx.query('INSERT INTO upload VALUES ($1)', [who])
      return await this.pid()
    }
    async pid(): Promise<number> {
      const { rows } = await this.current.tx.query('SELECT pg_backend_pid() AS pid')
      return (rows[0] as { pid: number }).pid
    }
  }
  return decorated(Uploads, {
    takes: [CurrentTransaction],
    methods: {
      add: [Guarded((who: string) => lockKey('nest-upload', who))],
      pair: [Guarded((who: string) => lockKey('nest-pair', who))],
      inner: [Guarded((who: string) => lockKey('nest-upload', who))],
    },
  })
}

describe('@Guarded', () => {
  test('U9: of two at once the second sees what the first has written', async () => {
    const Uploads = makeUploads()
    const { app } = await startApp({ pool: fixture.pool, silent: true }, { providers: [Uploads] })
    const who = fresh()
    const service = app.get(Uploads)
    const added = await Promise.all([service.add(who), service.add(who), service.add(who)])
    expect(added.filter(Boolean)).toHaveLength(1)
    expect(await uploads(who)).toBe(1)
  })

  test('control: without it both write', async () => {
    const Uploads = makeUploads(barrier(2))
    const { app } = await startApp({ pool: fixture.pool, silent: true }, { providers: [Uploads] })
    const who = fresh()
    const service = app.get(Uploads)
    const add = (): Promise<boolean> => service.unguarded(who, fixture.pool)
    expect(await Promise.all([add(), add()])).toEqual([true, true])
    expect(await uploads(who)).toBe(2)
  })

  test('a method that another one calls joins its transaction, and fails with it', async () => {
    const Uploads = makeUploads()
    const { app } = await startApp({ pool: fixture.pool, silent: true }, { providers: [Uploads] })
    const [outer, inner] = await app.get(Uploads).pair(fresh())
    expect(inner).toBe(outer)
    const who = `fails ${fresh()}`
    await expect(app.get(Uploads).pair(who)).rejects.toThrow('mine')
    expect(await uploads(who)).toBe(0)
    expect(app.get<Current>(CurrentTransaction).isOpen).toBe(false)
  })

  test('outside of it there is no transaction, rather than the pool', async () => {
    const Uploads = makeUploads()
    const { app } = await startApp({ pool: fixture.pool, silent: true }, { providers: [Uploads] })
    const outside = app.get(Uploads).pid()
    await expect(outside).rejects.toMatchObject({ code: 'TX_HANDLE_ENDED' })
    await expect(outside).rejects.toThrow(/read it in a method under @Guarded.*do not keep tx/)
  })

  test('work that the method left behind is not in its transaction any more', async () => {
    let late: Promise<unknown> | undefined
    class Careless {
      readonly current: Current
      constructor(current: Current) {
        this.current = current
      }
      async run(): Promise<void> {
        late = ended.promise.then(() => this.current.isOpen)
      }
    }
    const ended = deferred<void>()
    const key = (): ReturnType<typeof lockKey> => lockKey('nest-left', 'x')
    decorated(Careless, { takes: [CurrentTransaction], methods: { run: [Guarded(key)] } })
    const { app } = await startApp({ pool: fixture.pool, silent: true }, { providers: [Careless] })
    await app.get(Careless).run()
    ended.resolve()
    expect(await late).toBe(false)
  })

  test.each([
    [
      'throws',
      () => {
        throw new Error('no key')
      },
      { message: 'no key' },
    ],
    ['rejects', () => Promise.reject(new Error('no key')), { message: 'no key' }],
    ['gives nothing', () => undefined, { code: 'LOCK_KEY_INVALID' }],
    ['gives no keys', () => [], { code: 'LOCK_KEY_INVALID' }],
    ['gives a text', () => 'upload', { code: 'LOCK_KEY_INVALID' }],
  ])('a key that %s: the method does not run', async (_, key, expected) => {
    let runs = 0
    class Service {
      async run(): Promise<void> {
        runs += 1
      }
    }
    decorated(Service, { methods: { run: [Guarded(key as () => never)] } })
    const { app } = await startApp({ pool: fixture.pool, silent: true }, { providers: [Service] })
    await expect(app.get(Service).run()).rejects.toMatchObject(expected)
    expect(runs).toBe(0)
  })

  test('a method that is not async is guarded too; one that works later is refused', async () => {
    class Service {
      readonly current: Current
      constructor(current: Current) {
        this.current = current
      }
      now(): unknown {
        return this.current.isOpen
      }
      observable(who: string): unknown {
        void this.current.tx.query('INSERT INTO upload VALUES ($1)', [who])
        return of(1)
      }
      *generator(): unknown {
        yield 1
      }
    }
    const guarded = Guarded(() => lockKey('nest-sync', 'x')) as MethodDecorator
    const methods = { now: [guarded], observable: [guarded], generator: [guarded] }
    decorated(Service, { takes: [CurrentTransaction], methods })
    const { app } = await startApp({ pool: fixture.pool, silent: true }, { providers: [Service] })
    const service = app.get(Service)
    expect(await service.now()).toBe(true)
    const who = fresh()
    await expect(service.observable(who)).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    await expect(service.generator()).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    expect(await uploads(who)).toBe(0)
  })

  test('inheritance: what is inherited is guarded, what is replaced only with a decorator or super', async () => {
    class Base {
      readonly current: Current
      constructor(current: Current) {
        this.current = current
      }
      async kept(): Promise<boolean> {
        return this.current.isOpen
      }
      async replaced(): Promise<boolean> {
        return this.current.isOpen
      }
      async called(): Promise<boolean> {
        return this.current.isOpen
      }
    }
    const guarded = Guarded(() => lockKey('nest-base', 'x'))
    const methods = { kept: [guarded], replaced: [guarded], called: [guarded] }
    decorated(Base, { takes: [CurrentTransaction], methods })
    class Derived extends Base {
      override async replaced(): Promise<boolean> {
        return this.current.isOpen
      }
      override async called(): Promise<boolean> {
        return await super.called()
      }
    }
    decorated(Derived, { takes: [CurrentTransaction] })
    const { app } = await startApp({ pool: fixture.pool, silent: true }, { providers: [Derived] })
    const derived = app.get(Derived)
    expect([await derived.kept(), await derived.replaced(), await derived.called()]).toEqual([
      true,
      false,
      true,
    ])
  })

  test('request-scoped providers are guarded like others', async () => {
    class Service {
      readonly current: Current
      constructor(current: Current) {
        this.current = current
      }
      async run(): Promise<boolean> {
        return this.current.isOpen
      }
    }
    decorated(Service, {
      takes: [CurrentTransaction],
      scope: { scope: Scope.REQUEST },
      methods: { run: [Guarded(() => lockKey('nest-request', 'x'))] },
    })
    const { app } = await startApp({ pool: fixture.pool, silent: true }, { providers: [Service] })
    const service = await app.resolve(Service)
    expect(await service.run()).toBe(true)
  })

  test('two applications in one process: each has its own', async () => {
    const Uploads = makeUploads()
    const providers = [Uploads]
    const one = await startApp({ pool: fixture.pool, silent: true }, { providers })
    const two = await startApp({ pool: fixture.pool, silent: true }, { providers })
    const who = fresh()
    await one.app.close()
    await expect(one.app.get(Uploads).add(who)).rejects.toMatchObject({ code: 'HOLDFAST_CLOSED' })
    expect(await two.app.get(Uploads).add(who)).toBe(true)
  })

  test('an instance that Nest did not make, and a method without it, are refused', async () => {
    const Uploads = makeUploads()
    const { app } = await startApp({ pool: fixture.pool, silent: true }, { providers: [Uploads] })
    const own = new Uploads(app.get(CurrentTransaction))
    await expect(own.add('x')).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    const { add } = app.get(Uploads)
    await expect(add('x')).rejects.toMatchObject({ code: 'OPTION_INVALID' })
  })

  test('an isolation level is refused where the transaction is open already', async () => {
    class Service {
      async outer(): Promise<void> {
        await this.inner()
      }
      async inner(): Promise<void> {
        // Nothing to do.
      }
    }
    const key = (): ReturnType<typeof lockKey> => lockKey('nest-isolation', 'x')
    const inner = Guarded(key, { isolation: 'serializable', allowStaleSnapshot: true })
    decorated(Service, { methods: { outer: [Guarded(key)], inner: [inner] } })
    const { app } = await startApp({ pool: fixture.pool, silent: true }, { providers: [Service] })
    await app.get(Service).inner()
    await expect(app.get(Service).outer()).rejects.toMatchObject({ code: 'OPTION_INVALID' })
  })
})

test('in a transaction that is open, keepTransaction keeps it usable after a timeout', async () => {
  const who = fresh()
  const held = deferred<void>()
  const end = deferred<void>()
  class Service {
    readonly current: Current
    constructor(current: Current) {
      this.current = current
    }
    async outer(): Promise<unknown> {
      const told = await this.inner().catch((error: unknown) => error)
      await this.current.tx.query('INSERT INTO upload VALUES ($1)', [who])
      return told
    }
    async inner(): Promise<void> {
      // Never runs.
    }
  }
  const inner = Guarded(() => lockKey('nest-kept', who), { wait: '10 ms', keepTransaction: true })
  decorated(Service, {
    takes: [CurrentTransaction],
    methods: { outer: [Guarded(() => lockKey('nest-keeping', who))], inner: [inner] },
  })
  const { app } = await startApp({ pool: fixture.pool, silent: true }, { providers: [Service] })
  const holder = fixture.hf.guard(lockKey('nest-kept', who), async () => {
    held.resolve()
    await end.promise
  })
  await held.promise
  try {
    expect(await app.get(Service).outer()).toMatchObject({ code: 'LOCK_TIMEOUT' })
  } finally {
    end.resolve()
    await holder
  }
  expect(await uploads(who)).toBe(1)
})

describe('an option that there is not is refused where the decorator stands', () => {
  const key = (): ReturnType<typeof lockKey> => lockKey('nest-options', 'x')
  const scope = (): string => 'ann'
  test.each<readonly [string, () => unknown, string]>([
    ['of @Guarded', () => Guarded(key, { wiat: '1 s' } as never), 'wiat'],
    ['of its retries', () => Guarded(key, { retry: { attemps: 3 } as never }), 'retry.attemps'],
    ['a text in its place', () => Guarded(key, '10 s' as never), 'options'],
    ['of @Once', () => Once(() => 'x', { kepe: '1 h' } as never), 'kepe'],
    ['of its retries', () => Once(() => 'x', { retry: { attemps: 3 } as never }), 'retry.attemps'],
    ['a list in its place', () => Once(() => 'x', [] as never), 'options'],
    ['of @Idempotent', () => Idempotent({ scope, keepif: () => true } as never), 'keepif'],
    ['a value that cannot be', () => Idempotent({ scope, keep: 'long' as never }), 'keep'],
  ])('%s', (_, decorate, option) => {
    expect(decorate).toThrow(
      expect.objectContaining({
        code: 'OPTION_INVALID',
        details: expect.objectContaining({ option }),
      }),
    )
  })

  test('those that there are are taken', () => {
    for (const decorator of [
      Guarded(key, { wait: '1 s', retry: false, queue: false, keepTransaction: true }),
      Once(() => 'x', {
        keep: '1 h',
        wait: 'nowait',
        scope,
        retry: { attempts: 3 },
        durable: true,
      }),
      Idempotent({ scope, keep: '1 h', required: false, header: 'x-key', keepIf: () => true }),
    ])
      expect(decorator).toBeTypeOf('function')
  })
})

describe('@Once', () => {
  interface Event {
    readonly id: string
    readonly amount?: number
  }

  class Visible {
    readonly secret = 'hidden by a serializer'
  }

  async function payments(options?: OnceMethodOptions<[Event]>) {
    class Payments {
      runs = 0
      readonly current: Current
      constructor(current: Current) {
        this.current = current
      }
      async pay(event: Event): Promise<{ run: number; at: Date } | Visible> {
        this.runs += 1
        await this.current.tx.query('INSERT INTO upload VALUES ($1)', [event.id])
        if (event.amount === -1) throw new Error('mine')
        if (event.amount === -2) return new Visible()
        return { run: this.runs, at: new Date(0) }
      }
      async order(event: Event): Promise<unknown> {
        await this.pay(event)
        return await this.pay(event)
      }
    }
    decorated(Payments, {
      takes: [CurrentTransaction],
      methods: {
        pay: [Once((event: Event) => event.id, options)],
        order: [Guarded((event: Event) => lockKey('nest-order', event.id))],
      },
    })
    const { app } = await startApp({ pool: fixture.pool, silent: true }, { providers: [Payments] })
    return app.get(Payments)
  }

  test('U9: runs once, and everybody gets what it returned', async () => {
    const service = await payments()
    const event = { id: fresh() }
    const answers = await Promise.all([service.pay(event), service.pay(event)])
    answers.push(await service.pay(event))
    expect(answers).toEqual(answers.map(() => ({ run: 1, at: new Date(0).toISOString() })))
    expect(await uploads(event.id)).toBe(1)
  })

  test('in a transaction that is open it joins', async () => {
    const service = await payments()
    const event = { id: fresh() }
    await service.order(event)
    expect([service.runs, await uploads(event.id)]).toEqual([1, 1])
  })

  test('what throws is not kept, and runs again', async () => {
    const service = await payments()
    const id = fresh()
    await expect(service.pay({ id, amount: -1 })).rejects.toThrow('mine')
    expect(await uploads(id)).toBe(0)
    expect(await service.pay({ id })).toMatchObject({ run: 2 })
  })

  test('a payload that gives undefined is refused, also in a transaction that is open', async () => {
    const service = await payments({ payload: ({ amount }) => amount })
    const refused = { code: 'OPTION_INVALID', details: { option: 'payload' } }
    const id = fresh()
    await expect(service.pay({ id })).rejects.toMatchObject(refused)
    await expect(service.order({ id })).rejects.toMatchObject(refused)
    expect([service.runs, await uploads(id)]).toEqual([0, 0])
    expect(await service.pay({ id, amount: 1 })).toMatchObject({ run: 1 })
  })

  test('an instance of a class is refused, and nothing is kept of it', async () => {
    const service = await payments()
    const id = fresh()
    await expect(service.pay({ id, amount: -2 })).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    expect(await uploads(id)).toBe(0)
  })

  test('something else under the same key is refused', async () => {
    const service = await payments({ payload: ({ amount }) => amount, scope: () => 'nest' })
    const id = fresh()
    await service.pay({ id, amount: 1 })
    await expect(service.pay({ id, amount: 2 })).rejects.toMatchObject({ status: 422 })
    expect(service.runs).toBe(1)
  })

  test.each([[undefined], [''], [7]])('the key %j is refused', async (id) => {
    const service = await payments()
    await expect(service.pay({ id: id as string })).rejects.toMatchObject({
      code: 'ONCE_KEY_INVALID',
    })
    expect(service.runs).toBe(0)
  })
})

test('a method that answers by itself, before COMMIT, is refused', () => {
  for (const place of [Guarded(() => lockKey('nest', 1)), Once(() => 'once')]) {
    class Routes {
      async add(): Promise<void> {
        // Never runs.
      }
    }
    Res()(Routes.prototype, 'add', 0)
    const descriptor = Object.getOwnPropertyDescriptor(Routes.prototype, 'add')
    expect(() => place(Routes.prototype, 'add', descriptor as never)).toThrow(/@Res\(\)/)
  }
})
