import type { ClaimsEngine, DeadLayout, DeadVerb, FoundDead } from '../../../claims/engine.ts'
import type { Row, Statement } from '../../../core/driver.ts'
import { holdfastError } from '../../../core/errors.ts'
import { affectedBy } from '../driver.ts'
import { isDuplicate } from '../result-code.ts'
import { shortTransaction } from '../tx/short-call.ts'
import {
  assigned,
  columnOf,
  inStatus,
  isKey,
  keyIn,
  keyTexts,
  ownIn,
  returned,
  seeing,
  type Seen,
  tableOf,
  updateText,
  valueText,
} from './layout.ts'
import { momentLike, msOf, nowMs } from './moments.ts'

/** Rows that had their last attempt. Nobody works on them, so there is no token to fit. */

function select(layout: DeadLayout, condition: string, order: string): string {
  const { attempts, error, listedBy } = layout
  const place = listedBy.map((column) => `CAST(${columnOf(column)} AS TEXT)`).join(', ')
  const wanted = [
    keyTexts(layout.key),
    `${attempts === undefined ? 'NULL' : columnOf(attempts)} AS "#attempts"`,
    `${error === undefined ? 'NULL' : columnOf(error)} AS "#error"`,
    `json_array(${place}) AS "#place"`,
    ...returned(layout),
  ]
  return `SELECT ${wanted.join(', ')} FROM ${tableOf(layout)}
WHERE ${inStatus(layout, layout.dead)}${condition}${order}`
}

/** The next dead rows behind a place, as `#place` told it. */
function listDead(layout: DeadLayout, limit: number, after: string | undefined): Statement {
  const by = layout.listedBy.map(columnOf).join(', ')
  const place = after === undefined ? undefined : placeIn(layout, after)
  const beyond = place === undefined ? '' : ` AND (${by}) > (${place.map(() => '?').join(', ')})`
  return {
    text: select(layout, beyond, ` ORDER BY ${by} LIMIT ?`),
    values: [...(place ?? []), limit],
  }
}

/** @throws OPTION_INVALID */
function placeIn({ listedBy }: DeadLayout, after: string): readonly string[] {
  try {
    const place: unknown = JSON.parse(after)
    if (Array.isArray(place) && place.length === listedBy.length) return place.map(String)
  } catch {
    // Told below.
  }
  const subject = 'after is not the next of a page'
  throw holdfastError('OPTION_INVALID', { details: { option: 'after', subject } })
}

function changeDead(layout: DeadLayout & Seen, verb: DeadVerb, key: readonly string[]): Statement {
  const condition = `${isKey(layout)} AND ${inStatus(layout, layout.dead)}`
  if (verb === 'delete')
    return { text: `DELETE FROM ${tableOf(layout)} WHERE ${condition}`, values: key }
  const { runAt, attempts } = layout
  const sets = [
    ...assigned(layout.status, valueText(layout.pending)),
    ...assigned(layout.token, 'NULL'),
    ...assigned(layout.leaseUntil, 'NULL'),
    ...assigned(attempts, '0'),
    // Its own place, so that rows that are retried together keep their order.
    ...(runAt === undefined ? [] : assigned(runAt, notLater(layout, runAt))),
  ]
  return updateText(layout, sets, condition, key)
}

function notLater(layout: Seen, runAt: string): ReturnType<typeof momentLike> {
  const column = columnOf(runAt)
  const { text, values } = momentLike(column, layout.kindOf(runAt), 0)
  return { text: `IIF(${msOf(column)} <= ${nowMs}, ${column}, ${text})`, values }
}

function foundIn(layout: DeadLayout, found: Row): FoundDead {
  const { '#attempts': attempts, '#error': error, '#place': place } = found
  return {
    key: keyIn(layout, found),
    attempts: attempts === null || attempts === undefined ? undefined : Number(attempts),
    error: typeof error === 'string' ? error : undefined,
    place: String(place),
    row: ownIn(found),
  }
}

export const deadRows: Pick<ClaimsEngine, 'findDead' | 'changeDead'> = {
  async findDead(driver, layout, wanted) {
    const statement =
      'key' in wanted
        ? { text: select(layout, ` AND ${isKey(layout)}`, ''), values: wanted.key }
        : listDead(layout, wanted.limit, wanted.after)
    return (await driver.alone.query(statement)).map((found) => foundIn(layout, found))
  },
  async changeDead(driver, given, verb, keys) {
    const layoutOn = seeing(given)
    try {
      return await shortTransaction(driver, 0, async (on) => {
        const layout = await layoutOn(on)
        const done: (readonly string[])[] = []
        for (const key of keys) {
          if (affectedBy(await on.query(changeDead(layout, verb, key))) > 0) done.push(key)
        }
        return done
      })
    } catch (error) {
      // All of it was rolled back.
      if (isDuplicate(error)) return 'taken'
      throw error
    }
  },
}
