import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { Info } from '../core/wire.ts'
import { useStore } from './external-store.ts'
import { databaseIn, InfoContext } from './live/context.ts'
import { access, askForAccess } from './live/info.ts'
import { disconnect, listenTo } from './live/stream.ts'
import { needsLogin } from './live/api.ts'
import { AbsentPage } from './pages/absent-page.tsx'
import { ClaimsPage } from './pages/claims-page.tsx'
import { DoctorPage } from './pages/doctor-page.tsx'
import { JobsPage } from './pages/jobs-page.tsx'
import { LedgerPage } from './pages/ledger/ledger-page.tsx'
import { LocksPage } from './pages/locks/locks-page.tsx'
import { AwayPage, ClosedPage, LoginPage } from './pages/login-page.tsx'
import { NowPage } from './pages/now/now-page.tsx'
import { SchedulesPage } from './pages/schedules-page.tsx'
import { pagesOf } from './offered.ts'
import { Announcer } from './parts/announcer.tsx'
import { address, followLinks, go, type PageName, usePlace } from './router.ts'
import { Shortcuts } from './shortcuts.tsx'
import { LostBanner } from './shell/lost-banner.tsx'
import { names, Navigation } from './shell/navigation.tsx'
import { TopBar } from './shell/top-bar.tsx'

const pages: Readonly<Record<PageName, () => JSX.Element>> = {
  now: NowPage,
  locks: LocksPage,
  ledger: LedgerPage,
  claims: ClaimsPage,
  jobs: JobsPage,
  schedules: SchedulesPage,
  doctor: DoctorPage,
}

/** The door, and behind it the pages. */
export function App(): JSX.Element {
  const state = useStore(access)
  useEffect(() => void askForAccess(), [])
  if (state.kind === 'asking') return <p class="loading door">Asking the server…</p>
  if (state.kind === 'open') return <Inside info={state.info} />
  const { failure } = state
  if (failure.error.code === 'CLOSED') return <ClosedPage why={failure} />
  if (needsLogin(failure)) return <LoginPage why={failure} />
  return <AwayPage why={failure} />
}

function Inside({ info }: { readonly info: Info }): JSX.Element {
  const { page, query } = usePlace()
  const [help, setHelp] = useState(false)
  const database = query.get('database') ?? undefined
  useEffect(() => {
    listenTo(database)
    return disconnect
  }, [database])
  useEffect(() => {
    if (page === undefined) go(address('now'), { replace: true })
    else if (page !== 'now') document.title = `${names[page]} · Holdfast`
  }, [page])
  const shown = page ?? 'now'
  const offered = pagesOf(databaseIn(info, database))
  const Page = pages[shown]
  return (
    <InfoContext.Provider value={info}>
      {/* Clicks on links bubble to here; keyboards click links too. */}
      <div class="shell" onClick={followLinks}>
        <a
          class="skip"
          href="#main"
          onClick={(event) => {
            event.preventDefault()
            document.getElementById('main')?.focus()
          }}
        >
          Skip to the content
        </a>
        <TopBar onHelp={() => setHelp(true)} />
        <Navigation current={shown} offered={offered} />
        <div class="body">
          <LostBanner />
          <main id="main" tabIndex={-1}>
            {offered.includes(shown) ? (
              <Page key={`${page}/${database}`} />
            ) : (
              <AbsentPage page={shown} />
            )}
          </main>
        </div>
        <Announcer />
        <Shortcuts open={help} onOpen={setHelp} offered={offered} />
      </div>
    </InfoContext.Provider>
  )
}
