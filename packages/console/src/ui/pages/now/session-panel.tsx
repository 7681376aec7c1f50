import type { LockTree, ObservedLock, ObservedSession } from 'holdfast/observe'
import type { JSX } from 'preact'
import { useContext } from 'preact/hooks'
import { mode, plural } from '../../format.ts'
import { stateOf } from '../../graph/session-state.ts'
import { useDatabase, useInfo } from '../../live/context.ts'
import { useResource } from '../../live/resource.ts'
import { AdviceList } from '../../parts/advice-list.tsx'
import { Age, Growing, ReceivedAt } from '../../parts/age.tsx'
import { Badge } from '../../parts/badge.tsx'
import { Command, CopyButton } from '../../parts/copy-button.tsx'
import { LockLink, SessionLink } from '../../parts/link.tsx'
import { Failure } from '../../parts/notice.tsx'
import { Facts, Panel } from './panel.tsx'
import { SessionActions } from './session-actions.tsx'

/** Of a long queue the first ones say it all. */
const mostListed = 20

/** Everything about one session. One that is in no tree is asked for by itself. */
export function SessionPanel(props: {
  readonly pid: number
  readonly tree: LockTree
  readonly isLive: boolean
}): JSX.Element {
  const database = useDatabase()
  const seen = props.tree.sessions.find(({ pid }) => pid === props.pid)
  const asked = useResource<{ readonly session: ObservedSession }>(
    seen === undefined && props.isLive ? `session/${props.pid}` : undefined,
    { database },
    5000,
  )
  const since = useContext(ReceivedAt)
  const session = seen ?? asked.data?.session
  const gone = asked.failure?.status === 404 || !props.isLive
  return (
    <Panel kind="Session" title={props.pid === 0 ? 'prepared transaction' : `pid ${props.pid}`}>
      {session !== undefined && !(seen === undefined && asked.failure) ? (
        <Growing since={seen === undefined ? asked.at : since}>
          {() => <Details session={session} tree={props.tree} isLive={props.isLive} />}
        </Growing>
      ) : gone ? (
        <p>
          This session is not there{props.isLive ? ' any more: it has ended' : ' in this picture'}.
          Nothing is left to do about it.
        </p>
      ) : asked.failure ? (
        <Failure failure={asked.failure} />
      ) : (
        <p class="loading">Asking the server…</p>
      )}
    </Panel>
  )
}

function Details(props: {
  readonly session: ObservedSession
  readonly tree: LockTree
  readonly isLive: boolean
}): JSX.Element {
  const { session, tree } = props
  const info = useInfo()
  const { tone, word } = stateOf(session)
  const waiters = tree.sessions.filter(({ blockedBy }) =>
    blockedBy.some(({ pid }) => pid === session.pid),
  )
  return (
    <>
      <p class="panel-state">
        <Badge tone={tone}>{word}</Badge>
        {!session.hidden && (
          <span>
            for <Age ms={session.stateMs} />
          </span>
        )}
      </p>
      <AdviceList advice={session.advice} />
      {session.waitsFor && (
        <section>
          <h3>Waits for</h3>
          <p>
            <LockLink lock={session.waitsFor} /> <How lock={session.waitsFor} /> for{' '}
            <b>
              <Age ms={session.waitingMs ?? 0} />
            </b>
          </p>
          {session.blockedBy.length === 0 && (
            <p class="faint">The server does not tell who is in its way.</p>
          )}
          <ul class="plain-list">
            {session.blockedBy.slice(0, mostListed).map(({ pid, kind }) => (
              <li key={pid}>
                <SessionLink pid={pid} /> {applicationOf(tree, pid)}{' '}
                <span class="faint">{kind === 'hard' ? 'holds it' : 'is ahead in the queue'}</span>
              </li>
            ))}
            {session.blockedBy.length > mostListed && (
              <li class="faint">and {session.blockedBy.length - mostListed} more</li>
            )}
          </ul>
        </section>
      )}
      {session.holds.length > 0 && (
        <section>
          <h3>Holds</h3>
          <ul class="plain-list">
            {session.holds.map((lock) => (
              <li key={`${lock.name}/${lock.row}/${lock.mode}`}>
                <LockLink lock={lock} /> <How lock={lock} />
              </li>
            ))}
          </ul>
        </section>
      )}
      {waiters.length > 0 && (
        <section>
          <h3>{plural(session.waiters, 'session waits', 'sessions wait')} because of it</h3>
          <ul class="plain-list columns">
            {waiters.slice(0, mostListed).map((waiter) => (
              <li key={waiter.pid}>
                <SessionLink pid={waiter.pid} />{' '}
                <span class="faint">
                  <Age ms={waiter.waitingMs ?? 0} />
                </span>
              </li>
            ))}
          </ul>
          {session.waiters > Math.min(waiters.length, mostListed) && (
            <p class="faint">
              and {session.waiters - Math.min(waiters.length, mostListed)} more behind these
            </p>
          )}
        </section>
      )}
      {props.isLive && session.pid !== 0 && <SessionActions session={session} />}
      <Statement session={session} redacted={info.redaction.queries} />
      <Facts
        facts={[
          ['Application', session.application],
          ['Label', session.label],
          ['User', session.user],
          ['Client', session.client],
          [
            'Transaction',
            session.transactionMs !== undefined && <Age ms={session.transactionMs} />,
          ],
          ['Statement', session.queryMs !== undefined && <Age ms={session.queryMs} />],
        ].map(([name, value]) => [name as string, value || undefined])}
      />
      {session.pid !== 0 && (
        <section>
          <h3>In a terminal</h3>
          <Command text={`holdfast why ${session.pid}`} />
        </section>
      )}
    </>
  )
}

/** In which mode, and which row, where the server tells. */
function applicationOf(tree: LockTree, pid: number): string {
  return tree.sessions.find((session) => session.pid === pid)?.application ?? ''
}

function How({ lock }: { readonly lock: ObservedLock }): JSX.Element | null {
  const words = [mode(lock.mode), lock.kind === 'row' && lock.row].filter(Boolean)
  return words.length === 0 ? null : <span class="faint">({words.join(', ')})</span>
}

function Statement(props: {
  readonly session: ObservedSession
  readonly redacted: boolean
}): JSX.Element | null {
  const { session, redacted } = props
  if (session.query === '') return null
  return (
    <section>
      <h3>{session.state === 'active' ? 'Statement' : 'Last statement'}</h3>
      <div class="statement">
        <pre tabIndex={0}>
          <code>{session.query}</code>
        </pre>
        {!redacted && <CopyButton text={session.query} what="the statement" />}
      </div>
      {redacted && <p class="faint">Texts of statements are hidden by the console’s settings.</p>}
    </section>
  )
}
