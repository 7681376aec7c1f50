/** One process: does the task it is told, as often as it is told, and ends. */
import { once } from 'node:events'
import { setting } from './settings.ts'
import type { Work } from './work.ts'

type Open = (url: string) => Work

// A process loads what it needs.
const ways: Readonly<Record<string, () => Promise<Open>>> = {
  'postgres by hand': async () => (await import('./postgres/by-hand.ts')).byHand,
  'postgres holdfast': async () => (await import('./postgres/with-holdfast.ts')).withHoldfast,
  'mysql by hand': async () => (await import('./mysql/by-hand.ts')).byHand,
  'mysql holdfast': async () => (await import('./mysql/with-holdfast.ts')).withHoldfast,
  'sqlite by hand': async () => (await import('./sqlite/by-hand.ts')).byHand,
  'sqlite holdfast': async () => (await import('./sqlite/with-holdfast.ts')).withHoldfast,
}
const open = await ways[`${setting('ENGINE')} ${setting('WAY')}`]?.()
if (open === undefined)
  throw new Error('ENGINE is postgres, mysql or sqlite; WAY is by hand or holdfast')
const work = open(setting('DATABASE_URL'))
const stop = new AbortController()
process.on('SIGTERM', () => stop.abort())

const tasks: Readonly<Record<string, () => Promise<unknown>>> = {
  install: async () => await work.install?.(),
  sell: () => work.sell(),
  upload: () => work.upload(),
  order: () => work.order(),
  jobs: () => work.jobs(stop.signal),
  report: () => work.report(stop.signal),
}
const task = tasks[setting('TASK')]
if (task === undefined) throw new Error(`TASK is one of ${Object.keys(tasks).join(', ')}`)

const told = once(process, 'message')
process.send?.('ready')
await told
const times = Number(process.env['TIMES'] ?? 1)
await Promise.all(Array.from({ length: times }, task))
await work.close()
process.disconnect?.()
