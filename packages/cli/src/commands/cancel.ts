import { createInterventions } from 'holdfast/observe'
import { type Command, done, failed, unconfirmed, yesFlag } from '../command.ts'
import { pidOf } from '../number-flag.ts'
import { count, sessionName, stateText } from '../render/words.ts'
import { queryText } from '../render/lock-tree.ts'

export const cancel: Command = {
  name: 'cancel',
  about: "Cancel a session's statement, or end the session",
  needsDatabase: true,
  args: [{ name: 'pid', about: 'Process id of the session, as locks shows it' }],
  flags: {
    terminate: { type: 'boolean', about: 'End the session: its transaction is rolled back' },
    yes: yesFlag,
  },
  async run({ args, flags, observe, print }) {
    const pid = pidOf(args['pid'])
    const terminate = flags['terminate'] === true
    return await observe(async (observer, driver) => {
      const session = await observer.session(pid)
      // Those of other databases are for whoever looks at these.
      if (session === undefined || session.database !== undefined) {
        print({ pid, done: false }, `No client of this database has a session with pid ${pid}.\n`)
        return failed
      }
      const { startedAt, waiters } = session
      const verb = terminate ? 'end the session of' : 'cancel the statement of'
      const what = `${sessionName(session)}, pid ${pid}, user ${session.user}, ${stateText(session)}; ${count(waiters, 'session')} ${waiters === 1 ? 'waits' : 'wait'} for it`
      const query = queryText(session)
      if (flags['yes'] !== true) {
        const nothing =
          !terminate && session.state.startsWith('idle')
            ? 'It runs no statement, so there is nothing to cancel: --terminate ends the session.\n'
            : ''
        print(
          { pid, done: false, session },
          `Would ${verb} ${what}.\n${query === '' ? '' : `  ${query}\n`}${nothing}Nothing was done: add --yes.\n`,
        )
        return unconfirmed
      }
      const interventions = createInterventions(driver)
      const sent = await (terminate
        ? interventions.terminate(pid, { startedAt })
        : interventions.cancel(pid, { startedAt }))
      const told = terminate ? 'The session was told to end' : 'The statement was cancelled'
      print(
        { pid, done: sent, session },
        sent ? `${told}: ${what}.\n` : 'The server could not send the signal.\n',
      )
      return sent ? done : failed
    })
  },
}
