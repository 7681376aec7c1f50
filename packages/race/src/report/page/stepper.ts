/**
 * The only script of the page: goes through the run step by step. Without it the page shows
 * everything at once. It reads attributes and toggles classes; it writes no markup.
 */
export const stepper: string = `
(function () {
  var root = document.documentElement
  var panel = document.getElementById('stepper')
  if (!panel) return
  root.classList.add('js')
  var last = Number(panel.dataset.steps)
  var at = 0
  var states = Array.prototype.slice.call(panel.querySelectorAll('[data-at]'))
  var drawn = Array.prototype.slice.call(document.querySelectorAll('[data-after]'))
  var place = document.getElementById('place')
  function button(name) { return panel.querySelector('button[name=' + name + ']') }
  function show(step) {
    at = Math.max(0, Math.min(last, step))
    document.body.classList.toggle('stepping', at > 0)
    drawn.forEach(function (one) {
      var own = Number(one.dataset.after)
      one.classList.toggle('later', at > 0 && own > at)
      one.classList.toggle('now', at > 0 && own === at)
    })
    states.forEach(function (one) { one.hidden = Number(one.dataset.at) !== at })
    place.textContent = at === 0 ? 'all ' + last + ' steps' : 'after step ' + at + ' of ' + last
    button('back').disabled = at === 0
    button('next').disabled = at === last
    button('all').disabled = at === 0
  }
  button('back').addEventListener('click', function () { show(at - 1) })
  button('next').addEventListener('click', function () { show(at + 1) })
  button('all').addEventListener('click', function () { show(0) })
  document.addEventListener('keydown', function (event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return
    if (event.key === 'ArrowRight') show(at + 1)
    if (event.key === 'ArrowLeft') show(at - 1)
    if (event.key === 'Escape') show(0)
  })
  function reveal() {
    var target = document.getElementById(location.hash.slice(1))
    var inside = target && target.querySelector('details')
    if (inside) inside.open = true
  }
  window.addEventListener('hashchange', reveal)
  reveal()
  show(0)
})()
`
