import { holdfastError } from '../errors.ts'
import type { ClaimFinding } from './error-details.ts'

/** Claims would not work at all; the others are slow or surprising. */
export function isHole({ code }: ClaimFinding): boolean {
  return code !== 'index-missing' && code !== 'column-type'
}

/** The error of a table that claims cannot work on. */
export function tableUnfit(
  table: string,
  findings: readonly ClaimFinding[],
  cause?: unknown,
): Error {
  const [first] = findings
  const what = first === undefined ? '' : `: ${first.object} ${first.what.replace(/\.$/, '')}`
  const more = findings.length > 1 ? `, and ${findings.length - 1} more` : ''
  return holdfastError('CLAIM_TABLE_UNFIT', {
    about: `${table}${what}${more}`,
    details: { subject: table, findings },
    cause,
  })
}
