import type { AddressInfo } from 'node:net'
import { auditTrail } from './audit-trail.ts'
import { installLedger, prisma } from './database.ts'
import { createService } from './http-service.ts'
import { settings } from './settings.ts'
import * as ledger from './shop-ledger.ts'
import * as naive from './shop-naive.ts'

if (settings.ledger) await installLedger()

const service = settings.ledger
  ? createService(ledger, auditTrail)
  : createService(naive, undefined)
service.listen(settings.port, '127.0.0.1', () => {
  const { port } = service.address() as AddressInfo
  console.log(`listening on port ${port}, ${settings.ledger ? 'on the ledger' : 'naive'}`)
  process.send?.({ port })
})

let leaving = false

function leave(): void {
  if (leaving) return
  leaving = true
  service.close(() => void prisma.$disconnect())
  // The listener below would keep the process alive for its parent.
  if (process.connected) process.disconnect()
}

process.once('SIGTERM', leave)
// Started by another process, such as the demo: end with it, however it ended.
process.once('disconnect', leave)
