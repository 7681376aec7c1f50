import { Refusal } from '../core/refusals.ts'

/** What is known of where the console is. */
export interface Whereabouts {
  /** The host header, or the host of the address. */
  readonly host: string
  /** Further origins under which browsers see it, behind a proxy that changes the host. */
  readonly origins: readonly string[]
}

/**
 * Refuses what a page of another site has a browser send. Browsers say where a request comes from, in two
 * headers that pages cannot set; programs send neither.
 */
export function assertSameOrigin(
  headers: Headers,
  where: Whereabouts,
  { needsOrigin }: { readonly needsOrigin: boolean },
): void {
  const site = headers.get('sec-fetch-site')
  if (site !== null && site !== 'same-origin') throw new Refusal('CROSS_ORIGIN')
  const origin = headers.get('origin')
  if (origin === null) {
    if (needsOrigin) throw new Refusal('CROSS_ORIGIN')
    return
  }
  if (!where.origins.includes(origin) && hostOf(origin) !== where.host.toLowerCase()) {
    throw new Refusal('CROSS_ORIGIN')
  }
}

/** Reading is refused to pages of other sites too; whoever types the address is `none`. */
export function assertNotFromElsewhere(headers: Headers): void {
  const site = headers.get('sec-fetch-site')
  if (site !== null && site !== 'same-origin' && site !== 'none') throw new Refusal('CROSS_ORIGIN')
}

/** The scheme is not compared: behind a proxy that ends TLS we see http where the browser sees https. */
function hostOf(origin: string): string | undefined {
  const url = URL.parse(origin)
  return url !== null && /^https?:$/.test(url.protocol) ? url.host : undefined
}
