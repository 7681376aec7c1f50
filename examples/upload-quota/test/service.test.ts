import { readFile } from 'node:fs/promises'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fromPg } from '../../../packages/holdfast/src/drivers/pg.ts'
import { createHoldfast, lockKey } from '../../../packages/holdfast/src/index.ts'
import { testDatabase } from '../../../packages/holdfast/test/support/database.ts'
import { type Service, startService } from '../demo/start-service.ts'
import { capBytes } from '../src/quota.ts'
import { fromSource } from './from-source.ts'

let service: Service
let pool: pg.Pool

beforeAll(async () => {
  const { url } = await testDatabase()
  pool = new pg.Pool({ connectionString: url })
  await pool.query(await readFile(new URL('../prisma/schema.sql', import.meta.url), 'utf8'))
  service = await startService(url, {
    WAIT_MS: '100',
    NODE_OPTIONS: `--import=${fromSource}`,
  })
})

afterAll(async () => {
  await service?.stop()
  await pool?.end()
})

async function post(user: string, body: string): Promise<Response> {
  return fetch(`${service.url}/users/${user}/images`, { method: 'POST', body })
}

const upload = (user: string, byteSize: number): Promise<Response> =>
  post(user, JSON.stringify({ byteSize }))

describe('the service', () => {
  test('saves an image that fits and refuses one that does not', async () => {
    const saved = await upload('ann', capBytes)
    expect(saved.status).toBe(201)
    const { id } = (await saved.json()) as { id: string }
    const { rows } = await pool.query('SELECT user_id, byte_size FROM user_image WHERE id = $1', [
      id,
    ])
    expect(rows).toEqual([{ user_id: 'ann', byte_size: capBytes }])

    const refused = await upload('ann', 1)
    expect(refused.status).toBe(413)
    expect(await refused.json()).toEqual({ error: 'over-quota', usedBytes: capBytes, capBytes })
  })

  test('tells the client to come back when the lock is not free in time', async () => {
    const holder = await pool.connect()
    await holder.query('BEGIN')
    await createHoldfast(fromPg(pool)).locks.acquire(holder, lockKey('image-upload', 'bob'))
    const busy = await upload('bob', 1)
    expect(busy.status).toBe(503)
    expect(busy.headers.get('retry-after')).toBe('1')
    // Another user does not notice.
    expect((await upload('cid', 1)).status).toBe(201)

    await holder.query('COMMIT')
    holder.release()
    expect((await upload('bob', 1)).status).toBe(201)
  })

  test.each(['', '{}', '{"byteSize":"1"}', '{"byteSize":0}', '{"byteSize":1e10}', 'null', '['])(
    'refuses the body %j',
    async (body) => {
      expect((await post('ann', body)).status).toBe(400)
    },
  )

  test('knows one path and one method', async () => {
    expect((await fetch(`${service.url}/users`)).status).toBe(404)
    expect((await fetch(`${service.url}/users/ann/images`)).status).toBe(405)
  })
})
