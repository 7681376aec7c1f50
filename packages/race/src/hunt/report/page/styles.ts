/** Besides the look of all pages. */
export const huntStyles: string = `
.matrix{margin:0;font-size:13px}
.matrix th[scope=row]{font-weight:400;color:var(--ink);white-space:nowrap;padding-right:16px;overflow-wrap:normal}
.matrix .at{display:inline-block;min-width:1.8em;color:var(--soft)}
.matrix th[scope=col]{text-align:center;padding:2px 0;font-weight:400}
.matrix td{padding:1px}
.cell{display:block;min-width:26px;padding:2px 0;border-radius:5px;text-align:center;text-decoration:none;font-weight:700}
figcaption .cell{display:inline-block;margin-right:7px}
.cell.race{background:var(--race);color:var(--card)}
.cell.free{background:var(--ok-soft);color:var(--ok)}
.cell.open{background:var(--wait-soft);color:var(--wait)}
.cell.skipped{background:var(--code);color:var(--soft)}
a.cell:hover{outline:2px solid currentColor}
.panel.race{scroll-margin-top:12px}
.panel.race h2{font-size:19px;letter-spacing:0;text-transform:none;color:var(--ink);overflow-wrap:anywhere}
.name{font-weight:600}.panel.race .why{margin-top:12px}
h3{font-size:13px;font-weight:600;letter-spacing:.06em;text-transform:uppercase;color:var(--soft);margin:18px 0 8px}
.timeline{margin:18px 0}.timeline>summary,.panel>summary{cursor:pointer;font-weight:600}
li:target,.panel.race:target{outline:2px solid var(--flow-0);outline-offset:4px;border-radius:8px}
@media (max-width:560px){.matrix th[scope=row]{max-width:44vw;white-space:normal;overflow-wrap:anywhere}}
`
