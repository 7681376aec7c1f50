import { holdfastError } from '../core/errors.ts'

/** A result as it is stored. @throws ONCE_RESULT_INVALID */
export function jsonOf(result: unknown): string | undefined {
  try {
    return JSON.stringify(result)
  } catch (cause) {
    throw holdfastError('ONCE_RESULT_INVALID', { cause })
  }
}

export function valueOf(json: string | undefined): unknown {
  return json === undefined ? undefined : JSON.parse(json)
}
