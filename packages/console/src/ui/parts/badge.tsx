import type { ComponentChildren, JSX } from 'preact'
import type { Tone } from './tone.ts'

/** A word with a mark. The mark has a shape of its own per tone, so that colour is never all there is. */
export function Badge(props: {
  readonly tone?: Tone
  readonly children: ComponentChildren
}): JSX.Element {
  const tone = props.tone ?? 'plain'
  return (
    <span class={`badge badge-${tone}`}>
      <Mark tone={tone} />
      {props.children}
    </span>
  )
}

const marks: Readonly<Record<Tone, JSX.Element>> = {
  plain: <circle cx="5" cy="5" r="3" class="mark-hollow" />,
  good: <path d="M1.5 5.300l2.5 2.5 4.5-5" class="mark-line" />,
  wait: <path d="M2 1.5h6L5 5l3 3.5H2L5 5z" class="mark-solid" />,
  bad: <path d="M5 .5l4.5 4.5L5 9.5.5 5z" class="mark-solid" />,
  info: <circle cx="5" cy="5" r="3.5" class="mark-solid" />,
}

export function Mark({ tone }: { readonly tone: Tone }): JSX.Element {
  return (
    <svg class={`mark mark-${tone}`} viewBox="0 0 10 10" aria-hidden="true">
      {marks[tone]}
    </svg>
  )
}
