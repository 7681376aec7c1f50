import { readParameter } from '../wire/backend.ts'
import type { Frame } from '../wire/frame-reader.ts'

/** What the server tells of a session by itself, whoever has set it: a statement, a function, the database, the role. */
export interface SessionFacts {
  /** What the session is called, as the server told it last. */
  readonly applicationName: string
  /**
   * The bytes of a statement have always meant what they say in UTF-8, and a backslash in them a backslash. Otherwise
   * nobody knows what was prepared meanwhile, so it does not become true again.
   */
  readonly isPlain: boolean
  see(frame: Frame): void
}

export function createSessionFacts(): SessionFacts {
  let applicationName = ''
  let isPlain = true
  return {
    get applicationName() {
      return applicationName
    },
    get isPlain() {
      return isPlain
    },
    see(frame) {
      applicationName = readParameter(frame, 'application_name') ?? applicationName
      if (readParameter(frame, 'standard_conforming_strings') === 'off') isPlain = false
      if ((readParameter(frame, 'client_encoding') ?? 'UTF8') !== 'UTF8') isPlain = false
    },
  }
}
