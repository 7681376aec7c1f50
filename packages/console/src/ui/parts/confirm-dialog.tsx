import type { ComponentChildren, JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { ApiFailure } from '../live/api.ts'
import { Failure } from './notice.tsx'

/**
 * Asks before something is done. The answer that changes nothing has the focus, Escape gives it too, and
 * the focus goes back to where it came from.
 */
export function ConfirmDialog(props: {
  readonly title: string
  readonly verb: string
  readonly children: ComponentChildren
  readonly onConfirm: () => Promise<void>
  readonly onClose: () => void
}): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null)
  const [busy, setBusy] = useState(false)
  const [failure, setFailure] = useState<ApiFailure>()
  useEffect(() => {
    const before = document.activeElement
    dialog.current?.showModal()
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus()
    }
  }, [])

  const confirm = async (): Promise<void> => {
    setBusy(true)
    try {
      await props.onConfirm()
      props.onClose()
    } catch (error) {
      if (!(error instanceof ApiFailure)) throw error
      setFailure(error)
      setBusy(false)
    }
  }
  return (
    <dialog ref={dialog} class="dialog" aria-labelledby="dialog-title" onClose={props.onClose}>
      <h2 id="dialog-title">{props.title}</h2>
      {props.children}
      {failure && <Failure failure={failure} />}
      <div class="dialog-buttons">
        <button type="button" class="button" autofocus onClick={() => dialog.current?.close()}>
          Keep it
        </button>
        <button
          type="button"
          class="button button-danger"
          disabled={busy}
          onClick={() => void confirm()}
        >
          {busy ? 'Working…' : props.verb}
        </button>
      </div>
    </dialog>
  )
}
