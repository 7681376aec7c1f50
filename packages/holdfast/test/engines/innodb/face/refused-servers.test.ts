import { innodbBinaries, startInnodb } from '@holdfast/testkit'
import { describe, expect, test } from 'vitest'
import { createHoldfast, lockKey, migrate } from '../../../../src/mysql.ts'
import { InnodbSession } from '../../../server-behaviour/innodb/support/innodb-session.ts'
import { openClient } from '../support/innodb-clients.ts'

/** Servers of their own: what is set here is for everybody on them. */
describe.skipIf(innodbBinaries('mariadb-10') === undefined)('a server', () => {
  test('that takes no writes is refused until it does', async () => {
    await using server = await startInnodb('mariadb-10')
    const url = await server.createDatabase()
    await using session = await InnodbSession.open(url)
    await using pool = openClient('mysql2', url)
    await migrate(pool.driver)
    await session.all(
      'CREATE TABLE t (id INT PRIMARY KEY) ENGINE=InnoDB',
      "CREATE USER app@'%'",
      "GRANT ALL ON *.* TO app@'%'",
      "REVOKE READ ONLY ADMIN, SUPER ON *.* FROM app@'%'",
      'SET GLOBAL read_only = ON',
    )
    const refused = { code: 'LOCK_ON_STANDBY' }
    // Root may write all the same: nobody on the primary would see its lock.
    await using fresh = openClient('mysql2', url)
    const byRoot = createHoldfast(fresh.driver)
    await expect(byRoot.guard(lockKey('r', 1), async () => 1)).rejects.toMatchObject(refused)
    const locking = byRoot.transaction(async (tx) => byRoot.rows.lock(tx, 't', [1]))
    await expect(locking).rejects.toMatchObject(refused)
    await session.rows('SET GLOBAL read_only = OFF')
    expect(await byRoot.guard(lockKey('r', 1), async () => 2)).toBe(2)
    // What was known to be a primary becomes a replica.
    await using app = openClient('mysql2', url.replace('root@', 'app@'))
    const byApp = createHoldfast(app.driver)
    expect(await byApp.guard(lockKey('r', 1), async () => 3)).toBe(3)
    await session.rows('SET GLOBAL read_only = ON')
    await expect(byApp.guard(lockKey('r', 1), async () => 4)).rejects.toMatchObject(refused)
    await session.rows('SET GLOBAL read_only = OFF')
    expect(await byApp.guard(lockKey('r', 1), async () => 5)).toBe(5)
  })

  test('that is older than what we support is refused', async () => {
    // A real one that says so of itself: nothing else is looked at.
    await using server = await startInnodb('mariadb-10', { version: '10.6.18-MariaDB' })
    await using pool = openClient('mysql2', await server.createDatabase())
    await expect(migrate(pool.driver)).rejects.toMatchObject({
      code: 'ENGINE_VERSION',
      details: { subject: 'mariadb 10.6' },
    })
  })
})
