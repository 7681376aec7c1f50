/** Where the session of a browser is kept. */
export interface CookieSpot {
  readonly name: string
  readonly secure: boolean
}

/**
 * Over TLS the name starts with `__Host-`: a browser takes such a cookie from this host alone, not from a
 * neighbour under the same domain. Only where the address is this very machine and has no TLS, there is no
 * Secure; the port is in the name then, because cookies do not tell ports apart.
 */
export function cookieSpot(url: URL, host: string, base: string): CookieSpot {
  const suffix = base.replaceAll(/[^a-z0-9]/gi, '_')
  if (url.protocol === 'https:' || !isLoopback(host)) {
    return { name: `__Host-holdfast${suffix}`, secure: true }
  }
  return { name: `holdfast_${/:(\d+)$/.exec(host)?.[1] ?? '80'}${suffix}`, secure: false }
}

/** Whether a host header names this machine. */
export function isLoopback(host: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?$/i.test(host)
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
