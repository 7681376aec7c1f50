/** Explores what it is sent, one task at a time, in a process of its own; see ../stress/explorer.ts. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exploreTask, type Said } from './explore-task.ts'
import type { Task } from './variants.ts'

export interface WorkerOrder {
  readonly url: string
  readonly elsewhere: string
  readonly task: Task
}

/** How the task ended; undefined if explore() itself threw, which `message` tells. */
export interface WorkerReport {
  readonly said: Said | undefined
  readonly message: string
}

const server = createServer((request, response) => {
  setTimeout(() => response.end('ok'), Number(request.url?.slice(1)))
})
server.listen(0, '127.0.0.1', () => {
  const here = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  process.on('message', ({ url, elsewhere, task }: WorkerOrder) => {
    void (async () => {
      const report = await exploreTask(url, task, { here, elsewhere }).then(
        (said): WorkerReport => ({ said, message: said.message }),
        (error: Error): WorkerReport => ({ said: undefined, message: error.message }),
      )
      process.send?.(report)
    })()
  })
  process.send?.('ready')
})
