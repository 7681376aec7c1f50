/** The smoke test, all of it in a worker thread. */
import { Worker } from 'node:worker_threads'

const thread = new Worker(new URL('./main.mjs', import.meta.url))
await new Promise((resolve, reject) => {
  thread.on('error', reject)
  thread.on('exit', (code) => (code === 0 ? resolve() : reject(new Error(`exit code ${code}`))))
})
