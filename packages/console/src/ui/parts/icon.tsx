import type { JSX } from 'preact'

const paths = {
  now: 'M4 6h6v5H4zM14 3h6v5h-6zM14 14h6v5h-6zM10 8.5h2v-3h2M12 8.5v8h2',
  locks: 'M7 11V8a5 5 0 0 1 10 0v3M5 11h14v9H5zM12 14.5v2.5',
  ledger: 'M5 4h12a2 2 0 0 1 2 2v14H7a2 2 0 0 1-2-2zM5 17h14M9 8h6M9 12h6',
  claims: 'M4 12a8 8 0 1 0 16 0 8 8 0 1 0-16 0M12 8v4l3 2',
  jobs: 'M4 8h16v12H4zM9 8V5h6v3M9.5 12l5 5M14.5 12l-5 5',
  schedules: 'M4 6h16v14H4zM4 10h16M8 3v4M16 3v4M8 14h2M14 14h2',
  doctor: 'M3 12h4l2-6 4 12 3-8 1.5 2H21',
  check: 'M5 12.5l4.5 4.5L19 7.5',
  warning: 'M12 4l9 16H3zM12 10v4M12 17v.01',
  stop: 'M6 6h12v12H6z',
  close: 'M6 6l12 12M18 6L6 18',
  copy: 'M9 9h10v11H9zM5 15V4h10',
  lost: 'M4 4l16 16M9 15.5a4.5 4.5 0 0 1 5-.9M5.5 12a9.5 9.5 0 0 1 4-2.4M18.5 12a9.5 9.5 0 0 0-5-2.6M12 19v.01',
  theme: 'M12 4a8 8 0 1 0 0 16zM12 4a8 8 0 0 1 0 16',
  help: 'M9 9a3 3 0 1 1 4 2.8c-.8.4-1 1-1 1.7M12 17v.01M3 12a9 9 0 1 0 18 0 9 9 0 1 0-18 0',
  person: 'M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM5 20a7 7 0 0 1 14 0',
  play: 'M8 5l11 7-11 7z',
  pause: 'M8 5v14M16 5v14',
  skip: 'M6 12h12',
  lock: 'M8 11V8a4 4 0 0 1 8 0v3M6 11h12v8H6z',
  arrow: 'M5 12h14M13 6l6 6-6 6',
  history: 'M4 12a8 8 0 1 0 2.5-5.8L4 8.5M4 4v4.5h4.5M12 8v4.5l3 1.5',
  search: 'M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM16 16l4.5 4.5',
} as const

export type IconName = keyof typeof paths

/** A picture beside a word; it never stands for one, so screen readers do not hear of it. */
export function Icon({ name }: { readonly name: IconName }): JSX.Element {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={paths[name]} />
    </svg>
  )
}
