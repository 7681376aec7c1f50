import { rowNameType, shownType } from '../schema/own-table.ts'
import type { OwnTables, TableTexts } from '../tx/short-call.ts'

/**
 * Keys of `once`. A row is the lock of its key, and what is remembered of it: whoever has the work writes it and so keeps
 * it until COMMIT. One that is there and not `done` says nothing: its work was undone, and the row was not.
 */
export const onceTables: OwnTables<'once'> = {
  once: {
    table: 'holdfast_once',
    columns: {
      name: rowNameType,
      scope: shownType,
      once_key: shownType,
      // Who has written it last, by which others see who has it; `stamp` says which call that was.
      seq: 'BIGINT NOT NULL',
      stamp: 'BIGINT NOT NULL',
      conn: 'BIGINT NOT NULL',
      since: 'BIGINT NOT NULL',
      done: 'SMALLINT NOT NULL',
      // SHA-256 of what came with the key, if the caller compares it.
      fingerprint: 'CHAR(64) CHARACTER SET ascii',
      // JSON in ASCII, so that no character set of a connection changes it.
      result: 'LONGTEXT CHARACTER SET ascii',
      expires: 'BIGINT NOT NULL',
    },
    key: ['name'],
    indexes: [['expires']],
  },
}

export type OnceTexts = TableTexts<keyof typeof onceTables>
