/** One ambient transaction with `@nestjs-cls/transactional`. */
import { ClsPluginTransactional, Transactional, TransactionHost } from '@nestjs-cls/transactional'
import { lockKey } from 'holdfast'
import { ClsModule } from 'nestjs-cls'
import type pg from 'pg'
import { describe, expect, test } from 'vitest'
import { fresh, ledgerFixture } from '../../../holdfast/test/support/ledger-fixture.ts'
import {
  clsAdapter,
  clsTransactions,
  CurrentTransaction,
  Guarded,
  HOLDFAST,
  Once,
} from '../../src/index.ts'
import { decorated } from '../support/decorate.ts'
import { startApp } from '../support/nest-app.ts'

const fixture = ledgerFixture('CREATE TABLE sale (id text, pid int)')

async function sales(id: string): Promise<number[]> {
  const { rows } = await fixture.observer.query<{ pid: number }>(
    'SELECT pid FROM sale WHERE id = $1',
    [id],
  )
  return rows.map(({ pid }) => pid)
}

type Adapter = ConstructorParameters<typeof ClsPluginTransactional>[0]['adapter']

/** As adapters of others are: they open transactions on the pool, and Holdfast does not know. */
const foreign: Adapter = {
  connectionToken: HOLDFAST,
  optionsFactory: () => ({
    async wrapWithTransaction(_options, body, setTx) {
      const client = await fixture.pool.connect()
      try {
        await client.query('BEGIN')
        setTx(client)
        const result: unknown = await body()
        await client.query('COMMIT')
        return result
      } catch (error) {
        await client.query('ROLLBACK')
        throw error
      } finally {
        client.release()
      }
    },
    getFallbackInstance: () => fixture.pool,
  }),
}

async function open(adapter: Adapter = clsAdapter<pg.PoolClient>() as Adapter) {
  /** Knows `TransactionHost` only, as repositories do. */
  class Repository {
    readonly host: TransactionHost
    constructor(host: TransactionHost) {
      this.host = host
    }
    async add(id: string): Promise<void> {
      const tx = this.host.tx as pg.PoolClient
      await tx.query('INSERT INTO sale VALUES ($1, pg_backend_pid())', [id])
    }
  }
  decorated(Repository, { takes: [TransactionHost] })
  class Shop {
    readonly repository: Repository
    readonly current: CurrentTransaction<pg.PoolClient>
    constructor(repository: Repository, current: CurrentTransaction<pg.PoolClient>) {
      this.repository = repository
      this.current = current
    }
    async guarded(id: string): Promise<void> {
      await this.repository.add(id)
      await this.current.tx.query('INSERT INTO sale VALUES ($1, pg_backend_pid())', [id])
      if (id.startsWith('fails')) throw new Error('mine')
    }
    async once(id: string): Promise<string> {
      await this.repository.add(id)
      return id
    }
    async transactional(id: string): Promise<void> {
      await this.repository.add(id)
      await this.guarded(id)
      await this.once(id)
      await this.once(id)
      if (id.startsWith('late')) throw new Error('mine')
    }
  }
  decorated(Shop, {
    takes: [Repository, CurrentTransaction],
    methods: {
      guarded: [Guarded((id: string) => lockKey('nest-cls', id))],
      once: [Once((id: string) => `cls:${id}`)],
      transactional: [Transactional()],
    },
  })
  const cls = ClsModule.forRoot({ plugins: [new ClsPluginTransactional({ adapter })] })
  const { app } = await startApp(
    {
      pool: fixture.pool,
      silent: true,
      ambient: clsTransactions(TransactionHost),
    },
    { imports: [cls], providers: [Repository, Shop] },
  )
  return app.get(Shop)
}

describe('our adapter', () => {
  test('U9: a repository finds the transaction that @Guarded and @Once opened', async () => {
    const shop = await open()
    const id = fresh()
    await shop.guarded(id)
    const [first, ...others] = await sales(id)
    expect(others).toEqual([first])
    expect([await shop.once(id), await shop.once(id)]).toEqual([id, id])
    expect(await sales(id)).toHaveLength(3)
  })

  test('U9: @Guarded and @Once join @Transactional(), and are undone with it', async () => {
    const shop = await open()
    const id = fresh()
    await shop.transactional(id)
    const [first, ...others] = await sales(id)
    expect(others).toEqual([first, first, first])
    const late = `late ${fresh()}`
    await expect(shop.transactional(late)).rejects.toThrow('mine')
    expect(await sales(late)).toEqual([])
    const fails = `fails ${fresh()}`
    await expect(shop.guarded(fails)).rejects.toThrow('mine')
    expect(await sales(fails)).toEqual([])
  })

  test('outside of a transaction there is none, unless another client was given', async () => {
    const shop = await open()
    await expect(shop.repository.add('x')).rejects.toMatchObject({ code: 'TX_HANDLE_ENDED' })
    const free = await open(clsAdapter(() => fixture.pool as unknown as pg.PoolClient) as Adapter)
    const id = fresh()
    await free.repository.add(id)
    expect(await sales(id)).toHaveLength(1)
    expect(free.current.isOpen).toBe(false)
  })
})

describe('an adapter of others', () => {
  test('what it opened is joined', async () => {
    const shop = await open(foreign)
    const id = fresh()
    await shop.transactional(id)
    const [first, ...others] = await sales(id)
    expect(others).toEqual([first, first, first])
  })

  test('it does not know what we open, and that is refused', async () => {
    const shop = await open(foreign)
    const id = fresh()
    await expect(shop.guarded(id)).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    await expect(shop.once(id)).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    expect(await sales(id)).toEqual([])
  })
})
