import type { BothAnswers, Row, Statement } from '../../core/driver.ts'
import { pipelineMessage } from './pg-wire.ts'
import { type Field, isWireClient, type RowShape, sendOnWire } from './pg-wire-query.ts'

/** A client that also reads values as its user has set it up to. */
interface ReadingClient {
  getTypeParser(oid: number, format: 'text'): (text: string) => unknown
}

/** Two statements in one pipeline with one Sync; nothing if this client is not made for it. */
export function sendBoth(
  client: unknown,
  first: Statement,
  second: Statement,
): BothAnswers | undefined {
  const { getTypeParser } = client as Partial<ReadingClient>
  if (!isWireClient(client) || typeof getTypeParser !== 'function') return undefined
  const reading = client as typeof client & ReadingClient
  const answered = Promise.withResolvers<readonly Row[]>()
  const firstRows: Row[] = []
  let described = 0
  /** Asked once for each statement, when the rows of the one before have come. */
  const shapeOf = (fields: readonly Field[]): RowShape => {
    described += 1
    return {
      columns: fields.map(({ name }) => name),
      parsers: fields.map(({ dataTypeID }) => reading.getTypeParser(dataTypeID, 'text')),
    }
  }
  const plain = ({ text, values }: Statement) => ({
    name: '',
    text,
    values,
    known: false,
    described: true,
  })
  const message = pipelineMessage(plain(first), plain(second))
  const both = sendOnWire(client, message, shapeOf, (row) => {
    if (described > 1) return false
    firstRows.push(row)
    return true
  })
  both.then(
    () => answered.resolve(firstRows),
    (error: unknown) => {
      if (firstRows.length > 0) answered.resolve(firstRows)
      else answered.reject(error)
    },
  )
  answered.promise.catch(() => undefined)
  return [answered.promise, both.then(({ rows }) => rows)]
}
