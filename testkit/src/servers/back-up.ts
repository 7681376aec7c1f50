import { chown, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { copyDataDirectory } from './copy-data-directory.ts'
import { withClient } from '../create-database.ts'
import type { ServiceAccount } from './service-account.ts'

/** Copies a running server's data into `to`, ready to be started as its standby. */
export async function backUp(task: {
  url: string
  from: string
  to: string
  account: ServiceAccount | undefined
}): Promise<void> {
  const { url, from, to, account } = task
  const label = await withClient(url, async (client) => {
    // Start and stop must happen in one session; a session that ends in between aborts the backup.
    await client.query(`SELECT pg_backup_start('standby', true)`)
    await copyDataDirectory(from, to, account)
    const { rows } = await client.query<{ labelfile: string }>(
      'SELECT labelfile FROM pg_backup_stop(false)',
    )
    return rows[0]?.labelfile ?? ''
  })
  for (const [name, content] of [
    ['backup_label', label],
    ['standby.signal', ''],
  ] as const) {
    await writeFile(join(to, name), content, { mode: 0o600 })
    if (account !== undefined) await chown(join(to, name), account.uid, account.gid)
  }
}
