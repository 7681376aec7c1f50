/** Hunts without one of their parts: each must find fewer of the races. */
import type { Footprint, Step } from '../../packages/race/src/core/model.ts'
import type { HuntParts } from '../../packages/race/src/hunt/hunt-calls.ts'
import type { Reading } from '../../packages/race/src/hunt/propose/read-footprints.ts'

export const huntControls = ['edges', 'parser'] as const
export type HuntControl = (typeof huntControls)[number]

export function without(control: HuntControl, whole: HuntParts): HuntParts {
  return control === 'edges'
    ? { ...whole, edges: async () => [] }
    : { ...whole, reading: byFirstWords }
}

/** The table behind the first word that may be followed by one, and no values. */
const byFirstWords: Reading = {
  footprint({ statements: [text = ''] }: Step): Footprint {
    const [, word = '', table] = /\b(from|into|update)\s+"?([a-z_]+)/i.exec(text) ?? []
    const base = { opaque: false, isolation: 'read committed' } as const
    if (table === undefined) return { ...base, touches: [] }
    const object = `public.${table}`
    if (word.toLowerCase() === 'from' && !/^\s*delete/i.test(text)) {
      return { ...base, touches: [{ object, mode: 'read' }] }
    }
    const ends = { how: 'commit', writes: [object], locks: [object] } as const
    return { ...base, touches: [{ object, mode: 'lock' }], ends }
  },
  bound: () => [],
}
