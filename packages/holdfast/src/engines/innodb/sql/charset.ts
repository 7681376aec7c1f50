/** Characters that a character set has not. Of others it is taken that they have ASCII. */
const beyond: Readonly<Record<string, RegExp>> = {
  utf8mb4: /(?!)/gu,
  utf8mb3: /[\u{10000}-\u{10ffff}]/gu,
  utf8: /[\u{10000}-\u{10ffff}]/gu,
  // The server's has other characters between 128 and 159.
  latin1: /[\u0080-\u009f\u0100-\u{10ffff}]/gu,
}
const beyondAscii = /[\u0080-\u{10ffff}]/gu

/** A text with `?` for what a character set has not, as clients and servers write it. */
export function inCharset(text: string, charset: string): string {
  return text.replaceAll(beyond[charset] ?? beyondAscii, '?')
}

/** The first of the character sets of a connection in which this text would be another one. */
export function tooNarrowFor(text: string, charsets: readonly string[]): string | undefined {
  return charsets.find((charset) => inCharset(text, charset) !== text)
}

/** What is wrong with such a text: what the character set has not goes to the server as `?`, which is another text. */
export function notSent(charset: string): string {
  return `characters that the connection's character set ${charset} has not; connect with utf8mb4`
}

/** Has characters that are not in the Basic Multilingual Plane. */
const widest = /^(?:utf8mb4|utf16|utf16le|utf32|gb18030)$/

/** The first of the character sets of a connection in which two texts of a column may look alike. */
export function narrowerThan(column: string, charsets: readonly string[]): string | undefined {
  return charsets.find((charset) => {
    if (charset === 'utf8mb4' || charset === column || column === 'ascii') return false
    return /^utf8(?:mb3)?$/.test(charset) ? widest.test(column) : true
  })
}

/** The character set of a column, by its type and by what the table says of those that do not name one. */
export function charsetOf(type: string, ofTable: string | undefined): string {
  const [, named] = /character set (\w+)/.exec(type) ?? /collate ([a-z0-9]+)_/.exec(type) ?? []
  return named ?? ofTable ?? ''
}
