import type { AddressInfo } from 'node:net'
import { hf, prisma } from './database.ts'
import { createService } from './http-service.ts'
import { settings } from './settings.ts'
import { uploadImage as guarded } from './upload-guarded.ts'
import { uploadImage as unguarded } from './upload-unguarded.ts'

// Before the first request: refuse to run on a server whose locks protect nothing.
await hf.locks.selfTest()

const service = createService(settings.guarded ? guarded : unguarded)
service.listen(settings.port, '127.0.0.1', () => {
  const { port } = service.address() as AddressInfo
  console.log(`listening on port ${port}, ${settings.guarded ? 'guarded' : 'not guarded'}`)
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
