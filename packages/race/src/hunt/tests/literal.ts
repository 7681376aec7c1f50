/** Values as JavaScript writes them, on one line. */
import { types } from 'node:util'

/** @throws TypeError for what has no literal, such as a function */
export function literal(value: unknown): string {
  if (typeof value === 'string') return text(value)
  if (typeof value === 'bigint') return `${value}n`
  if (typeof value !== 'object' || value === null) {
    if (typeof value === 'function' || typeof value === 'symbol') throw noLiteral()
    return Object.is(value, -0) ? '-0' : String(value)
  }
  if (Array.isArray(value)) return `[${value.map(literal).join(', ')}]`
  if (types.isDate(value)) return `new Date(${value.getTime()})`
  if (types.isMap(value)) return `new Map(${literal([...value])})`
  if (types.isSet(value)) return `new Set(${literal([...value])})`
  if (types.isUint8Array(value)) return `new Uint8Array(${literal([...value])})`
  if (types.isRegExp(value) || ArrayBuffer.isView(value) || types.isAnyArrayBuffer(value)) {
    throw noLiteral()
  }
  const fields = Object.entries(value).map(([name, one]) => `${nameText(name)}: ${literal(one)}`)
  return fields.length === 0 ? '{}' : `{ ${fields.join(', ')} }`
}

/** The name of a field. */
export function nameText(name: string): string {
  // Without brackets it would be no field.
  if (name === '__proto__') return `['__proto__']`
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : text(name)
}

function text(value: string): string {
  const inside = JSON.stringify(value).slice(1, -1)
  return `'${inside.replaceAll('\\"', '"').replaceAll("'", "\\'")}'`
}

function noLiteral(): TypeError {
  return new TypeError('a value of the call cannot be written as JavaScript')
}
