import type { ObservedSession } from 'holdfast/observe'
import type { Tone } from '../parts/tone.ts'

/** What a session does, in words for people, and how it is marked. */
export function stateOf(session: ObservedSession): { readonly tone: Tone; readonly word: string } {
  if (session.hidden) return { tone: 'plain', word: 'state not visible' }
  if (session.waitsFor !== undefined || session.blockedBy.length > 0) {
    return { tone: 'wait', word: 'waits for a lock' }
  }
  switch (session.state) {
    case 'idle in transaction':
      return { tone: session.waiters > 0 ? 'bad' : 'wait', word: 'idle in transaction' }
    case 'idle in transaction (aborted)':
      return { tone: 'bad', word: 'idle, transaction failed' }
    case 'active':
      return { tone: 'info', word: 'runs a statement' }
    case 'idle':
      return { tone: 'plain', word: 'idle' }
    case 'prepared':
      return { tone: 'bad', word: 'prepared, has no session' }
    default:
      return { tone: 'plain', word: session.state || 'unknown' }
  }
}
