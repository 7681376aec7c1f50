import { holdfastError } from '../core/errors.ts'
import type { LeaseName } from '../engines/postgres/leases.ts'

const mostBytes = 512

/** A lease by its name; what stays together on one server is by default the name itself. */
export function leaseName(name: string, scope: string = name): LeaseName {
  return { name: storable(name, 'name'), scope: storable(scope, 'scope') }
}

function storable(text: unknown, field: string): string {
  if (
    typeof text === 'string' &&
    text.length > 0 &&
    Buffer.byteLength(text) <= mostBytes &&
    !text.includes('\0') &&
    text.isWellFormed()
  ) {
    return text
  }
  throw holdfastError('LEASE_NAME_INVALID', { details: { field, subject: field } })
}
