import type { AddressInfo } from 'node:net'
import { serve } from '@hono/node-server'
import { pool } from './database.ts'
import { createService } from './http-service.ts'
import { ledger } from './ledger.ts'
import { naive } from './naive.ts'
import { settings } from './settings.ts'

const service = createService(settings.way === 'holdfast' ? ledger : naive)
const server = serve(
  { fetch: service.fetch, port: settings.port, hostname: '127.0.0.1' },
  ({ port }: AddressInfo) => {
    console.log(`listening on port ${port}, ${settings.way}`)
    process.send?.({ port })
  },
)

let leaving = false

function leave(): void {
  if (leaving) return
  leaving = true
  server.close(() => void pool.end())
  // The listener below would keep the process alive for its parent.
  if (process.connected) process.disconnect()
}

process.once('SIGTERM', leave)
// Started by another process, such as the demo: end with it, however it ended.
process.once('disconnect', leave)
