import type { ClaimsEngine } from '../../../claims/engine.ts'
import { deadRows } from './dead-rows.ts'
import { leasedRows, notOffered } from './leased-rows.ts'
import { overTable } from './over-table.ts'
import { joinedTo } from './sending.ts'
import { checkTable } from './table-check.ts'
import { takenRows } from './taken-rows.ts'

/** The part of claims of MariaDB and MySQL: over tables of the user's, without turns of keys. */
export const innodbClaims: ClaimsEngine = {
  of: 'innodb',
  ...deadRows,
  hears: false,
  leased: leasedRows,
  taken: takenRows,
  joined: joinedTo,
  check: checkTable,
  overTable,
  async enqueue() {
    throw notOffered('work')
  },
  missing: (error) => error,
}
