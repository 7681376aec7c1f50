/** How lengths, times and amounts are written. One place, so that the same thing looks the same everywhere. */

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour

/** `0.4 s`, `12 s`, `3 min 05 s`, `2 h 10 min`, `4 d 3 h`. */
export function length(ms: number): string {
  if (ms < 10_000) return `${(Math.max(0, ms) / 1000).toFixed(1)} s`
  if (ms < minute) return `${Math.floor(ms / 1000)} s`
  if (ms < hour) return `${Math.floor(ms / minute)} min ${two(Math.floor((ms % minute) / 1000))} s`
  if (ms < day) return `${Math.floor(ms / hour)} h ${two(Math.floor((ms % hour) / minute))} min`
  return `${Math.floor(ms / day)} d ${Math.floor((ms % day) / hour)} h`
}

/** The same where there is little room: `12 s`, `3m 05s`, `2h 10m`, `4d 3h`. */
export function shortLength(ms: number): string {
  if (ms < minute) return length(ms)
  if (ms < hour) return `${Math.floor(ms / minute)}m ${two(Math.floor((ms % minute) / 1000))}s`
  if (ms < day) return `${Math.floor(ms / hour)}h ${two(Math.floor((ms % hour) / minute))}m`
  return `${Math.floor(ms / day)}d ${Math.floor((ms % day) / hour)}h`
}

/** Of a measurement: `0.8 ms`, `25 ms`, `1.2 s`. */
export function duration(ms: number | undefined): string {
  if (ms === undefined) return '–'
  if (ms < 10) return `${trimmed(ms, 1)} ms`
  if (ms < 1000) return `${Math.round(ms)} ms`
  return `${trimmed(ms / 1000, 1)} s`
}

const grouped = new Intl.NumberFormat('en', { useGrouping: true })

/** `1,234,567`. */
export function count(value: number): string {
  return grouped.format(value)
}

/** An amount of the ledger, which may be larger than a number can be. */
export function amount(decimal: string): string {
  return /^-?\d+$/.test(decimal) ? grouped.format(BigInt(decimal)) : decimal
}

/** The same with its sign, as in a list of movements. */
export function signed(decimal: string): string {
  return decimal === '0' ? '' : `${decimal.startsWith('-') ? '' : '+'}${amount(decimal)}`
}

/** `14:03:07` in the reader's time zone. */
export function clock(iso: string, withSeconds = true): string {
  const at = new Date(iso)
  const text = `${two(at.getHours())}:${two(at.getMinutes())}`
  return withSeconds ? `${text}:${two(at.getSeconds())}` : text
}

/** `2026-11-15 14:03:07` in the reader's time zone. */
export function moment(iso: string): string {
  const at = new Date(iso)
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${clock(iso)}`
}

/** `3 min 05 s ago`, `in 12 s`. */
export function relative(iso: string, now: number): string {
  const ms = now - Date.parse(iso)
  return ms >= 0 ? `${coarse(ms)} ago` : `in ${coarse(-ms)}`
}

/** `1 session`, `2 sessions`. */
export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`
}

const innodbModes: Readonly<Record<string, string>> = {
  S: 'shared',
  X: 'exclusive',
  IS: 'intends to share',
  IX: 'intends to change',
  AUTO_INC: 'next number',
}
const innodbParts: Readonly<Record<string, string>> = {
  REC_NOT_GAP: 'row alone',
  GAP: 'gap before it',
  INSERT_INTENTION: 'to insert',
}

/** `ExclusiveLock` → `exclusive`, `AccessShareLock` → `access share`; of InnoDB `X,GAP` → `exclusive, gap before it`. */
export function mode(text: string): string {
  const [of = '', ...parts] = text.split(',')
  const known = innodbModes[of]
  if (known !== undefined) {
    return [known, ...parts.map((part) => innodbParts[part] ?? part.toLowerCase())].join(', ')
  }
  return text
    .replace(/Lock$/, '')
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .toLowerCase()
}

/** Cuts a text that a picture has no room for; the whole is in its title. */
export function shorten(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, Math.max(1, most - 1))}…`
}

function coarse(ms: number): string {
  if (ms < minute) return `${Math.floor(ms / 1000)} s`
  if (ms < hour) return `${Math.floor(ms / minute)} min`
  if (ms < 2 * day) return `${Math.floor(ms / hour)} h`
  return `${Math.floor(ms / day)} d`
}

function two(value: number): string {
  return String(value).padStart(2, '0')
}

function trimmed(value: number, digits: number): string {
  return value.toFixed(digits).replace(/\.0+$/, '')
}
