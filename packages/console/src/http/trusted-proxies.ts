import { BlockList, isIP } from 'node:net'
import { ConsoleOptionError } from '../core/option-error.ts'

/** How many proxies are in front, or their addresses: `10.0.0.7`, `10.0.0.0/8`. */
export type TrustProxy = number | readonly string[]

/** Says where a request comes from, given who connected and what is in `x-forwarded-for`. */
export type ClientOf = (peer: string | undefined, forwarded: string | null) => string | undefined

const most = 20

/**
 * Without trusted proxies the header is not read: anybody can send it. Each proxy adds whom it was asked by
 * at the end, so it is read from there, and only as far as proxies are trusted.
 *
 * @throws ConsoleOptionError
 */
export function clientBehind(trust: TrustProxy | undefined): ClientOf {
  if (trust === undefined || trust === 0) return (peer) => peer
  if (typeof trust === 'number') {
    if (!Number.isSafeInteger(trust) || trust < 0 || trust > most) throw invalid()
    return (peer, forwarded) => {
      const chain = [...addressesIn(forwarded), peer]
      // With fewer than there should be, somebody came past the proxies.
      return chain.at(-1 - trust) ?? peer
    }
  }
  // `true` would trust whoever asks.
  if (!Array.isArray(trust)) throw invalid()
  const trusted = listOf(trust)
  const isTrusted = (address: string | undefined): boolean =>
    address !== undefined && trusted.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
  return (peer, forwarded) => {
    // A handler of requests alone is not told who connected: it was said that this is a proxy.
    const chain = [...addressesIn(forwarded), ...(peer === undefined ? [] : [plain(peer)])]
    const at = chain.findLastIndex((address) => !isTrusted(address))
    return chain[Math.max(0, at)]
  }
}

function invalid(): Error {
  return new ConsoleOptionError(`trustProxy is a number of proxies up to ${most}, or a list`)
}

function listOf(texts: readonly string[]): BlockList {
  const list = new BlockList()
  for (const text of texts) {
    const [address = '', bits] = text.split('/')
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    try {
      if (bits === undefined) list.addAddress(address, family)
      else list.addSubnet(address, Number(bits), family)
    } catch {
      throw new ConsoleOptionError(
        'trustProxy takes addresses like 10.0.0.7, 10.0.0.0/8 or fd00::/8',
      )
    }
  }
  return list
}

/** Undefined is something that is no address: nobody is trusted further than that. */
function addressesIn(forwarded: string | null): (string | undefined)[] {
  if (forwarded === null) return []
  return forwarded
    .split(',')
    .slice(-most)
    .map((text) => plain(text.trim()))
}

/** Without the port that some proxies add, the zone, and the form that IPv4 has on a socket of both kinds. */
function plain(text: string): string | undefined {
  const [, bracketed] = /^\[([^\]]+)\](?::\d+)?$/.exec(text) ?? []
  const [, withPort] = /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(text) ?? []
  const address = (bracketed ?? withPort ?? text)
    .replace(/%.*$/, '')
    .replace(/^::ffff:(?=\d+\.)/i, '')
  return isIP(address) === 0 ? undefined : address
}
