import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { plural } from '../format.ts'
import { Age } from '../parts/age.tsx'
import { Badge } from '../parts/badge.tsx'
import { Link } from '../parts/link.tsx'
import { changed, usePlace } from '../router.ts'
import { type Branch, firstOf, type LockGroup } from './blocking-forest.ts'
import { stateOf } from './session-state.ts'

/** Who blocks whom as nested lists, roots first: what the graph shows, in words. */
export function BlockingList(props: {
  readonly forest: readonly Branch[]
  readonly selectedPid: number | undefined
  readonly onFocus: (pid: number | undefined) => void
}): JSX.Element {
  return (
    <ol
      class="blocking-list"
      aria-label="Who blocks whom, roots first"
      onKeyDown={walk}
      onFocusOut={() => props.onFocus(undefined)}
    >
      {props.forest.map((branch) => (
        <Item key={branch.session.pid} branch={branch} {...props} />
      ))}
    </ol>
  )
}

function Item(props: {
  readonly branch: Branch
  readonly selectedPid: number | undefined
  readonly onFocus: (pid: number | undefined) => void
}): JSX.Element {
  const { session, kind, groups, also } = props.branch
  const place = usePlace()
  const { tone, word } = stateOf(session)
  const selected = session.pid === props.selectedPid
  const waits = session.blockedBy.length > 0
  return (
    <li data-pid={session.pid}>
      <div
        class={`row ${selected ? 'row-selected' : ''}`}
        onFocusIn={() => props.onFocus(session.pid)}
      >
        <Link
          to={changed(place, { pid: session.pid, lock: undefined })}
          class="row-session"
          current={selected}
        >
          <span class="row-application">{session.application || session.user}</span>
          <span class="row-pid">{session.pid === 0 ? 'prepared' : session.pid}</span>
          <span class="unseen">, </span>
          <Badge tone={tone}>
            {waits ? (
              <>
                waits <Age ms={session.waitingMs ?? 0} />
              </>
            ) : (
              word
            )}
          </Badge>
        </Link>
        <span class="row-facts">
          {session.waitsFor && (
            <span>
              for <code>{session.waitsFor.name}</code>
              {kind === 'soft' && <span class="kind kind-soft">queued</span>}
            </span>
          )}
          {!waits && !session.hidden && (
            <span>
              for{' '}
              <b>
                <Age ms={session.stateMs} />
              </b>
            </span>
          )}
          {session.waiters > 0 && <span>blocks {plural(session.waiters, 'session')}</span>}
          {also.length > 0 && (
            <span class="faint">
              also behind{' '}
              {also
                .slice(0, 3)
                .map(({ pid }) => (pid === 0 ? 'a prepared transaction' : pid))
                .join(', ')}
              {also.length > 3 && ` and ${also.length - 3} more`}
            </span>
          )}
        </span>
      </div>
      {groups.length > 0 && (
        <ol>
          {groups.map((group) => (
            <Group key={group.lock?.name ?? ''} {...props} group={group} />
          ))}
        </ol>
      )}
    </li>
  )
}

const mostListed = 25

/** Of a long queue the first ones say it all; the others are there when they are asked for. */
function Group(props: {
  readonly group: LockGroup
  readonly selectedPid: number | undefined
  readonly onFocus: (pid: number | undefined) => void
}): JSX.Element {
  const { branches } = props.group
  const [all, setAll] = useState(false)
  const shown = all ? branches : firstOf(branches, mostListed)
  return (
    <>
      {shown.map((branch) => (
        <Item
          key={branch.session.pid}
          branch={branch}
          selectedPid={props.selectedPid}
          onFocus={props.onFocus}
        />
      ))}
      {shown.length < branches.length && (
        <li>
          <button type="button" class="button button-small" onClick={() => setAll(true)}>
            Show {branches.length - shown.length} more that wait
          </button>
        </li>
      )}
    </>
  )
}

/** Up and down go from session to session; Tab does too. */
function walk(event: KeyboardEvent): void {
  if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return
  const list = event.currentTarget as HTMLElement
  const links = [...list.querySelectorAll<HTMLElement>('.row-session')]
  const at = links.findIndex((link) => link === document.activeElement)
  const next = links[at + (event.key === 'ArrowDown' ? 1 : -1)]
  if (next === undefined) return
  event.preventDefault()
  next.focus()
}
