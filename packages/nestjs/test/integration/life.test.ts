/** What starts and ends with the application: ticks, health, shutdown. */
import { setImmediate } from 'node:timers/promises'
import { Module, Scope } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { ExpressAdapter } from '@nestjs/platform-express'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import { deferred } from '@holdfast/testkit'
import { type Holdfast, lockKey } from 'holdfast'
import { fromPg } from 'holdfast/drivers/pg'
import type { Tick as AnyTick } from 'holdfast/schedule'
import type pg from 'pg'
import { describe, expect, test, vi } from 'vitest'
import { fresh, ledgerFixture } from '../../../holdfast/test/support/ledger-fixture.ts'
import {
  CurrentTransaction,
  Guarded,
  HOLDFAST,
  HoldfastHealthIndicator,
  HoldfastModule,
  Tick,
  type TickOptions,
} from '../../src/index.ts'
import { type Around, decorated } from '../support/decorate.ts'
import { platforms, startApp } from '../support/nest-app.ts'

const fixture = ledgerFixture('CREATE TABLE run (name text, pid int)')
const often = (name: string, guarantee: TickOptions['guarantee'] = 'transactional'): TickOptions =>
  ({ name, every: '100 ms', guarantee }) as TickOptions

async function runs(name: string): Promise<number> {
  const { rows } = await fixture.observer.query('SELECT FROM run WHERE name = $1', [name])
  return rows.length
}

describe('@Tick', () => {
  function reports(name: string, around: Partial<Around> = {}, options = often(name)) {
    const seen = deferred<{ tick: AnyTick; open: boolean }>()
    class Reports {
      readonly current: CurrentTransaction<pg.PoolClient>
      constructor(current: CurrentTransaction<pg.PoolClient>) {
        this.current = current
      }
      async run(tick: AnyTick): Promise<void> {
        const { current } = this
        if (current.isOpen) await current.tx.query('INSERT INTO run VALUES ($1)', [name])
        seen.resolve({ tick, open: current.isOpen })
      }
    }
    decorated(Reports, {
      takes: [CurrentTransaction],
      methods: { run: [Tick(options)] },
      ...around,
    })
    return { Reports, seen: seen.promise }
  }

  test.each([
    ['transactional', true],
    ['at-most-once', false],
  ] as const)('U9: %s: runs with the application, and ends with it', async (guarantee, isOpen) => {
    const name = fresh()
    const { Reports, seen } = reports(name, {}, often(name, guarantee))
    const { app } = await startApp({ pool: fixture.pool, silent: true }, { providers: [Reports] })
    const { tick, open } = await seen
    expect(open).toBe(isOpen)
    expect(tick.at).toBeInstanceOf(Date)
    await app.close()
    const ended = await runs(name)
    expect(ended > 0).toBe(isOpen)
    expect(await runs(name)).toBe(ended)
  })

  test('in two applications each tick runs in one', async () => {
    const name = fresh()
    const { Reports, seen } = reports(name)
    const one = await startApp({ pool: fixture.pool, silent: true }, { providers: [Reports] })
    const two = await startApp({ pool: fixture.pool, silent: true }, { providers: [Reports] })
    await seen
    await Promise.all([one.app.close(), two.app.close()])
    const ticks = await fixture.hf.schedule({ ...often(name), handler: () => 1 } as never).history()
    const done = ticks.filter(({ state }) => state === 'done')
    expect(done.length).toBeGreaterThan(0)
    expect(await runs(name)).toBe(done.length)
  })

  test.each([
    ['request-scoped', { scope: { scope: Scope.REQUEST } }],
    ['transient', { scope: { scope: Scope.TRANSIENT } }],
  ])('of a %s provider is refused when the application starts', async (_, around) => {
    const { Reports } = reports(fresh(), around)
    const starting = startApp({ pool: fixture.pool, silent: true }, { providers: [Reports] })
    await expect(starting).rejects.toMatchObject({ code: 'OPTION_INVALID' })
  })

  test('of a provider that needs a request-scoped one is refused too', async () => {
    class Who {}
    decorated(Who, { scope: { scope: Scope.REQUEST } })
    const name = fresh()
    class Reports {
      run(): void {
        // Never runs.
      }
    }
    decorated(Reports, { takes: [Who], methods: { run: [Tick(often(name))] } })
    const starting = startApp({ pool: fixture.pool, silent: true }, { providers: [Who, Reports] })
    await expect(starting).rejects.toMatchObject({ code: 'OPTION_INVALID' })
  })

  test('of a provider that a factory made runs as well, once where it has an alias', async () => {
    const name = fresh()
    const { Reports, seen } = reports(name)
    const made = {
      provide: 'made',
      inject: [CurrentTransaction],
      useFactory: (current: CurrentTransaction<pg.PoolClient>) => new Reports(current),
    }
    const providers = [made, { provide: 'alias', useExisting: 'made' }]
    await startApp({ pool: fixture.pool, silent: true }, { providers })
    expect(await seen).toMatchObject({ open: true })
  })

  test('one that cannot work is refused, and none is started', async () => {
    const name = fresh()
    const { Reports } = reports(name)
    const broken = reports(fresh(), { scope: { scope: Scope.TRANSIENT } })
    const providers = [Reports, broken.Reports]
    const starting = startApp({ pool: fixture.pool, silent: true }, { providers })
    await expect(starting).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    const started = await fixture.hf.observe.schedules()
    expect(started.map((schedule) => schedule.name)).not.toContain(name)
  })

  test('two methods of one name are refused, also where none is started', async () => {
    const name = fresh()
    const providers = [reports(name).Reports, reports(name).Reports]
    const starting = startApp({ pool: fixture.pool, silent: true, ticks: false }, { providers })
    await expect(starting).rejects.toMatchObject({ code: 'OPTION_INVALID' })
  })

  test('where ticks are off, none is started', async () => {
    const name = fresh()
    const { Reports } = reports(name)
    const pool = fixture.pool
    const { app } = await startApp({ pool, silent: true, ticks: false }, { providers: [Reports] })
    const started = await app.get<Holdfast<unknown>>(HOLDFAST).observe.schedules()
    expect(started.map((schedule) => schedule.name)).not.toContain(name)
  })

  test('settings of the module that there are not are refused', async () => {
    for (const wrong of [{ tics: false }, { answers: { statuses: { LOCK_BUSSY: 404 } } }]) {
      const starting = startApp({ pool: fixture.pool, silent: true, ...wrong } as never, {})
      await expect(starting).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    }
  })

  test('on something that is no method it is refused', () => {
    const place = Tick(often('x')) as (...args: unknown[]) => void
    expect(() => place({}, 'x', undefined)).toThrow(/OPTION_INVALID/)
    expect(() => place(class {}, 'x', { value: () => 1 })).toThrow(/static/)
    expect(() => place(() => 1, { kind: 'method' })).toThrow(/experimentalDecorators/)
  })
})

describe('the end', () => {
  test('waits for work that is under way, then lets go of the pool', async () => {
    const [begun, end] = [deferred<void>(), deferred<void>()]
    const order: string[] = []
    class Work {
      async run(): Promise<void> {
        begun.resolve()
        await end.promise
        order.push('worked')
      }
    }
    decorated(Work, { methods: { run: [Guarded(() => lockKey('nest-end', 'x'))] } })
    const afterClose = (): unknown => order.push('let go')
    const { app } = await startApp(
      { pool: fixture.pool, silent: true, afterClose },
      { providers: [Work] },
    )
    const working = app.get(Work).run()
    await begun.promise
    const closing = app.close().then(() => order.push('closed'))
    // Until it is told to end, nothing else can happen.
    await setImmediate()
    expect(order).toEqual([])
    end.resolve()
    await Promise.all([working, closing])
    expect(order).toEqual(['worked', 'let go', 'closed'])
  })

  test('lets go of the pool also where something does not end', async () => {
    const [begun, end] = [deferred<void>(), deferred<void>()]
    class Work {
      async run(): Promise<void> {
        begun.resolve()
        await end.promise
      }
    }
    decorated(Work, { methods: { run: [Guarded(() => lockKey('nest-stuck', 'x'))] } })
    let freed = 0
    const { app } = await startApp(
      {
        pool: fixture.pool,
        silent: true,
        close: { within: '200 ms', leaveAfter: '300 ms' },
        afterClose: () => (freed += 1),
      },
      { providers: [Work] },
    )
    const working = app.get(Work).run()
    await begun.promise
    const began = performance.now()
    await app.close()
    // One after the other: what a platform waits before SIGKILL has to be longer than both.
    expect(performance.now() - began).toBeGreaterThanOrEqual(490)
    expect(freed).toBe(1)
    end.resolve()
    await working.catch(() => undefined)
  })
})

describe('health', () => {
  test('U9: up, and down from the moment the application begins to end', async () => {
    const seen: unknown[] = []
    class Last {
      readonly health: HoldfastHealthIndicator
      constructor(health: HoldfastHealthIndicator) {
        this.health = health
      }
      async onApplicationShutdown(): Promise<void> {
        seen.push(await this.health.check())
      }
    }
    decorated(Last, { takes: [HoldfastHealthIndicator] })
    const { app } = await startApp({ pool: fixture.pool, silent: true }, { providers: [Last] })
    const health = app.get(HoldfastHealthIndicator)
    expect(await health.check('database')).toEqual({ database: { status: 'up' } })
    await app.close()
    expect(seen).toEqual([{ holdfast: { status: 'down', code: 'HOLDFAST_CLOSING' } }])
  })

  test.each(platforms)('%s: down before any module is destroyed', async (platform) => {
    const seen: unknown[] = []
    class First {
      readonly health: HoldfastHealthIndicator
      constructor(health: HoldfastHealthIndicator) {
        this.health = health
      }
      async onModuleDestroy(): Promise<void> {
        seen.push(await this.health.check())
      }
    }
    decorated(First, { takes: [HoldfastHealthIndicator] })
    const adapter = platform === 'Express' ? ExpressAdapter : FastifyAdapter
    const beforeClose = vi.spyOn(adapter.prototype, 'beforeClose')
    const { app } = await startApp({ pool: fixture.pool, platform }, { providers: [First] })
    expect(await app.get(HoldfastHealthIndicator).check()).toEqual({ holdfast: { status: 'up' } })
    await app.close()
    expect(seen).toEqual([{ holdfast: { status: 'down', code: 'HOLDFAST_CLOSING' } }])
    // What the adapter does itself then is still done.
    expect(beforeClose).toHaveBeenCalledOnce()
    beforeClose.mockRestore()
  })

  test('without HTTP: down when its own module is destroyed', async () => {
    class Standalone {}
    Module({ imports: [HoldfastModule.forRoot({ driver: fromPg(fixture.pool) })] })(Standalone)
    const app = await NestFactory.createApplicationContext(Standalone, { logger: false })
    const health = app.get(HoldfastHealthIndicator)
    expect(await health.check()).toEqual({ holdfast: { status: 'up' } })
    await app.close()
    expect(await health.check()).toMatchObject({ holdfast: { status: 'down' } })
  })

  test('down where the database cannot be had, with its code and nothing else', async () => {
    const pg = await import('pg')
    const pool = new pg.default.Pool({ host: '127.0.0.1', port: 1, password: 'secret' })
    const { app } = await startApp({ pool, silent: true }, {})
    expect(await app.get(HoldfastHealthIndicator).check()).toEqual({
      holdfast: { status: 'down', code: 'CONNECTION_UNAVAILABLE' },
    })
    await pool.end()
  })
})

test('a module without a driver is refused', async () => {
  const starting = startApp({ pool: fixture.pool, driver: undefined as never }, {})
  await expect(starting).rejects.toMatchObject({ code: 'OPTION_INVALID' })
})
