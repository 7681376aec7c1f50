/** A UUID as four numbers of 32 bits: what is sent of it in binary. */
export class Words {
  readonly a: number
  readonly b: number
  readonly c: number
  readonly d: number

  constructor(a: number, b: number, c: number, d: number) {
    this.a = a
    this.b = b
    this.c = c
    this.d = d
  }
}

const notDigit = 255
/** Of a character its value as a hexadecimal digit in lower case. */
const digits = new Uint8Array(128).fill(notDigit)
for (let digit = 0; digit < 16; digit += 1) digits[digit.toString(16).charCodeAt(0)] = digit

const [length, hyphen] = [36, 45]

/** `undefined` for what is no UUID in lower case with its four hyphens. */
export function wordsOf(uuid: string): Words | undefined {
  if (uuid.length !== length) return undefined
  if (uuid.charCodeAt(8) !== hyphen || uuid.charCodeAt(13) !== hyphen) return undefined
  if (uuid.charCodeAt(18) !== hyphen || uuid.charCodeAt(23) !== hyphen) return undefined
  const [a, b] = [half(uuid, 0), half(uuid, 4)]
  const [c, d] = [half(uuid, 9), half(uuid, 14)]
  const [e, f] = [half(uuid, 19), half(uuid, 24)]
  const [g, h] = [half(uuid, 28), half(uuid, 32)]
  if ((a | b | c | d | e | f | g | h) < 0) return undefined
  return new Words((a << 16) | b, (c << 16) | d, (e << 16) | f, (g << 16) | h)
}

/** Four digits; below zero if one of them is none. */
function half(text: string, at: number): number {
  const one = digitAt(text, at)
  const two = digitAt(text, at + 1)
  const three = digitAt(text, at + 2)
  const four = digitAt(text, at + 3)
  return (one | two | three | four) > 15 ? -1 : (one << 12) | (two << 8) | (three << 4) | four
}

function digitAt(text: string, at: number): number {
  return digits[text.charCodeAt(at)] ?? notDigit
}
