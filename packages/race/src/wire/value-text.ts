/** Decodes values in PostgreSQL's binary format, for people to read. */

const decoders: ReadonlyMap<number, (bytes: Buffer) => string> = new Map([
  [16, (bytes) => (bytes.readUInt8(0) === 0 ? 'f' : 't')],
  [20, (bytes) => String(bytes.readBigInt64BE(0))],
  [21, (bytes) => String(bytes.readInt16BE(0))],
  [23, (bytes) => String(bytes.readInt32BE(0))],
  [26, (bytes) => String(bytes.readUInt32BE(0))],
  [700, (bytes) => String(bytes.readFloatBE(0))],
  [701, (bytes) => String(bytes.readDoubleBE(0))],
  [1082, (bytes) => new Date(epoch + bytes.readInt32BE(0) * 86_400_000).toISOString().slice(0, 10)],
  [1114, timestamp],
  [1184, (bytes) => `${timestamp(bytes)}Z`],
  [1700, numeric],
  [2950, uuid],
  [3802, (bytes) => bytes.toString('utf8', 1)],
])

// text, varchar, bpchar, name, char, json, xml, unknown
const texts = new Set([25, 1043, 1042, 19, 18, 114, 142, 705])

const epoch = Date.UTC(2000, 0, 1)

/**
 * A value as text. Binary values of types that are not known come as hexadecimal; those of an
 * unknown type (0) as text if they look like it.
 */
export function valueText(bytes: Buffer, type: number, format: number): string {
  if (format === 0 || texts.has(type)) return bytes.toString('utf8')
  try {
    const decode = decoders.get(type)
    if (decode) return decode(bytes)
  } catch {
    // Not the length that the type should have: show the bytes.
  }
  return type === 0 && isPrintable(bytes) ? bytes.toString('utf8') : `\\x${bytes.toString('hex')}`
}

function isPrintable(bytes: Buffer): boolean {
  return bytes.length > 0 && bytes.every((byte) => byte >= 0x20 && byte !== 0x7f)
}

function timestamp(bytes: Buffer): string {
  const micros = bytes.readBigInt64BE(0)
  const instant = new Date(epoch + Number(micros / 1000n)).toISOString()
  return instant.replace('T', ' ').slice(0, -1)
}

function uuid(bytes: Buffer): string {
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

/** Base 10,000 digits, the weight of the first one, a sign and the digits after the point. */
function numeric(bytes: Buffer): string {
  const count = bytes.readInt16BE(0)
  const weight = bytes.readInt16BE(2)
  const sign = bytes.readUInt16BE(4)
  const scale = bytes.readInt16BE(6)
  if (sign === 0xc000) return 'NaN'
  const digit = (place: number): string => {
    const index = weight - place
    const value = index >= 0 && index < count ? bytes.readInt16BE(8 + index * 2) : 0
    return String(value).padStart(4, '0')
  }
  let whole = ''
  for (let place = Math.max(weight, 0); place >= 0; place -= 1) whole += digit(place)
  let fraction = ''
  for (let place = -1; fraction.length < scale; place -= 1) fraction += digit(place)
  const text = whole.replace(/^0+(?=\d)/, '')
  const minus = sign === 0x4000 ? '-' : ''
  return scale > 0 ? `${minus}${text}.${fraction.slice(0, scale)}` : `${minus}${text}`
}
