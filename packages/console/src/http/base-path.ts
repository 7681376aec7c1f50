import { ConsoleOptionError } from '../core/option-error.ts'

/** Names that start paths of our own; a base path that starts so could not be told from them. */
const own: readonly string[] = ['api', 'assets', 'metrics']

/** `/ops/console/` becomes `/ops/console`; the root is empty. */
export function checkedBase(base: string): string {
  if (base === '' || base === '/') return ''
  if (!/^(\/[\w.~-]+)+\/?$/.test(base) || /\/\.{1,2}(\/|$)/.test(base)) {
    throw new ConsoleOptionError(
      'base is a path like /ops/console, of letters, digits and any of - _ . ~',
    )
  }
  if (own.includes(base.split('/')[1] ?? '')) {
    throw new ConsoleOptionError(`base must not start with ${own.join(', ')}`)
  }
  return base.replace(/\/$/, '')
}

/**
 * The path of a route, without the base and without a slash at the start. A framework may have taken the
 * base off already; then there is nothing to take off. Nothing is decoded: an encoded slash or dot is just
 * a path that does not exist.
 */
export function routeOf(pathname: string, base: string): string {
  const rest =
    base !== '' && (pathname === base || pathname.startsWith(`${base}/`))
      ? pathname.slice(base.length)
      : pathname
  return rest.replace(/^\//, '')
}
