import { describe, expect, test } from 'vitest'
import { plain } from '../../src/terminal/paint.ts'
import { textWidth } from '../../src/terminal/text-width.ts'
import { renderFrame } from '../../src/top/top-frame.ts'
import { atFirst, pressed, seen, type TopState } from '../../src/top/top-state.ts'
import { incident, session, tree } from '../support/lock-trees.ts'

const size = { columns: 100, rows: 12 }
const press = (state: TopState, ...names: string[]): TopState =>
  names.reduce((at, name) => pressed(at, { name, ctrl: false }, size)[0], state)
const shown = seen(atFirst, incident, size)

describe('the screen', () => {
  test('the tree, root first, who is selected marked', () => {
    expect(
      renderFrame(shown, size, (style, text) => (style === 'inverse' ? `>${text}` : text)).join(
        '\n',
      ),
    ).toMatchInlineSnapshot(`
      "3 sessions wait, for up to 11 s; 1 is at the root of it.                            10:00:00Z · 3 ms
      session                           pid      waits blocks lock                           query
      >billing                             1                 3 holds cart:7, row of public.o… last: SELECT…
      ├─ checkout                         2       11 s      1 cart:7
      │  └─ queue                         3     900 ms        cart:7                         SELECT 1
      └─ editor                           4      3.2 s        row of public.orders           UPDATE order…
      quiet                               5                   holds cart:9                   SELECT 1




      > ↑↓ select · enter why · space freeze · r look now · q quit                                         "
    `)
  })

  test.each([
    [20, 5],
    [60, 10],
    [80, 24],
    [200, 60],
  ])('fits %i × %i, on every page', (columns, rows) => {
    for (const state of [atFirst, shown, press(shown, 'return'), { ...shown, trouble: 'gone' }]) {
      const lines = renderFrame(state, { columns, rows }, plain)
      expect(lines.length).toBeLessThanOrEqual(rows)
      for (const line of lines) expect(textWidth(line)).toBeLessThanOrEqual(columns)
    }
  })

  test('enter explains, and goes on doing so while the tree changes', () => {
    const why = press(shown, 'down', 'return')
    expect(renderFrame(why, size, plain).join('\n')).toContain('has waited 11 s for cart:7')
    const gone = seen(why, tree([], []), size)
    expect(renderFrame(gone, size, plain).join('\n')).toContain('no longer')
    expect(press(gone, 'escape').page).toBe('list')
  })

  test('trouble is said, and what was seen stays', () => {
    const text = renderFrame({ ...shown, trouble: 'connection\u001B[2J lost' }, size, plain).join(
      '\n',
    )
    expect(text).toContain('Cannot look: connection\\x1b[2J lost')
    expect(text).toContain('billing')
  })
})

describe('keys', () => {
  test('move within the list, and no further', () => {
    expect(shown.selected).toBe(1)
    expect(press(shown, 'up').selected).toBe(1)
    expect(press(shown, 'j', 'down').selected).toBe(3)
    expect(press(shown, 'end', 'k').selected).toBe(4)
    expect(press(shown, 'end', 'home').selected).toBe(1)
    expect(press(atFirst, 'down', 'return')).toMatchObject({ page: 'list' })
  })

  test('who is selected stays so when others come and go, and is in view', () => {
    const many = tree(
      [],
      Array.from({ length: 50 }, (_, at) => session(100 + at)),
    )
    const far = press(seen(atFirst, many, size), 'end')
    expect(far.selected).toBe(149)
    expect(renderFrame(far, size, plain).join('\n')).toContain('app-149')
    const fewer = tree([], many.sessions.slice(10))
    expect(seen(far, fewer, size).selected).toBe(149)
    const without = tree([], many.sessions.slice(0, 20))
    expect(seen(far, without, size).selected).toBe(119)
  })

  test('space freezes', () => {
    const frozen = press(shown, 'space')
    expect(seen(frozen, tree([], []), size).tree).toBe(incident)
    expect(pressed(frozen, { name: 'space', ctrl: false }, size)[1]).toBe('look')
  })

  test.each([
    ['q', false],
    ['c', true],
  ])('%s quits', (name, ctrl) => expect(pressed(shown, { name, ctrl }, size)[1]).toBe('quit'))

  test('q on the other page goes back; ctrl-c quits everywhere', () => {
    const why = press(shown, 'return')
    expect(pressed(why, { name: 'q', ctrl: false }, size)).toEqual([
      expect.objectContaining({ page: 'list' }),
      undefined,
    ])
    expect(pressed(why, { name: 'c', ctrl: true }, size)[1]).toBe('quit')
  })
})
