import { channel } from 'node:diagnostics_channel'
import { appendFileSync } from 'node:fs'
import { afterAll } from 'vitest'
import type { ErrorCode } from '../../src/core/error-codes.ts'
import { errorDetails } from '../../src/core/errors/error-details.ts'

/**
 * Notes every error code raised on a real server, so that `npm test` can prove at its end that each
 * code of the table was, and holds the details of each error to their table. Without HOLDFAST_THROWN_CODES it
 * does nothing.
 */
const file = process.env['HOLDFAST_THROWN_CODES']
const seen = new Set<string>()
const unlike = new Set<string>()

interface Thrown {
  readonly code: ErrorCode
  readonly error: { readonly details: Readonly<Record<string, unknown>> }
}

if (file !== undefined) {
  channel('holdfast:error').subscribe((message) => {
    const { code, error } = message as Thrown
    noteDetails(code, error.details)
    if (seen.has(code)) return
    seen.add(code)
    appendFileSync(file, `${code}\n`)
  })
  // U8: the types of details are those of the table.
  afterAll(() => {
    if (unlike.size > 0)
      throw new Error(`details that are not in the table: ${[...unlike].join('; ')}`)
  })
}

/** No field that the table does not have. Tests make errors of their own too, with fewer. */
function noteDetails(code: ErrorCode, details: Thrown['error']['details']): void {
  const listed: readonly string[] = errorDetails[code]
  for (const [name, value] of Object.entries(details))
    if (value !== undefined && !listed.includes(name) && !listed.includes(`${name}?`))
      unlike.add(`${code} has ${name}`)
}
