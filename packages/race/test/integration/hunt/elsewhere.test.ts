/** A call that charges a card at another machine: hunted in many times, and charged once. */
import { once } from 'node:events'
import { request } from 'node:http'
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import { Worker } from 'node:worker_threads'
import { withClient } from '@holdfast/testkit'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import { hunt, type HuntOptions, type HuntReport, instrument } from '../../../src/hunt.ts'

instrument(pg)

let url: string
let pool: pg.Pool
let bank: Server
let charges = 0
beforeAll(async () => {
  url = (await testDatabase()).directUrl
  await withClient(url, (client) =>
    client.query(`CREATE TABLE orders (id int PRIMARY KEY, status text NOT NULL);
                  CREATE TABLE payments (id serial PRIMARY KEY, order_id int NOT NULL, receipt text NOT NULL);
                  INSERT INTO orders VALUES (1, 'open')`),
  )
  pool = new pg.Pool({ connectionString: url })
  bank = createServer((socket) => {
    socket.once('data', () => {
      charges += 1
      socket.end('HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\nok42')
    })
  })
  await new Promise<void>((resolve) => {
    bank.listen(0, '0.0.0.0', resolve)
  })
})
beforeEach(() => {
  charges = 0
})
afterAll(async () => {
  bank.close()
  await pool.end()
})

/** A name of this machine that is not known as one. */
const bankUrl = (): string => `http://0.0.0.0:${(bank.address() as AddressInfo).port}/charge`

async function pay(id: number, charge: () => Promise<string>): Promise<object> {
  const { rows } = await pool.query('SELECT status FROM orders WHERE id = $1', [id])
  if (rows[0]?.status !== 'open') throw new Error('not open')
  const receipt = await charge()
  const insert = 'INSERT INTO payments (order_id, receipt) VALUES ($1, $2)'
  await pool.query(insert, [id, receipt])
  await pool.query(`UPDATE orders SET status = 'paid' WHERE id = $1`, [id])
  return { receipt }
}

const byFetch = async (): Promise<string> => (await fetch(bankUrl(), { method: 'POST' })).text()
const byHttp = (): Promise<string> =>
  new Promise((resolve, reject) => {
    request(bankUrl(), { method: 'POST' }, (response) => {
      response.resume().once('end', () => resolve('ok'))
    })
      .once('error', reject)
      .end()
  })

function huntPay(
  charge: () => Promise<string>,
  options: Pick<HuntOptions, 'elsewhere'> = {},
): Promise<HuntReport> {
  return hunt({ url, ...options, suite: ({ call }) => call('pay', (id) => pay(id, charge), 1) })
}

test('what was answered in the recording is the answer from then on', async () => {
  const { fetch: before } = globalThis
  const report = await huntPay(byFetch)
  expect(report.pairs).toMatchObject([{ name: 'pay × itself', verdict: 'proven' }])
  expect(charges).toBe(1)
  expect(globalThis.fetch).toBe(before)
})

test('the control: with elsewhere: send every run charges the card', async () => {
  const report = await huntPay(byFetch, { elsewhere: 'send' })
  expect(report.pairs).toMatchObject([{ verdict: 'proven' }])
  expect(charges).toBeGreaterThan(5)
})

test('so is what a client of node:http was answered, whatever it reads', async () => {
  const report = await huntPay(byHttp)
  expect(report.pairs).toMatchObject([{ name: 'pay × itself', verdict: 'proven' }])
  expect(charges).toBe(1)
})

/** A protocol of its own, as mail and queues have. */
const bySocket = (): Promise<string> =>
  new Promise((resolve, reject) => {
    const { port } = bank.address() as AddressInfo
    connect(port, '0.0.0.0')
      .once('data', () => resolve('ok'))
      .once('error', reject)
      .write('charge')
  })

test('a connection that is no request is refused, and the call is in no pair', async () => {
  const report = await huntPay(bySocket)
  expect(charges).toBe(1)
  expect(report.pairs).toEqual([])
  expect(report.calls[0]?.unusable).toMatch(/it wants a connection to 0\.0\.0\.0:\d+, which/)
})

test('whoever does without it is hunted in, and it is told', async () => {
  const report = await huntPay(() => bySocket().catch(() => 'later'))
  expect(charges).toBe(1)
  expect(report.pairs).toMatchObject([{ verdict: 'proven' }])
  expect(report.notes).toEqual([expect.stringMatching(/connection to 0\.0\.0\.0:\d+ was refused/)])
})

test('what nothing keeps in is not decided', async () => {
  const byWorker = async (): Promise<string> => {
    const worker = new Worker('', { eval: true })
    await once(worker, 'exit')
    return 'ok'
  }
  const report = await huntPay(byWorker)
  expect(report.pairs).toMatchObject([
    { verdict: 'undecided', because: expect.stringContaining('a worker thread') },
  ])
})
