import { channel } from 'node:diagnostics_channel'
import { appendFileSync } from 'node:fs'

/**
 * Notes every error code raised on a real server, so that `npm test` can prove at its end that each
 * code of the table was. Without HOLDFAST_THROWN_CODES it does nothing.
 */
const file = process.env['HOLDFAST_THROWN_CODES']
const seen = new Set<string>()
if (file !== undefined) {
  channel('holdfast:error').subscribe((message) => {
    const { code } = message as { code: string }
    if (seen.has(code)) return
    seen.add(code)
    appendFileSync(file, `${code}\n`)
  })
}
