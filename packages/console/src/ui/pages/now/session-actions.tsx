import type { ObservedSession } from 'holdfast/observe'
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { plural } from '../../format.ts'
import { act } from '../../live/api.ts'
import { useDatabase, useInfo, useIsInnodb, useMay } from '../../live/context.ts'
import { announce } from '../../parts/announcer.tsx'
import { ConfirmDialog } from '../../parts/confirm-dialog.tsx'

type SessionAction = 'cancel' | 'terminate'

/** Ending what is in the way: for those who may, and never without a question. */
export function SessionActions({
  session,
}: {
  readonly session: ObservedSession
}): JSX.Element | null {
  const info = useInfo()
  const database = useDatabase()
  const may = useMay()
  const isInnodb = useIsInnodb()
  const [asking, setAsking] = useState<SessionAction>()
  const [said, setSaid] = useState('')
  const runs = session.state === 'active'
  if (!may('cancel') && !may('terminate')) {
    return (
      <p class="faint">
        You may look and not end sessions. Whoever may can run{' '}
        <code>{`holdfast cancel ${session.pid}${runs ? '' : ' --terminate'}`}</code>, which says
        how.
      </p>
    )
  }
  if (session.startedAt === undefined) {
    return (
      <p class="faint">
        The console’s role may not see which transaction this is, so it cannot end it. Grant it
        pg_read_all_stats.
      </p>
    )
  }
  const confirm = async (action: SessionAction): Promise<void> => {
    const body = {
      pid: session.pid,
      startedAt: session.startedAt,
      // What is shown is what is meant: the server refuses if it has gone on to another one.
      transactionStartedAt: session.transactionStartedAt ?? null,
      transactionId: session.transactionId,
      confirm: String(session.pid),
    }
    const done = await act(info, action, body, database)
    const text = done
      ? `${action === 'cancel' ? 'Cancelled the statement of' : 'Ended'} pid ${session.pid}.`
      : `The server did nothing: pid ${session.pid} has ended already.`
    setSaid(text)
    announce(text)
  }
  return (
    <section>
      <h3>End it</h3>
      {!runs && (
        <p class="faint">
          It runs no statement, so cancelling would change nothing: only ending the session frees
          its locks.
        </p>
      )}
      <div class="buttons">
        {may('cancel') && runs && (
          <button type="button" class="button" onClick={() => setAsking('cancel')}>
            Cancel the statement…
          </button>
        )}
        {may('terminate') && (
          <button type="button" class="button button-danger" onClick={() => setAsking('terminate')}>
            End the session…
          </button>
        )}
      </div>
      {said && <p>{said}</p>}
      {asking && (
        <ConfirmDialog
          title={
            asking === 'cancel'
              ? `Cancel the statement of pid ${session.pid}?`
              : `End the session of pid ${session.pid}?`
          }
          verb={asking === 'cancel' ? 'Cancel the statement' : 'End the session'}
          onConfirm={() => confirm(asking)}
          onClose={() => setAsking(undefined)}
        >
          <p>
            {session.application && <b>{session.application}</b>}{' '}
            {asking === 'cancel'
              ? isInnodb
                ? 'gets an error for this statement; its transaction stays open and keeps its locks, until the program ends it.'
                : 'gets an error for this statement; its transaction fails, and what it has not committed is undone.'
              : 'loses its connection; its transaction is rolled back, and what it has not committed is undone.'}
          </p>
          <p>
            {session.waiters > 0
              ? `${plural(session.waiters, 'session waits', 'sessions wait')} because of it.`
              : 'Nobody waits because of it.'}{' '}
            This is written to the audit log, with your name.
          </p>
        </ConfirmDialog>
      )}
    </section>
  )
}
