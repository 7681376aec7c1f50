import { holdfastError } from '../core/errors.ts'
import { isName } from '../core/storable.ts'
import type { LeaseName } from './engine.ts'

/** A lease by its name; what stays together on one server is by default the name itself. */
export function leaseName(name: string, scope: string = name): LeaseName {
  return { name: storable(name, 'name'), scope: storable(scope, 'scope') }
}

function storable(text: unknown, field: string): string {
  if (isName(text)) return text
  throw holdfastError('LEASE_NAME_INVALID', { details: { field, subject: field } })
}
