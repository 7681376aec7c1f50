import { type PostgresServer, sendSignal, waitUntil } from '@holdfast/testkit'
import { rowsOf } from './ask.ts'

/** Makes a standby the primary, whatever happens to it meanwhile. */
export async function promoted(standby: PostgresServer): Promise<void> {
  for (const pid of standby.processes()) sendSignal(pid, 'SIGCONT')
  await waitUntil(
    'the standby is promoted',
    async () => {
      try {
        if (!standby.running) await standby.startAgain()
        const [row] = await rowsOf<{ done: boolean }>(
          standby.url(),
          'SELECT CASE WHEN pg_is_in_recovery() THEN pg_promote(true, 20) ELSE true END AS done',
        )
        return row?.done === true ? true : undefined
      } catch {
        return undefined
      }
    },
    { limitMs: 60_000, everyMs: 10 },
  )
}
