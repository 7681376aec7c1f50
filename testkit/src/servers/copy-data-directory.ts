import { chown, copyFile, mkdir, readdir, readlink, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { ServiceAccount } from './service-account.ts'

/** Left out of a base backup, as PostgreSQL's manual says: they belong to the running server. */
const ownFiles: ReadonlySet<string> = new Set([
  'postmaster.pid',
  'postmaster.opts',
  'pg_internal.init',
])

/** Kept as empty folders: what is in them is rebuilt, or streamed from the primary. */
const emptied: ReadonlySet<string> = new Set([
  'pg_wal',
  'pg_replslot',
  'pg_dynshmem',
  'pg_notify',
  'pg_serial',
  'pg_snapshots',
  'pg_stat_tmp',
  'pg_subtrans',
])

/**
 * Copies the data directory of a *running* server between `pg_backup_start` and `pg_backup_stop`.
 * Files may change or vanish meanwhile; WAL replay repairs the first and does not need the second.
 * We do this ourselves because the server packages for PostgreSQL 16 and later come without
 * `pg_basebackup`, and the one of another major version refuses to talk to them.
 */
export async function copyDataDirectory(
  from: string,
  to: string,
  account: ServiceAccount | undefined,
): Promise<void> {
  await makeFolder(to, account)
  await copyEntries(from, to, account, true)
  await makeFolder(join(to, 'pg_wal', 'archive_status'), account)
}

async function copyEntries(
  from: string,
  to: string,
  account: ServiceAccount | undefined,
  atTop: boolean,
): Promise<void> {
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const source = join(from, entry.name)
    const target = join(to, entry.name)
    if (ownFiles.has(entry.name) || entry.name.startsWith('pgsql_tmp')) continue
    if (entry.isDirectory()) {
      await makeFolder(target, account)
      if (atTop && emptied.has(entry.name)) continue
      await ifStillThere(async () => {
        await copyEntries(source, target, account, false)
      })
    } else {
      await ifStillThere(async () => {
        if (entry.isSymbolicLink()) await symlink(await readlink(source), target)
        else await copyFile(source, target)
        if (account !== undefined) await chown(target, account.uid, account.gid)
      })
    }
  }
}

async function makeFolder(path: string, account: ServiceAccount | undefined): Promise<void> {
  // The top may be there already, as a file system of its own.
  await mkdir(path, { mode: 0o700, recursive: true })
  if (account !== undefined) await chown(path, account.uid, account.gid)
}

async function ifStillThere(copy: () => Promise<void>): Promise<void> {
  try {
    await copy()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}
