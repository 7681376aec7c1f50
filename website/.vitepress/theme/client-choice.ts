/** Whoever chooses a client in one group of tabs gets it in all groups, on this page and on the next ones. */

const key = 'holdfast-client'

function stored(): string | null {
  try {
    return localStorage.getItem(key)
  } catch {
    return null // storage is switched off
  }
}

function nameOf(input: Element): string {
  return document.querySelector(`label[for="${input.id}"]`)?.textContent ?? ''
}

/** Shows the tab of this name wherever there is one. Nothing is scrolled and the focus stays. */
export function showClient(name: string | null = stored()): void {
  for (const group of document.querySelectorAll('.vp-code-group')) {
    const inputs = [...group.querySelectorAll<HTMLInputElement>('.tabs input')]
    const at = inputs.findIndex((input) => nameOf(input) === name)
    const chosen = inputs[at]
    if (chosen === undefined || chosen.checked) continue
    chosen.checked = true
    const blocks = group.querySelector('.blocks')?.children ?? []
    for (const [index, block] of [...blocks].entries()) {
      block.classList.toggle('active', index === at)
    }
  }
}

/** Remembers what is chosen from now on. */
export function followChoice(): void {
  addEventListener('change', ({ target }) => {
    if (!(target instanceof HTMLInputElement) || !target.matches('.vp-code-group .tabs input'))
      return
    const name = nameOf(target)
    try {
      localStorage.setItem(key, name)
    } catch {
      // Then it lasts as long as the page.
    }
    showClient(name)
  })
}
