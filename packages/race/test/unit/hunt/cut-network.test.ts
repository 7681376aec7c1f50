/** The network of a process that replays: what is refused, what is not, and that all of it comes back. */
import { execFileSync, spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { lookup } from 'node:dns/promises'
import { resolve4 } from 'node:dns'
import { once } from 'node:events'
import { get } from 'node:https'
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import { promisify } from 'node:util'
import { Worker } from 'node:worker_threads'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { cutNetwork } from '../../../src/hunt/record/cut-network.ts'

const portOf = (server: Server): number => (server.address() as AddressInfo).port
const listening = async (): Promise<Server> => {
  const server = createServer((socket) => socket.end('here'))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return server
}
async function reach(port: number): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  const [data] = await once(socket, 'data')
  return String(data)
}

let database: Server
let other: Server
let refused: string[]
let escaped: string[]
let cut: Disposable | undefined
beforeEach(async () => {
  database = await listening()
  other = await listening()
  refused = []
  escaped = []
  cut = cutNetwork({
    database: `postgres://postgres@localhost:${portOf(database)}/test`,
    ownMachine: false,
    refuse: (what) => refused.push(what),
    escape: (what) => escaped.push(what),
  })
})
afterEach(() => {
  cut?.[Symbol.dispose]()
  database.close()
  other.close()
})

/** What leaves the process, by imports that were made before. */
const ways: Readonly<Record<string, () => Promise<unknown>>> = {
  'a connection to 127.0.0.1:': () => reach(portOf(other)),
  'a connection to /var/run/docker.sock': () => once(connect('/var/run/docker.sock'), 'connect'),
  'a connection to example.invalid:443': () => once(get('https://example.invalid/'), 'response'),
  'a connection to 192.0.2.1:80': () => fetch('http://192.0.2.1/'),
  'a datagram': () =>
    promisify((done: (error: Error | null) => void) =>
      createSocket('udp4').unref().send('x', 9, '192.0.2.1', done),
    )(),
  'the name example.invalid': () => lookup('example.invalid'),
  'the name example.test': () => promisify(resolve4)('example.test'),
  'the program true': async () => spawn('true'),
  'the program date': async () => execFileSync('date'),
}

test.each(Object.entries(ways))('%s… is refused', async (what, leave) => {
  await expect(leave()).rejects.toThrow(/hunt has refused|fetch failed/)
  expect(refused.some((one) => one.startsWith(what))).toBe(true)
})

test('the control: afterwards all of it is as it was', async () => {
  cut?.[Symbol.dispose]()
  expect(await reach(portOf(other))).toBe('here')
  expect(String(execFileSync('echo', ['x']))).toBe('x\n')
  expect(await once(spawn('true'), 'exit')).toEqual([0, null])
  expect(await lookup('localhost')).toBeDefined()
  expect(refused).toEqual([])
})

test('the database and servers that listen from then on are reached', async () => {
  expect(await reach(portOf(database))).toBe('here')
  const own = await listening()
  expect(await reach(portOf(own))).toBe('here')
  own.close()
  expect(await lookup('localhost')).toBeDefined()
  expect(refused).toEqual([])
})

test('a worker thread is told: nothing keeps it in', async () => {
  await once(new Worker('', { eval: true }), 'exit')
  expect(escaped).toEqual(['a worker thread'])
})
