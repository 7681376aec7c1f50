import type { Row, Statement } from '../../../core/driver.ts'

/** Of this moment, where `INNODB_TRX` may be a tenth of a second old. */
export const statusStatement: Statement = { text: 'SHOW ENGINE INNODB STATUS', values: [] }

/** A transaction that is open, as MariaDB tells it. */
export interface OpenTransaction {
  /** Never given again. One that has written nothing has none. */
  readonly number: string | undefined
  /** Of the statement that runs, or of the last one. */
  readonly queryId: number
}

const head = /^ (?:(\d+)|\([^)]*\)), ACTIVE/
const thread = /^MariaDB thread id (\d+),.* query id (\d+)/m

/** By connection. A server that has too much to say leaves some out: whoever is not here is not ended. */
export function openIn([row]: readonly Row[]): ReadonlyMap<number, OpenTransaction> {
  const open = new Map<number, OpenTransaction>()
  for (const block of String(row?.['Status']).split('---TRANSACTION').slice(1)) {
    const begun = head.exec(block)
    const whose = thread.exec(block)
    if (begun === null || whose === null) continue
    open.set(Number(whose[1]), { number: begun[1], queryId: Number(whose[2]) })
  }
  return open
}
