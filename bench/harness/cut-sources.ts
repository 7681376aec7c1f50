import { replaceThere } from '@holdfast/testkit'
import { registerHooks } from 'node:module'

/** A text of a source file, and what stands in its place when the protection is gone. */
export type Edit = readonly [text: RegExp, instead: string]

/** Edits by file of a package's sources. */
export type Cuts = Readonly<Record<string, readonly Edit[]>>

/**
 * From now on a package is loaded with protections taken out of its source. The packages have no switch for that, and
 * must not have one. Cutting fails loudly where the text is no longer there: a control that still has its protection
 * proves nothing.
 */
export function cutSources(cuts: Cuts, sources = 'packages/holdfast/src'): void {
  const wanted = new Map(
    Object.entries(cuts).map(([file, edits]) => [
      new URL(`../../${sources}/${file}`, import.meta.url).href,
      edits,
    ]),
  )
  registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context)
      const edits = wanted.get(url)
      if (edits === undefined) return loaded
      let source = textOf(loaded.source)
      for (const [text, instead] of edits) source = replaceThere(url, source, text, instead)
      return { ...loaded, source }
    },
  })
}

function textOf(source: unknown): string {
  if (typeof source === 'string') return source
  return new TextDecoder().decode(source as Uint8Array)
}
