import type { LockTree, ObservedSession } from 'holdfast/observe'
import type { ComponentChildren, JSX } from 'preact'
import type { Branch } from '../../graph/blocking-forest.ts'
import { stateOf } from '../../graph/session-state.ts'
import { plural } from '../../format.ts'
import { AdviceList } from '../../parts/advice-list.tsx'
import { Age } from '../../parts/age.tsx'
import { LockLink, SessionLink } from '../../parts/link.tsx'

/** How many wait. */
export function waitingIn(tree: LockTree): number {
  return tree.sessions.filter(({ waitsFor }) => waitsFor !== undefined).length
}

/** The whole incident in a sentence, and what to do about it. */
export function Headline(props: {
  readonly tree: LockTree
  readonly forest: readonly Branch[]
  readonly children?: ComponentChildren
}): JSX.Element {
  const waiting = waitingIn(props.tree)
  const [first, ...others] = props.forest
  if (first === undefined) return <p class="headline">Nobody waits.</p>
  const { session } = first
  const behind = session.waiters
  return (
    <section class="incident" aria-labelledby="incident-title">
      <h2 id="incident-title" class="headline">
        <span class="headline-number">{plural(waiting, 'session waits', 'sessions wait')}</span>
        {others.length === 0
          ? session.waitsFor === undefined || session.waiters > 0
            ? ' because of one: '
            : ': '
          : ` behind ${others.length + 1}. First: `}
        <Root session={session} />
      </h2>
      <p class="incident-facts">
        {stateOf(session).word}
        {!session.hidden && (
          <>
            {' '}
            for <Age ms={session.stateMs} />
          </>
        )}
        {session.transactionMs !== undefined && (
          <>
            , transaction open for <Age ms={session.transactionMs} />
          </>
        )}
        {others.length > 0 && <>, {plural(behind, 'waits', 'wait')} behind it</>}
      </p>
      <p class="incident-locks">
        {first.groups.flatMap(({ lock }) =>
          lock ? [<LockLink key={lock.name} lock={lock} />] : [],
        )}
      </p>
      <AdviceList advice={session.advice.slice(0, 1)} />
      {session.advice.length > 1 && (
        <details class="more-advice">
          <summary>{session.advice.length - 1} more to know about it</summary>
          <AdviceList advice={session.advice.slice(1)} />
        </details>
      )}
      {props.children}
    </section>
  )
}

function Root({ session }: { readonly session: ObservedSession }): JSX.Element {
  return (
    <SessionLink pid={session.pid}>
      {session.application && `${session.application}, `}pid {session.pid}
    </SessionLink>
  )
}
