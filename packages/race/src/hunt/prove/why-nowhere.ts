/** Why there are no rows from which both calls of a pair are accepted, as far as rows tell it. */
import { overlap } from '../../core/footprint.ts'
import { list, times } from '../../report/words.ts'
import { sharedConnections } from '../../run/connection/shared-connections.ts'
import type { Saved } from '../../run/state/snapshot.ts'
import type { Tried } from './attempt.ts'
import { differInLogin } from './logins.ts'
import type { Profile } from '../propose/profile.ts'
import type { Unfit } from './trials.ts'

const nowhere = 'no rows were found from which both are accepted'

/** Tables that are named. */
const mostTables = 3

export function whyNowhere(unfit: readonly Unfit[], profiles: readonly Profile[]): string {
  // With the values of the recording, from recorded rows: others are changed by us. What was refused there is so again.
  const plain = unfit.filter(
    ({ trial: { calls, inputs, state }, at }) =>
      calls[at].said === 'accepted' &&
      inputs[at] === calls[at].input &&
      calls.some(({ before }) => before === state),
  )
  const ofOwn = plain.find(({ trial: { calls, state }, at }) => calls[at].before === state)
  if (ofOwn) return ownRowsText(ofOwn)
  const [first] = plain
  if (first === undefined) return nowhere
  const { trial, at, tried } = first
  const refused = trial.calls[at]
  const other = trial.calls[at === 0 ? 1 : 0]
  const profile = profiles.find(({ call }) => call === refused)
  const missing = missingRows(refused.before, trial.state, profile)
  const lacks =
    missing.length === 0
      ? ''
      : `. Missing there, or others, of the rows that it began with: ${list(missing.slice(0, mostTables))}`
  const login = differInLogin(trial.inputs[0], trial.inputs[1])
    ? '. The two were sent by different logins: let the suite log in once, and keep the rows of it between tests'
    : ''
  return `${nowhere}: ${refused.name} (${refused.number}) ${endText(tried)} from the rows before ${other.name} (${other.number})${lacks}${login}`
}

function ownRowsText({ trial: { calls }, at, tried }: Unfit): string {
  const { name, number } = calls[at]
  return `${name} (${number}) ${endText(tried)} from the rows from which it had been accepted: ${decider()}`
}

/** A session that is given back like that fails whoever gets it next. */
function decider(): string {
  const isLeft = [...sharedConnections].some(
    ({ phase, state }) => phase === 'idle' && (state === 'T' || state === 'E'),
  )
  return isLeft
    ? 'a connection of the application is still in a transaction that a call before it has left open, and later calls get it from the pool. Let every way out of a transaction end it, also the one of an error, with ROLLBACK'
    : 'something that is not in the database decides over it'
}

function endText({ said, answer }: Tried): string {
  const { status } = (answer ?? {}) as { readonly status?: unknown }
  const how = said === 'failed' ? 'failed' : 'was refused'
  return typeof status === 'number' ? `${how} with ${status}` : how
}

/** `1 row of public.sessions`: only of tables that the call touches, if that is known. */
function missingRows(wanted: Saved, there: Saved, profile: Profile | undefined): string[] {
  const touched = profile?.footprints.flatMap(({ touches }) => touches.map(({ object }) => object))
  const missing = wanted.tables.flatMap((table): { table: string; text: string }[] => {
    const now = there.tables.find(({ quoted }) => quoted === table.quoted)
    if (now?.digest === table.digest) return []
    const rows = new Set(now?.rows)
    const count = table.rows.filter((row) => !rows.has(row)).length
    if (count === 0) return []
    return [{ table: table.quoted, text: `${times(count, 'row')} of ${table.quoted}` }]
  })
  const known = missing.filter(({ table }) =>
    touched?.some((object) => overlap(object.split('#')[0] ?? object, table)),
  )
  return (known.length > 0 ? known : missing).map(({ text }) => text)
}
