/** The only script of the page: what a link leads to is unfolded. Without it, everything can be unfolded by hand. */
export const opener: string = `
(function () {
  function reveal() {
    var target = document.getElementById(location.hash.slice(1))
    if (!target) return
    var inside = target.querySelector('details')
    if (inside) inside.open = true
    for (var around = target.parentElement; around; around = around.parentElement) {
      if (around.tagName === 'DETAILS') around.open = true
    }
    target.scrollIntoView()
  }
  window.addEventListener('hashchange', reveal)
  reveal()
})()
`
