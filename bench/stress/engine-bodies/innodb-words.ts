import type { Vocabulary } from './model.ts'

const entries: Vocabulary['entries'] = [
  [38, 'guard'],
  [18, 'tx.run'],
  [16, 'tx.run, repeatable read'],
  [8, 'rows.optimistic'],
  [6, 'withVersionCheck'],
  [8, 'once'],
  [4, 'transactionHandler'],
  [4, 'transactional tick'],
]

/** As they are written by hand, by ORMs and by migration tools; and what commits before it is done. */
const controls: Vocabulary['controls'] = [
  [5, 'BEGIN'],
  [2, 'begin work'],
  [2, 'START TRANSACTION'],
  [1, 'START TRANSACTION WITH CONSISTENT SNAPSHOT'],
  [1, '/* helper */ BEGIN'],
  [6, 'COMMIT'],
  [2, 'commit'],
  [1, 'COMMIT WORK'],
  [1, '-- done\nCOMMIT'],
  [1, '# done\nCOMMIT'],
  [1, '/*! COMMIT */'],
  [1, '/*!50000 COMMIT */'],
  [1, '/* orm */ commit;'],
  [2, 'COMMIT AND CHAIN'],
  [1, 'COMMIT RELEASE'],
  [6, 'ROLLBACK'],
  [2, 'rollback'],
  [2, 'ROLLBACK AND CHAIN'],
  [1, 'ROLLBACK WORK AND NO CHAIN'],
  [3, 'ROLLBACK; BEGIN'],
  [3, 'COMMIT; BEGIN'],
  [1, 'SELECT 1; COMMIT'],
  [1, "SELECT 'it''s; '; COMMIT"],
  [1, 'SELECT 1 AS `;`; COMMIT'],
  [1, "SELECT 'a\\''; COMMIT; SELECT '"],
  [1, "SELECT 'a\\'; COMMIT; SELECT '"],
  [3, 'SET autocommit = 1'],
  [1, 'SET @@autocommit = ON'],
  [1, "SET @a = 'x;', @@session.autocommit = 1"],
  [1, 'SET autocommit = 0'],
  [4, 'CREATE TABLE IF NOT EXISTS made (id INT)'],
  [1, 'ALTER TABLE made COMMENT "x"'],
  [1, 'TRUNCATE made'],
  [1, 'DROP TABLE IF EXISTS nothing'],
  [1, 'DROP TABLE nothing'],
  [1, 'CREATE OR REPLACE VIEW seen AS SELECT 1 AS a'],
  [1, 'CREATE INDEX made_too ON nothing (id)'],
  [1, 'RENAME TABLE nothing TO something'],
  [1, 'ANALYZE TABLE made'],
  [1, 'LOCK TABLES written WRITE'],
  [1, 'UNLOCK TABLES'],
  [1, "XA START 'a'"],
  [1, "XA END 'a'"],
]

/** In a procedure or a prepared text. Some begin another transaction behind it, as if nothing had been. */
const hidden: Vocabulary['hidden'] = [
  [4, 'CALL ends()'],
  [3, 'CALL ends_and_begins()'],
  [2, 'CALL rolls_back()'],
  [1, 'CALL makes_a_table()'],
  [1, "PREPARE ending FROM 'COMMIT'; EXECUTE ending"],
]

const lookAlikes: Vocabulary['lookAlikes'] = [
  [1, "SELECT 'COMMIT' AS a"],
  [1, "SELECT '; ROLLBACK; BEGIN' AS a"],
  [1, 'SELECT 1 AS a /* ; COMMIT */'],
  [1, 'SELECT 1 AS a -- ; ROLLBACK'],
  [1, 'SELECT 1 AS `; COMMIT`'],
  [1, "SELECT 'it''s; COMMIT' AS a"],
  [1, 'SELECT 1 AS commit_count'],
  [1, 'CREATE TEMPORARY TABLE IF NOT EXISTS passing (id INT)'],
  [1, 'DROP TEMPORARY TABLE IF EXISTS passing'],
  [2, 'CALL harmless()'],
  [1, 'DO 0'],
]

/** `deadlock` and `old snapshot` end the transaction, and so does `lock table full`; a wait that ends may. */
const errors: Vocabulary['errors'] = [
  [8, 'deadlock'],
  [4, 'old snapshot'],
  [3, 'lock wait'],
  [3, 'nowait'],
  [2, 'duplicate'],
  [1, 'no such table'],
  [1, 'killed statement'],
]

const settings: Vocabulary['settings'] = [
  [2, 'SET SESSION innodb_lock_wait_timeout = 7'],
  [1, "SET SESSION sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'"],
  [1, "SET time_zone = '+05:00'"],
  [1, 'SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE'],
  [1, 'SET SESSION TRANSACTION READ ONLY'],
  [1, "SET completion_type = 'CHAIN'"],
  [1, 'SET @mine = 1'],
]

const mariadbOnly: Vocabulary = {
  entries,
  hasServer: true,
  controls: [
    ...controls,
    [1, '/*M! COMMIT */'],
    [1, 'SET STATEMENT max_statement_time = 9 FOR COMMIT'],
    [1, 'CREATE SEQUENCE IF NOT EXISTS numbers'],
  ],
  hidden: [
    ...hidden,
    [1, "EXECUTE IMMEDIATE 'COMMIT'"],
    [1, "EXECUTE IMMEDIATE CONCAT('COM', 'MIT')"],
    [1, 'BEGIN NOT ATOMIC CALL ends(); END'],
  ],
  lookAlikes: [...lookAlikes, [1, 'BEGIN NOT ATOMIC SELECT 1 AS a; END']],
  errors,
  settings,
}

export const innodbWords: Readonly<Record<'mariadb' | 'mysql', Vocabulary>> = {
  mariadb: mariadbOnly,
  mysql: { entries, hasServer: true, controls, hidden, lookAlikes, errors, settings },
}
