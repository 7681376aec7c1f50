import { ConsoleOptionError } from '../core/option-error.ts'
import type { Whereabouts } from './same-origin.ts'

/** Where the session of a browser is kept. */
export interface CookieSpot {
  readonly name: string
  readonly secure: boolean
}

/**
 * Over TLS the name starts with `__Host-`: a browser takes such a cookie from this host alone, not from a
 * neighbour under the same domain. Behind a proxy neither the address nor the host header says what browsers see, so
 * the origins that were declared decide. Only where none has TLS and the address is this very machine, there is no
 * Secure; the port is in the name then, because cookies do not tell ports apart.
 */
export function cookieSpot(url: URL, { host, origins }: Whereabouts, base: string): CookieSpot {
  const suffix = base.replaceAll(/[^a-z0-9]/gi, '_')
  const hasTls = url.protocol === 'https:' || origins.some((origin) => origin.startsWith('https:'))
  if (hasTls || !isLoopback(host)) {
    return { name: `__Host-holdfast${suffix}`, secure: true }
  }
  return { name: `holdfast_${/:(\d+)$/.exec(host)?.[1] ?? '80'}${suffix}`, secure: false }
}

/** Whether a host header names this machine. */
function isLoopback(host: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?$/i.test(host)
}

/**
 * An origin under which browsers may see the console. Without TLS, tokens and cookies could be read on the way.
 *
 * @throws ConsoleOptionError
 */
export function checkedOrigin(text: string): string {
  const url = URL.parse(text)
  if (url === null || url.origin !== text || !/^https?:$/.test(url.protocol)) {
    throw new ConsoleOptionError('origins takes origins like https://ops.example.com')
  }
  if (url.protocol === 'http:' && !isLoopback(url.host)) {
    throw new ConsoleOptionError(
      'origins must be https: without it, tokens and cookies can be read on the way',
    )
  }
  return text
}

/** All values under a name: a neighbour on another path may have set one too. */
export function readCookies(header: string | null, name: string): string[] {
  return (header ?? '')
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`))
    .map((pair) => pair.slice(name.length + 1))
    .slice(0, 4)
}

/** The header that sets it, or with an empty value clears it. */
export function writeCookie({ name, secure }: CookieSpot, value: string): string {
  const parts = [`${name}=${value}`, 'Path=/', 'HttpOnly', 'SameSite=Strict']
  if (secure) parts.push('Secure')
  if (value === '') parts.push('Max-Age=0')
  return parts.join('; ')
}
