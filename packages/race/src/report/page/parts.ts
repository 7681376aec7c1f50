/** What pages of reports are made of. */
import { createHash } from 'node:crypto'
import type { Explanation } from '../explain.ts'
import { html, type Markup, trusted } from './markup.ts'
import { styles } from './styles.ts'

interface Page {
  readonly title: string
  readonly body: Markup
  readonly server: string
  /** Text of our own. */
  readonly script?: string
  /** Besides those of all pages. */
  readonly ownStyles?: string
}

/** A page that loads nothing, and whose policy forbids it to. */
export function pageOf({ title, body, server, script = '', ownStyles = '' }: Page): string {
  const look = styles + ownStyles
  const policy = `default-src 'none'; style-src ${hashOf(look)}; script-src ${script === '' ? "'none'" : hashOf(script)}`
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="${trusted(policy)}">
<title>${title}</title>
<style>${trusted(look)}</style>
</head>
<body>
<main>
${body}
<footer>Holdfast race explorer · ${server}</footer>
</main>
${script === '' ? undefined : html`<script>${trusted(script)}</script>`}
</body>
</html>
`.text
}

function hashOf(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`
}

export function cycleList({ cycle }: Explanation): Markup | undefined {
  if (cycle.length === 0) return undefined
  return html`<p class="small">Neither can have come first:</p><ul>${cycle.map((line) => html`<li>${line}</li>`)}</ul>`
}

export function fixList({ fixes }: Explanation): Markup {
  if (fixes.length === 0) return html`<p>None known for this pattern.</p>`
  const items = fixes.map(
    ({ joint, text, code }, at) =>
      html`<li>${at === 0 ? undefined : html`<span class="joint">${joint}</span> `}${text}${code === undefined ? undefined : html`<pre>${code}</pre>`}</li>`,
  )
  return html`<ol class="fixes">${items}</ol>`
}

export function legend(): Markup {
  const item = (shape: string, text: string): Markup =>
    html`<span><svg viewBox="-8 -8 16 16" aria-hidden="true">${trusted(shape)}</svg>${text}</span>`
  return html`<figcaption>
${item('<circle class="node" r="5.5"/>', 'reads')}
${item('<path class="node" d="M0-7l7 7-7 7-7-7z"/>', 'locks')}
${item('<rect class="node" x="-5" y="-5" width="10" height="10" rx="1.5"/>', 'writes')}
${item('<circle class="node" r="7"/><path class="tick" d="M-3 0l2.2 2.4 4-4.8"/>', 'commits: others see it from here on')}
${item('<rect class="bar" x="-4" y="-8" width="8" height="16" rx="4" fill="currentColor"/>', 'open transaction')}
<span>Time goes downwards. A step leads to its whole statement.</span>
</figcaption>`
}

export function sentence(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1)
}
