import type { LockTree } from 'holdfast/observe'
import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { HistoryPoint } from '../../../core/wire.ts'
import { plural } from '../../format.ts'
import { useStore } from '../../external-store.ts'
import { type Branch, blockingForest } from '../../graph/blocking-forest.ts'
import { BlockingGraph } from '../../graph/blocking-graph.tsx'
import { BlockingList } from '../../graph/blocking-list.tsx'
import { useDatabase, useDatabaseInfo } from '../../live/context.ts'
import { useResource } from '../../live/resource.ts'
import { live } from '../../live/stream.ts'
import { announce } from '../../parts/announcer.tsx'
import { ReceivedAt } from '../../parts/age.tsx'
import { CopyButton } from '../../parts/copy-button.tsx'
import { Loaded } from '../../parts/notice.tsx'
import { changed, go, usePlace } from '../../router.ts'
import { Headline, waitingIn } from './headline.tsx'
import { incidentMarkdown } from './incident-markdown.ts'
import { LockPanel } from './lock-panel.tsx'
import { Holding, Quiet, Watch } from './quiet.tsx'
import { SessionPanel } from './session-panel.tsx'
import { TimeLine } from './time-line.tsx'

/** Who blocks whom, now or at a moment that is still remembered. */
export function NowPage(): JSX.Element {
  const { query } = usePlace()
  const database = useDatabase()
  const at = query.get('at') ?? undefined
  const { tree, receivedAt, state, trouble } = useStore(live)
  const history = useResource<{ readonly points: readonly HistoryPoint[] }>(
    'history',
    { database },
    2000,
  )
  const past = useResource<LockTree>(at === undefined ? undefined : 'history/tree', {
    database,
    at,
  })
  useAnnouncements(tree)
  const hasDetail = query.has('pid') || query.has('lock')
  return (
    <div class={hasDetail ? 'now now-detail' : 'now'}>
      <h1 class="page-title">Now</h1>
      <TimeLine points={upToNow(history.data?.points ?? [], tree)} at={at} />
      {at === undefined ? (
        tree === undefined ? (
          trouble === undefined && <p class="loading">Asking the server…</p>
        ) : (
          <ReceivedAt.Provider value={state === 'live' ? receivedAt : undefined}>
            <Picture tree={tree} isLive />
            <Watch hotKeys={tree.hotKeys} />
          </ReceivedAt.Provider>
        )
      ) : (
        <Loaded of={past}>{(seen) => <Picture tree={seen} isLive={false} />}</Loaded>
      )}
    </div>
  )
}

/** The history is asked for every few seconds; what came since belongs to it. */
function upToNow(
  points: readonly HistoryPoint[],
  tree: LockTree | undefined,
): readonly HistoryPoint[] {
  if (tree === undefined || tree.at <= (points.at(-1)?.at ?? '')) return points
  const { at, sessions } = tree
  return [...points, { at, sessions: sessions.length, waiting: waitingIn(tree), longestWaitMs: 0 }]
}

function Picture(props: { readonly tree: LockTree; readonly isLive: boolean }): JSX.Element {
  const { tree, isLive } = props
  const place = usePlace()
  const pid = place.query.get('pid')
  const lock = place.query.get('lock')
  const forest = blockingForest(tree)
  const database = useDatabaseInfo()
  const idle = tree.sessions.filter(
    ({ blockedBy, waiters, holds }) => blockedBy.length === 0 && waiters === 0 && holds.length > 0,
  )
  return (
    <div class="picture-and-panel">
      <div class="picture">
        {forest.length === 0 ? (
          <Quiet tree={tree} />
        ) : (
          <>
            <Headline tree={tree} forest={forest}>
              <CopyButton
                text={incidentMarkdown(tree, forest, database?.name ?? 'the database')}
                what="the incident as Markdown"
                label="Copy the incident as Markdown"
              />
            </Headline>
            {tree.capped && (
              <p class="faint">
                The server has more locks than are read at once. Whoever waits is here; of what they
                hold, some may be missing.
              </p>
            )}
            <WhoBlocksWhom forest={forest} />
          </>
        )}
        <Holding sessions={idle} />
      </div>
      {pid !== null && <SessionPanel key={pid} pid={Number(pid)} tree={tree} isLive={isLive} />}
      {pid === null && lock !== null && <LockPanel key={lock} name={lock} tree={tree} />}
    </div>
  )
}

/** The same thing twice: drawn, and as a list. Where there is room for the drawing, the list is unseen. */
function WhoBlocksWhom({ forest }: { readonly forest: readonly Branch[] }): JSX.Element {
  const place = usePlace()
  const [focusedPid, setFocusedPid] = useState<number>()
  const asked = place.query.get('view')
  const isGraph = asked === null ? innerWidth >= 900 : asked === 'graph'
  const pid = place.query.get('pid')
  const show = (view: string): void => go(changed(place, { view }), { replace: true })
  return (
    <section class="section who" aria-labelledby="who-title">
      <header class="section-head">
        <h2 id="who-title">Who blocks whom</h2>
        <p class="legend-kinds">
          <svg width="34" height="8" aria-hidden="true" class="edge edge-hard">
            <path d="M0 4H32" />
          </svg>{' '}
          waits for the holder
          <svg width="34" height="8" aria-hidden="true" class="edge edge-soft">
            <path d="M0 4H32" />
          </svg>{' '}
          queues behind a waiter
        </p>
        <div class="switch" role="group" aria-label="Shown as">
          <button type="button" aria-pressed={isGraph} onClick={() => show('graph')}>
            Graph
          </button>
          <button type="button" aria-pressed={!isGraph} onClick={() => show('list')}>
            List
          </button>
        </div>
      </header>
      {isGraph && (
        <BlockingGraph
          forest={forest}
          selectedPid={pid === null ? undefined : Number(pid)}
          selectedLock={place.query.get('lock') ?? undefined}
          focusedPid={focusedPid}
          onSession={(chosen) => go(changed(place, { pid: chosen, lock: undefined }))}
          onLock={(name) => go(changed(place, { lock: name, pid: undefined }))}
        />
      )}
      <div class={isGraph ? 'unseen' : ''}>
        <BlockingList
          forest={forest}
          selectedPid={pid === null ? undefined : Number(pid)}
          onFocus={setFocusedPid}
        />
      </div>
    </section>
  )
}

const quietMs = 5_000

/** Tells a screen reader that an incident began, changed its root or ended; not each second. */
function useAnnouncements(tree: LockTree | undefined): void {
  const said = useRef({ root: undefined as number | undefined, at: 0, waiting: 0 })
  useEffect(() => {
    if (tree === undefined) return
    const waiting = waitingIn(tree)
    document.title = `${waiting > 0 ? `${waiting} wait · ` : ''}Now · Holdfast`
    const root = waiting > 0 ? tree.roots[0] : undefined
    const { current } = said
    if (root === current.root || Date.now() - current.at < quietMs) return
    said.current = { root, at: Date.now(), waiting }
    if (root === undefined) announce('Nobody waits any more.')
    else {
      const { application } = tree.sessions.find(({ pid }) => pid === root) ?? {}
      announce(
        `${plural(waiting, 'session waits', 'sessions wait')}; first in the way is ${application ? `${application}, ` : ''}pid ${root}.`,
      )
    }
  }, [tree])
}
