import { type Command, yesFlag } from '../command.ts'
import { noSession, pidOf } from '../number-flag.ts'
import { count, sessionName, stateText } from '../render/words.ts'
import { queryText } from '../render/lock-tree.ts'
import { cancelCommand } from '../render/why.ts'
import { interventionsOn } from '../product.ts'
import { seenOf, seenText } from '../seen.ts'
import { done, failed, Misuse, unconfirmed } from '../failure.ts'

export const cancel: Command = {
  name: 'cancel',
  about: "Cancel a session's statement, or end the session",
  needsDatabase: true,
  onMysql: true,
  args: [{ name: 'pid', about: 'Process id of the session, as locks shows it' }],
  flags: {
    terminate: { type: 'boolean', about: 'End the session: its transaction is rolled back' },
    seen: {
      type: 'string',
      value: '<text>',
      about:
        'Which transaction is meant, as the command without --yes prints it; needed with --yes',
    },
    yes: yesFlag,
  },
  async run({ args, flags, observe, print }) {
    const pid = pidOf(args['pid'])
    const terminate = flags['terminate'] === true
    const seen = typeof flags['seen'] === 'string' ? seenOf(flags['seen']) : undefined
    if (flags['yes'] === true && seen === undefined) {
      throw new Misuse('--yes needs --seen: run it without --yes, which prints the whole command.')
    }
    return await observe(async (observer, driver) => {
      const session = await observer.session(pid)
      // Those of other databases are for whoever looks at these.
      if (session === undefined || session.database !== undefined) throw noSession(pid)
      const { waiters } = session
      const verb = terminate ? 'end the session of' : 'cancel the statement of'
      const what = `${sessionName(session)}, pid ${pid}, user ${session.user}, ${stateText(session)}; ${count(waiters, 'session')} ${waiters === 1 ? 'waits' : 'wait'} for it`
      const query = queryText(session)
      if (flags['yes'] !== true || seen === undefined) {
        // There is nothing to cancel where no statement runs.
        const ends = terminate || session.state.startsWith('idle')
        const nothing =
          ends && !terminate
            ? 'It runs no statement, so there is nothing to cancel: --terminate ends the session.\n'
            : ''
        const next =
          seenText(session) === undefined
            ? 'this role may not see its transaction; pg_read_all_stats lets it.\n'
            : `to do it, if it is still in this transaction:\n  ${cancelCommand(session, ends)}\n`
        print(
          { pid, done: false, session, seen: seenText(session) },
          `Would ${verb} ${what}.\n${query === '' ? '' : `  ${query}\n`}${nothing}Nothing was done; ${next}`,
        )
        return unconfirmed
      }
      const interventions = await interventionsOn(driver)
      const sent = await (terminate
        ? interventions.terminate(pid, seen)
        : interventions.cancel(pid, seen))
      const told = terminate ? 'The session was told to end' : 'The statement was cancelled'
      print(
        { pid, done: sent, session },
        sent
          ? `${told}: ${what}.\n`
          : 'It runs no statement, or the server could not send the signal.\n',
      )
      return sent ? done : failed
    })
  },
}
