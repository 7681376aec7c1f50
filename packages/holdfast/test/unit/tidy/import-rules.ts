import { posix } from 'node:path'
import { type Layer, roomName } from './layer-table.ts'
import { finding, importsOf, type SourceTree } from './source-tree.ts'

interface Place {
  readonly layer: Layer
  /** Files beside the rooms are one place, the face of the package. */
  readonly room: string
}

/** Holds every import to the layer table, and keeps third parties out. */
export function checkImports(
  sources: SourceTree,
  layers: readonly Layer[],
  dependencies: ReadonlySet<string>,
): string[] {
  const findings: string[] = []
  for (const [path, file] of sources) {
    const from = placeOf(path, layers)
    if (from === undefined) {
      findings.push(`${path}:1 belongs to no room of the layer table`)
      continue
    }
    for (const { specifier, typeOnly, node } of importsOf(file)) {
      const report = (problem: string): number => findings.push(finding(node, problem))
      if (specifier.startsWith('node:') || dependencies.has(packageOf(specifier))) continue
      if (!specifier.startsWith('.')) {
        report(`imports ${specifier}: clients and ORMs are typed by shape, never imported`)
        continue
      }
      const target = posix.join(posix.dirname(path), specifier)
      const to = sources.has(target) ? placeOf(target, layers) : undefined
      if (to === undefined) {
        report(`imports ${specifier}, which is no file of a room`)
      } else if (to.room !== from.room && !mayImport(from, to, typeOnly)) {
        const allowed = [...from.layer.mayImport].join(', ') || 'nothing'
        report(`imports ${target}: ${from.room} may import ${allowed}`)
      }
    }
  }
  return findings
}

function mayImport({ layer }: Place, to: Place, typeOnly: boolean): boolean {
  const name = roomName(to.room)
  return layer.mayImport.has(name) || (typeOnly && layer.mayImportTypesOf.has(name))
}

function placeOf(path: string, layers: readonly Layer[]): Place | undefined {
  for (const layer of layers) {
    for (const room of layer.rooms) {
      if (room === path) return { layer, room: '(face)' }
      if (room.endsWith('/') && path.startsWith(room)) return { layer, room }
    }
  }
  return undefined
}

function packageOf(specifier: string): string {
  const [first = '', second = ''] = specifier.split('/')
  return first.startsWith('@') ? `${first}/${second}` : first
}
