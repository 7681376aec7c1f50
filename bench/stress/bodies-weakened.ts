/**
 * `node --import` this to run the library with one protection taken out of its source, named by
 * BODIES_WITHOUT. The packages have no switch for that, and must not have one. Cutting fails loudly where the
 * text is no longer there: a control that still has its protection proves nothing.
 */
import { registerHooks } from 'node:module'
import { cuts, isControlName } from './bodies-cuts.ts'

const without = process.env['BODIES_WITHOUT'] ?? ''
if (!isControlName(without)) throw new Error(`there is no control "${without}"`)
const wanted = new Map(
  Object.entries(cuts[without]).map(([file, edits]) => [
    new URL(`../../packages/holdfast/src/${file}`, import.meta.url).href,
    edits,
  ]),
)

function textOf(source: unknown): string {
  if (typeof source === 'string') return source
  return new TextDecoder().decode(source as Uint8Array)
}

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context)
    const edits = wanted.get(url)
    if (edits === undefined) return loaded
    let source = textOf(loaded.source)
    for (const [text, instead] of edits) {
      const cut = source.replaceAll(text, instead)
      if (cut === source) throw new Error(`${url} has no ${text.source} any more`)
      source = cut
    }
    return { ...loaded, source }
  },
})
