interface NamedText {
  readonly text: string
  readonly name: string
}

/** By layout and variant. */
const texts = new WeakMap<object, Map<string, NamedText>>()

/**
 * The text of one variant of a statement over one table, made once: putting it together costs more
 * than sending it.
 */
export function textOf(layout: object, variant: string, make: () => string): NamedText {
  const of = texts.get(layout) ?? new Map<string, NamedText>()
  texts.set(layout, of)
  const known = of.get(variant)
  if (known !== undefined) return known
  const text = make()
  const made = { text, name: 'claims' }
  of.set(variant, made)
  return made
}
