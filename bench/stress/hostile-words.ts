import type { Random } from '../harness/random.ts'

/** Data that would be more than data if anybody took it for a part of a statement, a path or a screen. */

/** What runs if a text is taken for SQL. */
const attack = 'UPDATE public.canary SET n = n + 1; CREATE TABLE public.pwned ()'

/** Ways out of wherever a text may stand in a statement. */
const exits = [
  "'",
  '"',
  "''",
  "\\'",
  '$$',
  '$holdfast$',
  ')',
  "')",
  '*/',
  '--\n',
  '";',
  "';",
  '%I',
  '\\',
]

const sql = (random: Random): string => {
  const [exit = ''] = random.sample(exits, 1)
  return `x${exit}; ${attack}; --${exit}`
}

const names = [
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  'then',
  'null',
  'undefined',
  'NaN',
  'public',
  'pg_catalog',
  'holdfast',
  'PUBLIC',
]

const marks = [
  '\u202e',
  '\u200b',
  '\ufeff',
  '\u2028',
  '\u00ad',
  '\u0301',
  '\u001b[2J',
  '\u009b31m',
  '\u0007',
  '\r',
  '\n',
  '\t',
]

const unstorable = ['\0', '\ud800', '\udfff', '\\u0000', '\u0001']

const texts = [
  '',
  ' ',
  '0',
  '-1',
  '1e3',
  '{}',
  '[]',
  '{"a":1}',
  '../../etc/passwd',
  '%00',
  '<script>',
  '${n}',
  '0x1',
]

/** Lengths around the limits that texts have, and one far beyond. */
const lengths = [62, 63, 64, 255, 256, 511, 512, 513, 1_024, 2_705, 10_000]

export const sorts = ['sql', 'name', 'mark', 'unstorable', 'text', 'long', 'huge', 'mixed'] as const
export type Sort = (typeof sorts)[number]

const one = (random: Random, of: readonly string[]): string => random.sample(of, 1)[0] ?? ''

/** A text and what sort of text it is. */
export function hostileText(random: Random): readonly [Sort, string] {
  const draw = random.integer(0, 999)
  if (draw < 250) return ['sql', sql(random)]
  if (draw < 370) return ['name', one(random, names)]
  if (draw < 520) return ['mark', `a${one(random, marks)}b`]
  if (draw < 700) return ['unstorable', `a${one(random, unstorable)}b`]
  if (draw < 800) return ['text', one(random, texts)]
  if (draw < 900) {
    const letter = one(random, ['x', 'é', '😀', '"', "'"])
    return ['long', letter.repeat(random.sample(lengths, 1)[0] ?? 1)]
  }
  if (draw < 901) return ['huge', 'x'.repeat(10_000_000)]
  return ['mixed', `${one(random, marks)}${sql(random)}${one(random, unstorable)}`]
}

/** Two names that differ, and look or are put together alike. */
export function twins(
  random: Random,
): readonly [readonly [string, string], readonly [string, string]] {
  const name = `${one(random, names)}-${random.integer(0, 30)}`
  const between = one(random, [':', ',', '/', '|', '"', '","', ' ', '\u001f', '\\'])
  return (
    [
      [
        [`${name}${between}a`, 'b'],
        [name, `a${between}b`],
      ],
      [
        [name, 'caf\u00e9'],
        [name, 'cafe\u0301'],
      ],
      [
        [name, 'a'],
        [name, 'A'],
      ],
      [
        [name, 'a'],
        [name, 'a '],
      ],
      [
        [name, 'a'],
        [name, 'a\u200b'],
      ],
      [
        [name, '1'],
        [name, '01'],
      ],
      [
        [name, 'null'],
        ['null', name],
      ],
      [
        [name, sql(random)],
        [sql(random), name],
      ],
    ] as const
  )[random.integer(0, 7)] as ReturnType<typeof twins>
}
