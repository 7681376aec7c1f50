/** The service is hunted from one upload, far from the quota: what counts and inserts is proven to race, the guard is refuted. */
import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import pg from 'pg'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { testDatabase } from '../../../packages/holdfast/test/support/database.ts'
import { hunt, type HuntReport, instrument } from '../../../packages/race/src/hunt.ts'
import type { Upload } from '../src/http-service.ts'

instrument(pg)

let url: string
const closing: (() => Promise<void>)[] = []
beforeAll(async () => {
  url = (await testDatabase()).directUrl
  const pool = new pg.Pool({ connectionString: url })
  await pool.query(await readFile(new URL('../prisma/schema.sql', import.meta.url), 'utf8'))
  await pool.end()
  process.env['DATABASE_URL'] = url
  // Who is told to come back says so after a time, which no order decides.
  process.env['WAIT_MS'] = '60000'
})
afterAll(async () => {
  for (const close of closing) await close()
})

/** As in two processes of the service: each has its client and its Holdfast, and its own queue in memory. */
async function twoOf(load: () => Promise<{ readonly uploadImage: Upload }>): Promise<Upload> {
  const idle: Upload[] = []
  for (const _ of ['one', 'other']) {
    vi.resetModules()
    const { uploadImage } = await load()
    const { prisma } = await import('../src/database.ts')
    closing.push(() => prisma.$disconnect())
    // What is done once for each client is done by now.
    for (let n = 0; n < 3; n += 1) {
      await uploadImage({ id: randomUUID(), userId: 'warm', byteSize: 1 })
    }
    idle.push(uploadImage)
  }
  const { QuotaExceeded } = await import('../src/quota.ts')
  return async (image) => {
    const upload = idle.shift() as Upload
    try {
      await upload(image)
    } catch (error) {
      // Each has a class of its own; the service knows the last one.
      const used: unknown = Reflect.get(error as Error, 'usedBytes')
      throw typeof used === 'number' ? new QuotaExceeded(used) : error
    } finally {
      idle.unshift(upload)
    }
  }
}

/** The suite: somebody uploads a megabyte of ten. */
async function huntIn(upload: Upload): Promise<HuntReport> {
  const { createService } = await import('../src/http-service.ts')
  const service: Server = createService(upload)
  await new Promise<void>((resolve) => {
    service.listen(0, '127.0.0.1', resolve)
  })
  const { port } = service.address() as AddressInfo
  const body = JSON.stringify({ byteSize: 1_000_000 })
  try {
    return await hunt({
      url,
      // A busy machine is no reason to leave orders out.
      budget: { pairMs: 40_000 },
      suite: async () => {
        const to = `http://127.0.0.1:${port}/users/ann/images`
        expect((await fetch(to, { method: 'POST', body })).status).toBe(201)
      },
    })
  } finally {
    service.close()
  }
}

test('the control: without the guard the race is proven, at the edge of the quota', async () => {
  const { pairs } = await huntIn(await twoOf(() => import('../src/upload-unguarded.ts')))
  expect(pairs).toMatchObject([{ name: 'POST /users/ann/images × itself', verdict: 'proven' }])
  expect(pairs[0]?.from).toEqual([expect.stringMatching(/ran \d+ times|byteSize/)])
})

test('with the guard every order was run, and none of them races', {
  timeout: 120_000,
}, async () => {
  const { pairs } = await huntIn(await twoOf(() => import('../src/upload-guarded.ts')))
  expect(pairs.map(({ name, verdict, because }) => [name, verdict, because])).toEqual([
    ['POST /users/ann/images × itself', 'refuted', undefined],
  ])
  expect(pairs[0]?.from).toContainEqual(expect.stringMatching(/ran \d+ times|byteSize/))
})
