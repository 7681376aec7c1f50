import {
  barrier,
  innodbBinaries,
  type InnodbServer,
  startInnodb,
  waitUntil,
} from '@holdfast/testkit'
import { existsSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePort } from '../../../../../../testkit/src/servers/free-port.ts'
import type { InnodbDriver } from '../../../../src/engines/innodb/driver.ts'
import { createHoldfast, isHoldfastError, lockKey, migrate } from '../../../../src/mysql.ts'
import { InnodbSession } from '../../../server-behaviour/innodb/support/innodb-session.ts'
import { type Handle, type InnodbClient, openClient } from '../support/innodb-clients.ts'

const provider = '/usr/lib/galera/libgalera_smm.so'

describe.skipIf(innodbBinaries('mariadb-10') === undefined || !existsSync(provider))(
  'a Galera cluster of three nodes',
  () => {
    const nodes: InnodbServer[] = []
    let url = ''
    let first: InnodbClient
    let port = 0
    const key = lockKey('galera', 1)

    const join = async (): Promise<void> => {
      const at = (node: number): number => port + 3 * node
      const own = at(nodes.length)
      const members = nodes.map((_, node) => `127.0.0.1:${at(node)}`)
      const settings = {
        base_host: '127.0.0.1',
        base_port: own,
        'gmcast.listen_addr': `tcp://127.0.0.1:${own}`,
        'ist.recv_addr': `127.0.0.1:${own + 1}`,
        'pc.ignore_sb': true,
      }
      const node = await startInnodb('mariadb-10', {
        'wsrep-on': 'ON',
        'wsrep-provider': provider,
        'wsrep-cluster-address': `gcomm://${members.join(',')}`,
        'wsrep-provider-options': Object.entries(settings)
          .map((setting) => setting.join('='))
          .join(';'),
        'wsrep-node-address': `127.0.0.1:${own}`,
        'wsrep-sst-receive-address': `127.0.0.1:${own + 2}`,
        'binlog-format': 'ROW',
        'innodb-autoinc-lock-mode': '2',
      })
      nodes.push(node)
      await using session = await InnodbSession.open(node.url())
      await waitUntil(`node ${nodes.length} has joined`, async () => {
        const [size] = await session.rows("SHOW STATUS LIKE 'wsrep_cluster_size'")
        const [state] = await session.rows("SHOW STATUS LIKE 'wsrep_local_state'")
        return (Number(size?.['Value']) === nodes.length && state?.['Value'] === '4') || undefined
      })
    }

    beforeAll(async () => {
      port = await freePort('127.0.0.1')
      await join()
      url = (await nodes[0]?.createDatabase()) ?? ''
      first = openClient('mysql2', url)
      await migrate(first.driver)
    }, 120_000)

    afterAll(async () => {
      await first[Symbol.asyncDispose]()
      for (const node of nodes) await node.stop()
    })

    const calls = (
      driver: InnodbDriver<Handle>,
    ): Readonly<Record<string, () => Promise<unknown>>> => {
      const hf = createHoldfast(driver)
      return {
        transaction: () => hf.transaction(async () => 1),
        guard: () => hf.guard(key, async () => 1),
        tryGuard: () => hf.tryGuard(key, async () => 1),
        once: () => hf.once('k', async () => 1),
        'lease of a transaction': () => hf.leases.acquire('l', { ttl: '1 min' }),
        'row in a transaction': () => hf.rows.optimistic(async () => 1),
      }
    }

    /** The codes of the errors, call by call. */
    const codes = async (driver: InnodbDriver<Handle>): Promise<Record<string, unknown>> => {
      const told: Record<string, unknown> = {}
      for (const [name, call] of Object.entries(calls(driver)))
        told[name] = await call().then(
          () => 'resolved',
          (error: unknown) => (isHoldfastError(error) ? error.code : error),
        )
      return told
    }
    const each = (said: string): Record<string, unknown> =>
      Object.fromEntries(Object.keys(calls(first.driver)).map((name) => [name, said]))

    test('is refused by every call when a second node has joined a first that was in use', async () => {
      expect(await codes(first.driver)).toEqual(each('resolved'))
      await join()
      expect(await codes(first.driver)).toEqual(each('ENGINE_SEVERAL_PRIMARIES'))
    }, 120_000)

    test('is refused on each of its nodes, with the next step', async () => {
      await join()
      const { pathname } = new URL(url)
      for (const node of nodes) {
        await using client = openClient('mysql2', node.url(pathname.slice(1)))
        expect(await codes(client.driver)).toEqual(each('ENGINE_SEVERAL_PRIMARIES'))
        await expect(migrate(client.driver)).rejects.toThrow(/primar/)
      }
    }, 120_000)

    test('control: with the refusal off, two nodes lock one row at once, and a limit of one is passed', async () => {
      await using session = await InnodbSession.open(url)
      await session.all(
        'CREATE TABLE room (id INT PRIMARY KEY)',
        'CREATE TABLE booking (id VARCHAR(36) PRIMARY KEY, room INT NOT NULL)',
        'INSERT INTO room VALUES (1)',
      )
      const { pathname } = new URL(url)
      const locked = barrier(2)
      const book = async (node: InnodbServer): Promise<void> => {
        await using client = openClient('mysql2', node.url(pathname.slice(1)))
        const hf = createHoldfast(client.weakened(withoutCluster))
        await hf.transaction(async (tx) => {
          await hf.rows.lock(tx, 'room', [1])
          const [row] = await client.rows(tx, 'SELECT COUNT(*) AS n FROM booking')
          await locked()
          if (Number(row?.['n']) === 0) await tx.query('INSERT INTO booking VALUES (UUID(), 1)')
        })
      }
      await Promise.all(nodes.slice(0, 2).map(book))
      expect(Number(await session.value('SELECT COUNT(*) FROM booking'))).toBe(2)
    })
  },
)

/** Connections whose server does not say that it is one of several. */
function withoutCluster(handle: Handle): Handle {
  return new Proxy(handle, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property)
      if (typeof value !== 'function') return value
      if (property !== 'query') return value.bind(target) as unknown
      return async (options: never) => {
        const [rows, fields] = (await target.query(options)) as unknown as [unknown, unknown]
        const told = Array.isArray(rows)
          ? rows.filter((row: Record<string, unknown>) => row['Variable_name'] !== 'wsrep_on')
          : rows
        return [told, fields]
      }
    },
  })
}
