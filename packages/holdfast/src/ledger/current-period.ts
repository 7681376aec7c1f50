import { currentWindow } from '../engines/postgres/ledger/reads.ts'
import { assertPeriod, assertTimeZone, invalid } from './calendar.ts'
import type { Kernel } from './kernel.ts'
import { jsonAnswer, type StoredWindow, type WindowBounds, windowBounds } from './stored-text.ts'

/** The calendar period of this moment, on the database's clock. @throws OPTION_INVALID */
export async function currentPeriod<Tx>(
  kernel: Kernel<Tx>,
  tx: Tx | undefined,
  bucket: number,
  per: string,
  timeZone = 'UTC',
): Promise<WindowBounds> {
  assertPeriod(per)
  if (per === 'lifetime') throw invalid('per', 'per must be minute, hour, day, week or month')
  assertTimeZone(timeZone)
  const rows = await kernel.read(tx, (schema) => currentWindow(schema, bucket, per, timeZone))
  return windowBounds(jsonAnswer(rows) as StoredWindow) as WindowBounds
}
