/** One row of the layer table in ARCHITECTURE.md. */
export interface Layer {
  readonly number: number
  /** `core/`, `engines/postgres/`, or a file beside the rooms such as `index.ts`. */
  readonly rooms: readonly string[]
  readonly mayImport: ReadonlySet<string>
  /** Rooms of which only types may be imported. */
  readonly mayImportTypesOf: ReadonlySet<string>
}

const header: readonly string[] = ['layer', 'folder', 'holds', 'may import']

/**
 * Reads the layer table out of the document, so that the document is the rule and cannot drift from
 * it. Understands in "may import": `nothing`, `all above`, room names, and `types of layer <n>`;
 * what follows a semicolon is for people.
 */
export function readLayerTable(markdown: string): Layer[] {
  const lines = markdown.split('\n').map(cells)
  const start = lines.findIndex((row) => row.join() === header.join())
  if (start === -1) throw new Error(`no table with the header | ${header.join(' | ')} |`)

  const layers: Layer[] = []
  for (const row of lines.slice(start + 2)) {
    const [layer, room, , rule] = row
    if (layer === undefined || room === undefined || rule === undefined) break
    const number = Number(layer)
    const rooms = [...room.matchAll(/`([^`]+)`/g)].flatMap(([, names]) => (names ?? '').split(' '))
    if (!Number.isInteger(number) || rooms.length === 0) {
      throw new Error(`not a row of the layer table: ${row.join(' | ')}`)
    }
    layers.push({ number, rooms, ...readRule(rule, layers) })
  }
  return layers
}

/** The name by which "may import" refers to a room: `engines/postgres/` is `engines`. */
export function roomName(room: string): string {
  return room.split('/')[0] ?? room
}

function readRule(
  rule: string,
  above: readonly Layer[],
): Pick<Layer, 'mayImport' | 'mayImportTypesOf'> {
  const known = new Set(above.flatMap(({ rooms }) => rooms.map(roomName)))
  const mayImport = new Set<string>()
  const mayImportTypesOf = new Set<string>()
  for (const term of (rule.split(';')[0] ?? '').split(',').map((text) => text.trim())) {
    const typesOf = /^types of layer (\d+)$/.exec(term)?.[1]
    if (term === 'nothing') continue
    if (term === 'all above') {
      for (const room of known) mayImport.add(room)
    } else if (typesOf !== undefined) {
      const layer = above.filter(({ number }) => number === Number(typesOf))
      for (const room of layer.flatMap(({ rooms }) => rooms)) mayImportTypesOf.add(roomName(room))
    } else if (known.has(term)) {
      mayImport.add(term)
    } else {
      throw new Error(`the layer table says "${term}", which is no room above it`)
    }
  }
  return { mayImport, mayImportTypesOf }
}

function cells(line: string): string[] {
  if (!line.startsWith('|')) return []
  return line
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim())
}
