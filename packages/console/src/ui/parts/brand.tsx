import type { JSX } from 'preact'

/** The sign of the house. */
export function Brand(): JSX.Element {
  return (
    <svg class="brand-sign" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="8" />
      <path d="M10 7v18M22 7v18M10 16h12" />
      <circle cx="16" cy="16" r="3.5" />
    </svg>
  )
}
