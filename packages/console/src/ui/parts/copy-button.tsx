import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { announce } from './announcer.tsx'
import { Icon } from './icon.tsx'

/** Copies a text. Without access to the clipboard, as on plain HTTP, it selects the text instead. */
export function CopyButton(props: {
  readonly text: string
  readonly what: string
  /** Seen on the button, if "Copy" is not enough. */
  readonly label?: string
}): JSX.Element {
  const [copied, setCopied] = useState(false)
  useEffect(() => {
    if (!copied) return undefined
    const timer = window.setTimeout(() => setCopied(false), 2000)
    return () => clearTimeout(timer)
  }, [copied])

  const copy = async (event: MouseEvent): Promise<void> => {
    const button = event.currentTarget as HTMLElement
    try {
      await navigator.clipboard.writeText(props.text)
      setCopied(true)
      announce(`Copied: ${props.what}`)
    } catch {
      const shown = button.parentElement?.querySelector('code')
      if (shown) getSelection()?.selectAllChildren(shown)
      announce(
        shown ? 'Selected; copy it with the keyboard.' : 'This browser does not let the page copy.',
      )
    }
  }
  return (
    <button type="button" class="button button-small" onClick={(event) => void copy(event)}>
      <Icon name={copied ? 'check' : 'copy'} />
      {copied ? 'Copied' : (props.label ?? 'Copy')}
      {props.label === undefined && <span class="unseen"> {props.what}</span>}
    </button>
  )
}

/** A command to paste into a terminal. */
export function Command(props: { readonly text: string }): JSX.Element {
  return (
    <div class="command">
      <code>{props.text}</code>
      <CopyButton text={props.text} what="the command" />
    </div>
  )
}
