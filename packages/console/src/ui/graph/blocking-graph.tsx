import type { ObservedSession } from 'holdfast/observe'
import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { shorten, shortLength } from '../format.ts'
import { useAge } from '../parts/age.tsx'
import { Mark } from '../parts/badge.tsx'
import type { Branch } from './blocking-forest.ts'
import { type GraphLock, type GraphNode, type GraphRest, layOut, size } from './graph-layout.ts'
import { stateOf } from './session-state.ts'

/**
 * Who blocks whom, as a picture for eyes and pointers. Everything in it is in the list beside it too, which
 * keyboards and screen readers use; what has the focus there is framed here.
 */
export function BlockingGraph(props: {
  readonly forest: readonly Branch[]
  readonly selectedPid: number | undefined
  readonly selectedLock: string | undefined
  readonly focusedPid: number | undefined
  readonly onSession: (pid: number) => void
  readonly onLock: (name: string) => void
}): JSX.Element {
  const [all, setAll] = useState(false)
  const box = useRef<HTMLDivElement>(null)
  const graph = layOut(props.forest, all)

  useEffect(() => {
    if (props.focusedPid === undefined) return
    const node = box.current?.querySelector(`[data-pid="${props.focusedPid}"]`)
    node?.scrollIntoView({ block: 'nearest', inline: 'nearest' })
  }, [props.focusedPid])

  return (
    // It scrolls, so a keyboard must be able to.
    <div
      class="graph"
      ref={box}
      role="region"
      aria-label="Graph; the list that follows says the same"
      tabIndex={0}
    >
      <svg width={graph.width} height={graph.height} aria-hidden="true" class="graph-svg">
        <defs>
          <marker
            id="tip"
            viewBox="0 0 8 8"
            refX="7"
            refY="4"
            markerWidth="7"
            markerHeight="7"
            orient="auto"
          >
            <path d="M0 .5L7.5 4 0 7.5z" class="tip" />
          </marker>
        </defs>
        {graph.trunks.map((path) => (
          <path key={path} class="trunk" d={path} />
        ))}
        {graph.edges.map((edge) => (
          <g key={`${edge.from}/${edge.to}/${edge.kind}`} class={`edge edge-${edge.kind}`}>
            <path d={edge.path} marker-end="url(#tip)" />
          </g>
        ))}
        {graph.locks.map((lock) => (
          <Pill
            key={`${lock.x}/${lock.y}`}
            place={lock}
            selected={lock.lock?.name === props.selectedLock && lock.lock !== undefined}
            onLock={props.onLock}
          />
        ))}
        {graph.nodes.map((node) => (
          <Card
            key={node.session.pid}
            node={node}
            selected={node.session.pid === props.selectedPid}
            focused={node.session.pid === props.focusedPid}
            onSession={props.onSession}
          />
        ))}
        {graph.rests.map((rest) => (
          <More key={`${rest.parent}/${rest.y}`} rest={rest} onClick={() => setAll(true)} />
        ))}
      </svg>
    </div>
  )
}

function Card(props: {
  readonly node: GraphNode
  readonly selected: boolean
  readonly focused: boolean
  readonly onSession: (pid: number) => void
}): JSX.Element {
  const { session, x, y, height } = props.node
  const { tone, word } = stateOf(session)
  const waits = session.blockedBy.length > 0
  const classes = [
    'card',
    waits ? 'card-waits' : 'card-root',
    props.selected && 'card-selected',
    props.focused && 'card-focused',
  ]
  return (
    <g
      class={classes.filter(Boolean).join(' ')}
      transform={`translate(${x} ${y})`}
      data-pid={session.pid}
      onClick={() => props.onSession(session.pid)}
    >
      <title>{`${session.application} ${session.pid}: ${word}`}</title>
      <rect width={size.node.width} height={height} rx="8" />
      <rect class="card-edge" width="4" height={height} rx="2" />
      <text class="card-application" x="14" y="19">
        {shorten(session.application || session.user, 17)}
      </text>
      <text class="card-pid" x={size.node.width - 11} y="19" text-anchor="end">
        {session.pid === 0 ? 'prepared' : `pid ${session.pid}`}
      </text>
      <svg x="14" y="27.5" width="9" height="9" overflow="visible">
        <Mark tone={tone} />
      </svg>
      {waits ? <WaiterAges session={session} /> : <RootAges session={session} word={word} />}
    </g>
  )
}

function WaiterAges({ session }: { readonly session: ObservedSession }): JSX.Element {
  const waiting = useAge(session.waitingMs ?? 0, shortLength)
  const transaction = useAge(session.transactionMs ?? 0, shortLength)
  return (
    <>
      <text class="card-state" x="29" y="36">{`waits ${waiting}`}</text>
      {session.transactionMs !== undefined && (
        <text class="card-ages" x={size.node.width - 11} y="36" text-anchor="end">
          {`tx ${transaction}`}
        </text>
      )}
    </>
  )
}

function RootAges(props: {
  readonly session: ObservedSession
  readonly word: string
}): JSX.Element {
  const { session, word } = props
  const state = useAge(session.stateMs, shortLength)
  const transaction = useAge(session.transactionMs ?? 0, shortLength)
  const ages = [
    session.transactionMs === undefined ? undefined : `tx ${transaction}`,
    `blocks ${session.waiters}`,
  ]
  return (
    <>
      <text class="card-state" x="29" y="36">
        {shorten(word, 24)}
      </text>
      <text class="card-ages" x="14" y="54">
        {session.hidden ? '' : `for ${state}`}
      </text>
      <text class="card-ages" x={size.node.width - 11} y="54" text-anchor="end">
        {ages.filter((age) => age !== undefined).join(' · ')}
      </text>
    </>
  )
}

function Pill(props: {
  readonly place: GraphLock
  readonly selected: boolean
  readonly onLock: (name: string) => void
}): JSX.Element {
  const { lock, x, y, width } = props.place
  const { height, mostLetters } = size.lock
  return (
    <g
      class={`pill ${props.selected ? 'pill-selected' : ''}`}
      transform={`translate(${x} ${y})`}
      data-lock={lock?.name}
      onClick={() => lock && props.onLock(lock.name)}
    >
      <title>{lock === undefined ? 'unknown lock' : `${lock.name} (${lock.mode})`}</title>
      <rect width={width} height={height} rx={height / 2} />
      <text x={width / 2} y="16" text-anchor="middle">
        {shorten(lock?.name ?? 'unknown', mostLetters)}
      </text>
    </g>
  )
}

function More(props: { readonly rest: GraphRest; readonly onClick: () => void }): JSX.Element {
  const { hidden, x, y } = props.rest
  return (
    <g class="more" transform={`translate(${x} ${y})`} onClick={props.onClick}>
      <rect width={size.node.width} height={size.rest.height} rx="8" />
      <text x={size.node.width / 2} y="18" text-anchor="middle">
        {`and ${hidden} more: show all`}
      </text>
    </g>
  )
}
