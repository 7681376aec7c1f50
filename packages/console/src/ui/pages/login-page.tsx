import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { ApiFailure, login } from '../live/api.ts'
import { askForAccess } from '../live/info.ts'
import { Brand } from '../parts/brand.tsx'
import { Failure } from '../parts/notice.tsx'
import { address, go, usePlace } from '../router.ts'

/**
 * Asks for a token. The command prints an address with one in its fragment, which no server and no log
 * sees; it is taken out of the address at once and used without a click.
 */
export function LoginPage({ why }: { readonly why: ApiFailure | undefined }): JSX.Element {
  const [failure, setFailure] = useState<ApiFailure>()
  const [busy, setBusy] = useState(false)
  const { page } = usePlace()
  const field = useRef<HTMLInputElement>(null)

  const enter = async (token: string): Promise<void> => {
    setBusy(true)
    try {
      await login(token)
      if (page === undefined) go(address('now'), { replace: true })
      await askForAccess()
    } catch (error) {
      if (!(error instanceof ApiFailure)) throw error
      setFailure(error)
      setBusy(false)
      field.current?.focus()
    }
  }
  useEffect(() => {
    document.title = 'Log in · Holdfast'
    const token = new URLSearchParams(location.hash.slice(1)).get('token')
    if (token === null) return
    history.replaceState(null, '', location.pathname + location.search)
    void enter(token)
  }, [])

  const ended = why !== undefined && why.error.code !== 'NOT_LOGGED_IN'
  return (
    <main class="door" id="main">
      <h1>
        <Brand /> Holdfast console
      </h1>
      {failure ? <Failure failure={failure} /> : ended && why && <Failure failure={why} />}
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void enter(field.current?.value.trim() ?? '')
        }}
      >
        <label>
          <span>Token</span>
          <input
            ref={field}
            type="password"
            name="token"
            autocomplete="current-password"
            required
          />
        </label>
        <button type="submit" class="button button-main" disabled={busy}>
          {busy ? 'Looking…' : 'Log in'}
        </button>
      </form>
      <p class="faint">
        Whoever started the console has a token: the command prints one, and a mounted console has
        those of its configuration.
      </p>
    </main>
  )
}

/** Nobody can get in: there are no credentials. */
export function ClosedPage({ why }: { readonly why: ApiFailure }): JSX.Element {
  return (
    <main class="door" id="main">
      <h1>
        <Brand /> This console is closed
      </h1>
      <p>{why.error.message}</p>
      <p>{why.error.next}</p>
      <p class="faint">
        <code>{why.error.code}</code>
      </p>
    </main>
  )
}

const retryMs = 3000

/** The server does not answer at all, or not as it should. */
export function AwayPage({ why }: { readonly why: ApiFailure }): JSX.Element {
  useEffect(() => {
    const timer = window.setInterval(() => void askForAccess(), retryMs)
    return () => clearInterval(timer)
  }, [])
  return (
    <main class="door" id="main">
      <h1>
        <Brand /> Holdfast console
      </h1>
      <Failure failure={why} />
      <p class="faint">Trying again every {retryMs / 1000} seconds.</p>
    </main>
  )
}
