/** Colours, light and dark; every other rule uses them by name. */
export const colours: string = `
:root{color-scheme:light dark;
--bg:#f7f7f5;--card:#fff;--ink:#1b1d22;--soft:#5b6068;--line:#e2e3e6;--code:#f3f4f6;
--race:#c2271f;--race-soft:#fcebe9;--wait:#96600a;--wait-soft:#fdf3df;--ok:#1a7043;--ok-soft:#e4f4ea;
--flow-0:#1f63d6;--flow-1:#8430c9;--flow-2:#0b7a75;--flow-3:#a85200;--flow-4:#a32a64}
@media (prefers-color-scheme:dark){:root{
--bg:#111316;--card:#1a1d22;--ink:#e9eaed;--soft:#a0a5ae;--line:#2d3138;--code:#22262c;
--race:#ff8a80;--race-soft:#35201f;--wait:#f0b95c;--wait-soft:#2f2818;--ok:#63d297;--ok-soft:#172c21;
--flow-0:#7cb4ff;--flow-1:#cda2ff;--flow-2:#55d3c9;--flow-3:#f3ae63;--flow-4:#f48fbc}}
`

/** The look of the picture, which can also stand alone. */
export const pictureStyles: string = `
.picture{font-family:ui-monospace,"SF Mono",SFMono-Regular,Menlo,"DejaVu Sans Mono","Liberation Mono",monospace;font-size:12px}
.lane .head{fill:var(--flow);opacity:.1}.lane .name{fill:var(--flow);font:700 14px system-ui,-apple-system,"Segoe UI",Roboto,"Liberation Sans",sans-serif}
.rail{stroke:var(--line);stroke-width:2}
.bar{fill:var(--flow);opacity:.28}.bar.rollback,.bar.cut,.bar.open{fill:var(--soft)}
.flow-0{--flow:var(--flow-0)}.flow-1{--flow:var(--flow-1)}.flow-2{--flow:var(--flow-2)}.flow-3{--flow:var(--flow-3)}.flow-4{--flow:var(--flow-4)}
.step{text-decoration:none;transition:opacity .15s}
.step .card{fill:var(--card);stroke:var(--line)}
.step:hover .card{stroke:var(--flow)}
.step .number{fill:var(--soft);font-size:11px;text-anchor:end}
.step .node{fill:var(--flow);stroke:var(--card);stroke-width:1.5}
.step.begin .node,.step.local .node{fill:var(--card);stroke:var(--flow);stroke-width:2}
.step .tick{fill:none;stroke:var(--card);stroke-width:1.8;stroke-linecap:round;stroke-linejoin:round}
.step text{fill:var(--ink)}
.step.begin .statement,.step.local .statement{fill:var(--soft)}
.step .saw,.step .statement .saw{fill:var(--ok);font-weight:700}
.step .note,.step .resume{fill:var(--wait)}
.step .mark,.step .error,.step.crash .note,.step.lost-answer .note,.step.victim .statement{fill:var(--race);font-weight:700}
.step.commit .statement{font-weight:700}
.step.resume .card{fill:var(--wait-soft);stroke:none}
.step.resume .node{fill:var(--wait)}
.step.stale-read .card,.step.overtaking .card,.step.hit .card{stroke:var(--race);stroke-width:1.5}
.step.stale-write .card{fill:var(--race-soft);stroke:var(--race);stroke-width:1.5}
.step.stale-read .saw{fill:var(--race)}
.step.crash .node,.step.lost-answer .node,.step.victim .node,.step.hit .node{fill:var(--race)}
.wait .ground{fill:var(--wait-soft)}.hatch{stroke:var(--wait);stroke-width:3}
.band rect{fill:var(--race);opacity:.07}.band .belief{fill:var(--race);font:italic 13px system-ui,-apple-system,"Segoe UI",Roboto,"Liberation Sans",sans-serif}
.arrow{fill:none;stroke:var(--race);stroke-width:2;stroke-dasharray:5 4}.arrowhead{fill:var(--race)}
.later{opacity:.13}.now .card{stroke:var(--flow);stroke-width:2.5}.now .number{fill:var(--ink);font-weight:700}
.band.later,.arrow.later,.wait.later{opacity:0}
`

const pageStyles = `
*{box-sizing:border-box}
html{scroll-behavior:smooth}
@media (prefers-reduced-motion:reduce){html{scroll-behavior:auto}*{transition:none!important}}
body{margin:0;background:var(--bg);color:var(--ink);font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Liberation Sans",sans-serif}
main{max-width:1104px;margin:0 auto;padding:40px 24px 72px}
h1{font-size:34px;line-height:1.15;letter-spacing:-.02em;margin:10px 0 6px;text-wrap:balance}
h2{font-size:13px;font-weight:600;letter-spacing:.06em;text-transform:uppercase;color:var(--soft);margin:0 0 10px}
p{margin:0 0 10px}
code,pre,.mono{font-family:ui-monospace,"SF Mono",SFMono-Regular,Menlo,"DejaVu Sans Mono","Liberation Mono",monospace}
pre{margin:6px 0 0;padding:10px 12px;background:var(--code);border-radius:8px;overflow-x:auto;font-size:13px;line-height:1.5;white-space:pre-wrap;overflow-wrap:anywhere}
a{color:inherit}
:focus-visible{outline:2px solid var(--flow-0);outline-offset:2px;border-radius:4px}
.kicker{display:flex;flex-wrap:wrap;gap:10px;align-items:center;color:var(--soft);margin:0}
.badge{font-size:12px;font-weight:700;letter-spacing:.05em;text-transform:uppercase;padding:3px 10px;border-radius:99px}
.badge.race{background:var(--race-soft);color:var(--race)}
.badge.free{background:var(--ok-soft);color:var(--ok)}
.badge.open{background:var(--wait-soft);color:var(--wait)}
.lead{font-size:19px;line-height:1.45;color:var(--soft);max-width:46em;text-wrap:pretty}
.rule{display:inline-block;margin:6px 0 0;padding:8px 14px;border-radius:8px;background:var(--race-soft);color:var(--race);font-weight:600;overflow-wrap:anywhere}
.panel{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:20px 22px;margin-top:20px}
.why{font-size:17px;max-width:56em;margin:0;text-wrap:pretty}
[hidden]{display:none!important}
@media (max-width:820px){main{padding:24px 14px 48px}h1{font-size:27px}.lead{font-size:17px}.panel{padding:16px 14px}}
figure{margin:28px 0 0}
.scroll{overflow-x:auto}
.picture{display:block;width:100%;height:auto}
.picture.large{min-width:720px}.picture.small{display:none}
@media (max-width:720px){.picture.large{display:none}.picture.small{display:block;min-width:min(100%,340px)}}
figcaption{display:flex;flex-wrap:wrap;gap:6px 20px;color:var(--soft);font-size:13px;margin-top:12px}
figcaption svg{width:14px;height:14px;vertical-align:-2px;margin-right:6px;overflow:visible}
figcaption .node,figcaption .bar{fill:var(--soft)}figcaption .tick{fill:none;stroke:var(--card);stroke-width:1.8}
.stepper{display:none;position:sticky;top:0;z-index:1;background:var(--card);margin:-8px 0 10px;padding:8px 0;min-height:50px}
.js .stepper{display:block}
.controls{display:flex;flex-wrap:wrap;align-items:center;gap:8px}
button{font:inherit;font-size:14px;padding:5px 14px;border:1px solid var(--line);border-radius:8px;background:var(--code);color:inherit;cursor:pointer}
button:hover:enabled{border-color:var(--soft)}button:disabled{opacity:.4;cursor:default}
.place{margin-left:4px;color:var(--soft);font-size:14px}
.states{display:flex;flex-wrap:wrap;gap:0 22px;margin:8px 0 0;font-size:14px}
.states:empty{display:none}
.who{font-weight:700;color:var(--flow)}
.fixes{margin:0;padding:0;list-style:none}.fixes li+li{margin-top:14px;padding-top:14px;border-top:1px solid var(--line)}
.fixes .joint{font-weight:600;color:var(--soft);margin-right:4px}
.steps{list-style:none;margin:0;padding:0}
.steps details{border-top:1px solid var(--line)}.steps li:first-child details{border-top:0}
.steps summary{display:flex;flex-wrap:wrap;gap:2px 12px;padding:9px 2px;cursor:pointer;align-items:baseline;overflow-wrap:anywhere}
.steps summary::marker{content:""}.steps summary::-webkit-details-marker{display:none}
.steps summary::before{content:"";width:6px;height:6px;border:solid var(--soft);border-width:0 1.5px 1.5px 0;transform:rotate(-45deg);align-self:center}
.steps details[open] summary::before{transform:rotate(45deg)}
.steps .at{color:var(--soft);font-size:13px;min-width:1.6em;text-align:right}
.steps .who{min-width:5em}
.steps summary .mono{font-size:13px;flex:1 1 16em}
.steps .saw{color:var(--ok);font-weight:700}.steps .failed{color:var(--race);font-weight:700}.steps .said{color:var(--race);font-size:13px}.steps .waits{color:var(--wait);font-size:13px}
.steps .inside{padding:0 2px 16px 2.6em;min-width:0}
li:target summary{background:var(--code);border-radius:8px}
table{border-collapse:collapse;font-size:13px;margin-top:8px}th{text-align:left;color:var(--soft);font-weight:600}
td,th{padding:3px 14px 3px 0;vertical-align:top;overflow-wrap:anywhere}
td{font-family:ui-monospace,"SF Mono",Menlo,"DejaVu Sans Mono","Liberation Mono",monospace}
.null{color:var(--soft);font-style:italic}
.extra td{color:var(--race)}.missing td{color:var(--ok)}.sign{width:1.4em}
.facts{display:grid;grid-template-columns:max-content 1fr;gap:6px 20px;margin:0}.facts dt{color:var(--soft)}.facts dd{margin:0;overflow-wrap:anywhere}
@media (max-width:560px){.facts{grid-template-columns:1fr;gap:0}.facts dd{margin-bottom:8px}.steps .inside{padding-left:0}}
.small{font-size:14px;color:var(--soft)}
footer{margin-top:28px;color:var(--soft);font-size:13px}
@media print{.stepper{display:none!important}.panel{break-inside:avoid}}
`

/** The look of the page. Everything is inline, so that one file is the whole report. */
export const styles: string = `${colours}${pageStyles}${pictureStyles}`
