import type { Row } from '../../../core/driver.ts'
import { processWide } from '../../../core/process-wide.ts'

/** So many rows of one driver; then it begins anew. */
const most = 10_000

const known = /* @__PURE__ */ processWide(
  'innodb-known-rows/1',
  () => new WeakMap<object, Set<string>>(),
)

/** Whether rows of locks were seen to be there; who is wrong about it only makes others wait. */
export function areKnown(driver: object, rows: readonly string[]): boolean {
  const here = known.get(driver)
  return here !== undefined && rows.every((row) => here.has(row))
}

/** Notes rows that were locked, but for those that may go again with the transaction that has made them. */
export function noteRows(driver: object, rows: readonly Row[]): void {
  let here = known.get(driver)
  if (here === undefined || here.size > most) known.set(driver, (here = new Set()))
  for (const { name, seq } of rows) if (seq !== '0') here.add(String(name))
}
