/** Started by `hunt -- <command>` and by tests that it has written: proves, and tells it through the channel. */
import { type AgainTask, proveAgain } from './command/prove-again.ts'
import { proveRecording, type ProvingTask } from './command/prove-recording.ts'
import type { FromProver } from './command/processes.ts'
import { explore } from './explore.ts'
import { record } from './record.ts'

const tell = (message: FromProver): Promise<void> =>
  new Promise((resolve) => {
    process.send?.(message, () => resolve())
  })

process.once('message', (task: ProvingTask | AgainTask) => {
  const engine = { explore, record }
  const proved =
    'again' in task
      ? proveAgain(task, engine)
      : proveRecording(task, engine, (progress) => void tell({ kind: 'progress', progress }))
  proved
    .then(
      (report) => tell({ kind: 'report', report }),
      (error: unknown) =>
        tell({ kind: 'failed', message: error instanceof Error ? error.message : String(error) }),
    )
    // The application may have left anything open.
    .finally(() => process.exit())
})

// The command is gone: rows are put back, as at the end of a terminal.
process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'))
