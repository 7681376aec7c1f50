import type { JSX } from 'preact'
import { plural } from '../format.ts'
import { useStore } from '../external-store.ts'
import { logout } from '../live/api.ts'
import { useDatabase, useInfo } from '../live/context.ts'
import { askForAccess } from '../live/info.ts'
import { live } from '../live/stream.ts'
import { waitingIn } from '../pages/now/headline.tsx'
import { Badge } from '../parts/badge.tsx'
import { Brand } from '../parts/brand.tsx'
import { Icon } from '../parts/icon.tsx'
import { Link } from '../parts/link.tsx'
import { address, changed, go, usePlace } from '../router.ts'
import { theme, turnTheme } from '../theme.ts'

/** Where one is, whether it is live, and who one is. */
export function TopBar({ onHelp }: { readonly onHelp: () => void }): JSX.Element {
  const info = useInfo()
  const chosen = useStore(theme)
  const leave = async (): Promise<void> => {
    await logout(info)
    await askForAccess()
  }
  return (
    <header class="top-bar">
      <Link to={address('now')} class="brand">
        <Brand />
        <span>Holdfast</span>
      </Link>
      <Databases />
      <Pulse />
      <div class="top-tools">
        <button type="button" class="button button-icon" onClick={turnTheme}>
          <Icon name="theme" />
          <span class="unseen">Theme: {chosen}. Change it</span>
        </button>
        <button type="button" class="button button-icon" onClick={onHelp}>
          <Icon name="help" />
          <span class="unseen">Keys</span>
        </button>
        <span class="who-am-i" title={`${info.identity.name}, may ${info.identity.role}`}>
          <Icon name="person" />
          <span>
            {info.identity.name} <span class="faint">{info.identity.role}</span>
          </span>
        </span>
        {info.csrf !== undefined && (
          <button type="button" class="button button-small" onClick={() => void leave()}>
            Log out
          </button>
        )}
      </div>
    </header>
  )
}

function Databases(): JSX.Element | null {
  const info = useInfo()
  const place = usePlace()
  const current = useDatabase() ?? info.databases[0]?.name
  if (info.databases.length < 2) return <span class="database">{current}</span>
  return (
    <label class="database">
      <span class="unseen">Database</span>
      <select
        value={current}
        onChange={(event) =>
          go(
            changed(place, {
              database: event.currentTarget.value,
              pid: undefined,
              lock: undefined,
              at: undefined,
            }),
          )
        }
      >
        {info.databases.map(({ name }) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  )
}

/** On every page: is it live, and does anybody wait? */
function Pulse(): JSX.Element {
  const { state, tree } = useStore(live)
  if (state === 'lost') return <Badge tone="bad">stale</Badge>
  if (tree === undefined) return <Badge>connecting</Badge>
  const waiting = waitingIn(tree)
  return waiting === 0 ? (
    <Badge tone="good">live, nobody waits</Badge>
  ) : (
    <Link to={address('now')} class="pulse-link">
      <Badge tone="wait">live, {plural(waiting, 'waits', 'wait')}</Badge>
    </Link>
  )
}
