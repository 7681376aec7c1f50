import type { JSX } from 'preact'
import { useEffect } from 'preact/hooks'
import type { ApiError } from '../../core/wire.ts'
import { clock } from '../format.ts'
import { useStore } from '../external-store.ts'
import { connect, live } from '../live/stream.ts'
import { announce } from '../parts/announcer.tsx'
import { Icon } from '../parts/icon.tsx'
import { useNow } from '../ticker.ts'

/** It answers, and shows nothing. */
function isRefused({ code }: ApiError): boolean {
  return code === 'PROCESS_RIGHT_MISSING' || code === 'LOCKS_NOT_SHOWN'
}

/** Says that what is seen is old, since when, and what happens about it. */
export function LostBanner(): JSX.Element | null {
  const { state, receivedAt, retryAt, trouble } = useStore(live)
  const now = useNow()
  const isLost = state === 'lost'
  const since = receivedAt === undefined ? '' : clock(new Date(receivedAt).toISOString())
  useEffect(() => {
    if (isLost) announce('The connection is lost. What is shown may be old.')
  }, [isLost])
  if (trouble !== undefined) {
    return (
      <div class="banner" role="alert">
        <Icon name="warning" />
        <p>
          {isRefused(trouble) ? (
            <b>{trouble.message}</b>
          ) : (
            <>
              <b>The database does not answer the console.</b> {trouble.message}
            </>
          )}{' '}
          {trouble.next}
          {since && ` What is shown is from ${since}.`}
        </p>
      </div>
    )
  }
  if (!isLost) return null
  const seconds = retryAt === undefined ? 0 : Math.max(0, Math.ceil((retryAt - now) / 1000))
  return (
    <div class="banner">
      <Icon name="lost" />
      <p>
        <b>Connection lost.</b> {since ? `What is shown is stale since ${since}.` : ''}{' '}
        {seconds > 0 ? `Trying again in ${seconds} s.` : 'Trying again…'}
      </p>
      <button type="button" class="button button-small" onClick={connect}>
        Try now
      </button>
    </div>
  )
}
