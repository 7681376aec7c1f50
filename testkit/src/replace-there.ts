/**
 * The text with a piece replaced, or all of them if the pattern is global. Throws where there is none: a control that
 * still has its protection, because the text has changed, would prove nothing.
 */
export function replaceThere(where: string, text: string, piece: RegExp, instead: string): string {
  const made = text.replace(piece, () => instead)
  if (made === text) throw new Error(`${where} has no ${piece.source} any more`)
  return made
}
