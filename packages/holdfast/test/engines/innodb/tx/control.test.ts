import { beforeAll, describe, expect, test } from 'vitest'
import { controlIn, isOpaque } from '../../../../src/engines/innodb/tx/transaction-control.ts'
import { createTransactions } from '../../../../src/tx/index.ts'
import { InnodbSession } from '../../../server-behaviour/innodb/support/innodb-session.ts'
import { eachInnodb } from '../support/each-innodb.ts'

/** Statements of both products. What one of them does not know, it does not run. */
const texts: readonly string[] = [
  'SELECT 1',
  'DO 1',
  'VALUES (1)',
  'TABLE kept',
  '(SELECT 1) UNION (SELECT 2)',
  'SHOW TABLES',
  'WITH a AS (SELECT 1) SELECT * FROM a',
  'SELECT 1 INTO @a',
  'EXPLAIN UPDATE kept SET id = id',
  'ANALYZE SELECT 1',
  'ANALYZE FORMAT=JSON SELECT * FROM kept',
  'ANALYZE UPDATE kept SET id = id',
  'EXPLAIN ANALYZE SELECT 1',
  'ANALYZE DELETE FROM kept WHERE id = 0',
  'ANALYZE TABLE kept',
  'ANALYZE LOCAL TABLE kept',
  'ANALYZE NO_WRITE_TO_BINLOG TABLE kept',
  'CHECK TABLE kept',
  'CHECKSUM TABLE kept',
  'OPTIMIZE TABLE kept',
  'REPAIR TABLE kept',
  'FLUSH STATUS',
  'FLUSH LOCAL STATUS',
  'FLUSH PRIVILEGES',
  'RESET MASTER',
  'SET @a = 1',
  'SET NAMES utf8mb4',
  'SET ROLE NONE',
  'SET DEFAULT ROLE NONE',
  "SET PASSWORD = ''",
  'SET autocommit = 1',
  'SET SESSION autocommit = 1',
  'SET `autocommit` = 1',
  'SET @@session.`AutoCommit` = 1',
  'SET @a = 1, @@autocommit = 1',
  'SET STATEMENT max_statement_time = 9 FOR SELECT 1',
  'SET STATEMENT max_statement_time = 9 FOR CREATE TABLE IF NOT EXISTS made (id INT)',
  'SET STATEMENT max_statement_time = 9 FOR COMMIT',
  'SET STATEMENT sort_buffer_size = 10000, max_statement_time = 9 FOR ANALYZE TABLE kept',
  'SET STATEMENT max_statement_time = 9 FOR SET STATEMENT sort_buffer_size = 10000 FOR TRUNCATE other',
  'SET STATEMENT max_statement_time = 9 FOR BEGIN NOT ATOMIC COMMIT; END',
  "SET STATEMENT max_statement_time = 9 FOR EXECUTE IMMEDIATE 'COMMIT'",
  'CREATE TEMPORARY TABLE IF NOT EXISTS brief (i INT)',
  'CREATE OR REPLACE TEMPORARY TABLE brief (i INT)',
  'DROP TEMPORARY TABLE IF EXISTS brief',
  'CREATE TEMPORARY SEQUENCE numbers',
  'DROP TEMPORARY SEQUENCE numbers',
  'CREATE TABLE IF NOT EXISTS other (id INT)',
  'CREATE TABLE kept (id INT)',
  'DROP TABLE IF EXISTS none',
  'ALTER TABLE other ADD COLUMN v INT',
  'RENAME TABLE other TO another',
  'RENAME TABLE another TO other',
  'TRUNCATE TABLE other',
  'TRUNCATE other',
  'CREATE INDEX by_v ON other (v)',
  'DROP INDEX by_v ON other',
  'CREATE SEQUENCE IF NOT EXISTS s',
  'SELECT NEXT VALUE FOR s',
  'SELECT SETVAL(s, 50)',
  'ALTER SEQUENCE s RESTART 5',
  'DROP SEQUENCE s',
  'CREATE OR REPLACE VIEW seen AS SELECT 1',
  'ALTER VIEW seen AS SELECT 2',
  'DROP VIEW seen',
  'CREATE PROCEDURE one() SELECT 1',
  'CALL one()',
  'DROP PROCEDURE one',
  'CREATE PROCEDURE ends() COMMIT',
  'CALL ends()',
  'CREATE TRIGGER fires BEFORE INSERT ON other FOR EACH ROW SET @x = 1',
  'DROP TRIGGER fires',
  'CREATE EVENT later ON SCHEDULE EVERY 1 DAY DO SELECT 1',
  'DROP EVENT later',
  'CREATE USER IF NOT EXISTS control_user',
  'GRANT SELECT ON *.* TO control_user',
  'REVOKE SELECT ON *.* FROM control_user',
  'DROP USER control_user',
  'LOCK TABLES other WRITE',
  'LOCK TABLE other READ',
  'UNLOCK TABLES',
  'BACKUP STAGE START',
  'BACKUP STAGE END',
  'BACKUP LOCK other',
  'BACKUP UNLOCK',
  'HANDLER other OPEN',
  'HANDLER other READ FIRST',
  'HANDLER other CLOSE',
  'SAVEPOINT o',
  'ROLLBACK TO o',
  'ROLLBACK WORK TO SAVEPOINT o',
  'RELEASE SAVEPOINT o',
  'BEGIN',
  'BEGIN WORK',
  'START TRANSACTION',
  'START TRANSACTION READ ONLY',
  'COMMIT',
  'COMMIT WORK',
  'COMMIT AND CHAIN',
  'ROLLBACK',
  'ROLLBACK AND CHAIN',
  'XA RECOVER',
  "PREPARE st FROM 'COMMIT'",
  'EXECUTE st',
  'DEALLOCATE PREPARE st',
  "EXECUTE IMMEDIATE 'COMMIT'",
  'BEGIN NOT ATOMIC SELECT 1; END',
  'BEGIN NOT ATOMIC COMMIT; END',
  'BEGIN NOT ATOMIC TRUNCATE other; END',
  'BEGIN NOT ATOMIC IF 1 THEN DROP TABLE IF EXISTS none; END IF; END',
  'IF 1 THEN COMMIT; END IF',
  'CASE 1 WHEN 1 THEN COMMIT; END CASE',
  'FOR i IN 1..1 DO COMMIT; END FOR',
  'REPEAT COMMIT; UNTIL 1 END REPEAT',
  '/*! COMMIT */',
  '/*!50000 COMMIT */',
  '/*!50000COMMIT*/',
  '/*M! COMMIT */',
  '/* COMMIT */ SELECT 1',
  '-- x\nCOMMIT',
  '--\u0001 x\nCOMMIT',
  '# x\nCOMMIT',
  "SELECT 'COMMIT; BEGIN'",
  "SELECT '\\'; COMMIT; '",
  "SELECT '\\\\'';COMMIT;'",
  'SELECT "\\"; COMMIT; "',
  'SELECT 1 AS `; COMMIT`',
]

/** Refused although they end nothing here: with tables locked, on the other product, or in another state they would. */
const refusedAnyway = new Set(['UNLOCK TABLES'])

eachInnodb((place) => {
  beforeAll(async () => {
    await using session = await place.session()
    await session.rows(
      'CREATE TABLE kept (id INT AUTO_INCREMENT PRIMARY KEY, told TEXT) ENGINE=InnoDB',
    )
  })

  test('what ends a transaction is known, and nothing else is refused', async () => {
    if (place.client !== 'mysql2') return
    await using watcher = await place.session()
    const wrong: string[] = []
    for (const [at, text] of texts.entries()) {
      // Of its own: what some of them leave behind would be in the way of the next.
      await using session = await InnodbSession.open(place.url())
      await session.all(
        'SET autocommit = 0',
        'SAVEPOINT tripwire',
        `INSERT INTO kept (told) VALUES ('${at}')`,
      )
      const isKnown = await session.rows(text).then(
        () => true,
        (error: { errno?: number }) => error.errno !== 1064,
      )
      const isGone = await session.rows('RELEASE SAVEPOINT tripwire').then(
        () => false,
        (error: { errno?: number }) => error.errno === 1305,
      )
      const isSaved = (await watcher.value(`SELECT COUNT(*) FROM kept WHERE told = '${at}'`)) !== 0
      const quotes = { backslashes: true, ansi: false }
      const says = controlIn(text, quotes)
      const ended = isGone || isSaved
      if (ended && says === undefined && !isOpaque(text, quotes)) wrong.push(`sent: ${text}`)
      if (isKnown && !ended && says !== undefined && !refusedAnyway.has(text))
        wrong.push(`refused: ${text}`)
    }
    expect(wrong).toEqual([])
  })

  const modes = ['', 'ANSI_QUOTES', 'NO_BACKSLASH_ESCAPES', 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES']
  const notes = [
    "it's late; drop by tomorrow",
    "\\'; commit",
    'a\\',
    "'; begin; '",
    '"; rollback; "',
    "\\\\' ; create it",
  ]

  describe.each(modes)('sql_mode %s', (mode) => {
    /** As a client writes it into a text for a session in this mode. */
    const literals = (note: string): readonly string[] => {
      const escaped = mode.includes('NO_BACK') ? note : note.replaceAll('\\', '\\\\')
      const doubled = `'${escaped.replaceAll("'", "''")}'`
      const byBackslash = `'${escaped.replaceAll("'", "\\'")}'`
      const inDouble = `"${escaped.replaceAll('"', '""')}"`
      const all = mode.includes('NO_BACK') ? [doubled] : [doubled, byBackslash]
      return mode.includes('ANSI') ? all : [...all, inDouble]
    }

    test.each(['a transaction', 'a second one', 'one that sets the mode itself'])(
      'what users have written is never refused: in %s',
      async (how) => {
        await using pool = place.pool(1)
        const tx = createTransactions(pool.driver)
        if (how !== 'one that sets the mode itself') {
          const handle = await pool.connect()
          await handle.query(`SET SESSION sql_mode = '${mode}'`)
          await handle.release()
        }
        if (how === 'a second one') await tx.run(async () => 1)
        for (const note of notes) {
          for (const literal of literals(note)) {
            const read = await tx.run(async (inner) => {
              await inner.query(`SET SESSION sql_mode = '${mode}'`)
              return await pool.rows(inner, `SELECT ${literal} AS told`)
            })
            expect(read).toEqual([{ told: note }])
            if (how === 'one that sets the mode itself') continue
            const again = await tx.run(
              async (inner) => await pool.rows(inner, `SELECT ${literal} AS told`),
            )
            expect(again).toEqual([{ told: note }])
          }
        }
      },
    )

    test('control: what ends it by this reading is refused', async () => {
      await using pool = place.pool(1)
      const handle = await pool.connect()
      await handle.query(`SET SESSION sql_mode = '${mode}'`)
      await handle.release()
      const text = mode.includes('NO_BACK')
        ? "BEGIN NOT ATOMIC SELECT '\\'; COMMIT; SELECT '\\'; END"
        : "BEGIN NOT ATOMIC SELECT '\\''; COMMIT; SELECT '\\''; END"
      const told = createTransactions(pool.driver).run(async (inner) => await inner.query(text))
      await expect(told).rejects.toMatchObject({
        code: 'TX_ENDED_INSIDE',
        details: { ended: 'refused' },
      })
    })
  })
})
