import { rowNameType, shownType } from '../schema/own-table.ts'
import type { OwnTables, TableTexts } from '../tx/short-call.ts'

/**
 * Leases, in two tables, because InnoDB has no lock that a guard could hold beside a renewal of the same row:
 *
 * - `holdfast_lease` has the token and nothing else that changes. A guard shares its row until its transaction ends, and
 *   whoever takes the lease over needs the row alone.
 * - `holdfast_lease_holder` has who holds it and until when. Renewals and releases change that and nothing else.
 *
 * Rows are locked in this order, and never waited for while one is held, but for the counter, which comes last.
 */
export const leaseTables: OwnTables<'lease' | 'holder' | 'counter'> = {
  lease: {
    table: 'holdfast_lease',
    columns: {
      id: rowNameType,
      scope: shownType,
      name: shownType,
      token: 'BIGINT NOT NULL',
    },
    key: ['id'],
  },
  holder: {
    table: 'holdfast_lease_holder',
    columns: {
      id: rowNameType,
      token: 'BIGINT NOT NULL',
      // Random, made by whoever acquires it; null once it was released.
      owner: 'CHAR(36) CHARACTER SET ascii',
      ttl: 'BIGINT NOT NULL',
      delay: 'BIGINT NOT NULL',
      acquired: 'BIGINT NOT NULL',
      expires: 'BIGINT NOT NULL',
      note: 'MEDIUMTEXT CHARACTER SET utf8mb4',
    },
    key: ['id'],
    indexes: [['expires']],
  },
  // The last token that was given in a bucket: rows of leases may be deleted, these never.
  counter: {
    table: 'holdfast_lease_counter',
    columns: { bucket: 'SMALLINT NOT NULL', token: 'BIGINT NOT NULL' },
    key: ['bucket'],
  },
}

export type LeaseTexts = TableTexts<keyof typeof leaseTables>
